//! `make bench` measures every implementation of blkhash and of other libraries, in one
//! run.

mod contestants;

use std::process::ExitCode;
use std::time::Duration;

use blkbench::{Bench, Contestant, Work, report};
use blkhash::{Algorithm, Digester, Implementation, Status, implementations};
use clap::{Parser, ValueEnum};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut field = vec![Contestant::nop(), Contestant::memcpy()];
    let mut notes = Vec::new();
    for &algorithm in Algorithm::ALL.iter().filter(|algorithm| **algorithm != Algorithm::Null) {
        for known in implementations(algorithm).iter().filter(|it| it.status == Status::Ready) {
            field.push(ours(known));
        }
    }
    for entry in contestants::all() {
        match entry {
            Ok(contestant) => match contestant.verify() {
                Ok(()) => field.push(theirs(contestant)),
                Err(reason) => {
                    eprintln!("contestants: {reason}");
                    return ExitCode::FAILURE;
                }
            },
            Err(absent) => {
                notes.push(format!("{} was not measured: {}", absent.name, absent.reason))
            }
        }
    }
    for contestant in &mut field {
        contestant.is_shown = arguments.accepts(&contestant.group);
    }
    field.retain(|contestant| contestant.is_shown || contestant.is_reference);

    let time = Duration::from_millis(arguments.time);
    let bench = Bench::hot(arguments.block_size, BATCH, time);
    let mut measured = bench.run(&field, |_| ());
    measured.conditions.notes.extend(notes);
    match arguments.layout {
        Layout::Table => print!("{}", report::docs(&measured, usize::MAX)),
        Layout::Json => print!("{}", report::json(&measured)),
        Layout::Csv => print!("{}", report::csv(&measured)),
        Layout::Svg => print!("{}", report::svg(&measured)),
    }
    ExitCode::SUCCESS
}

/// Creates a contestant that uses only this implementation of blkhash.
fn ours(known: &Implementation) -> Contestant {
    let (algorithm, name) = (known.algorithm, known.name());
    let is_reference = algorithm == Algorithm::Crc32c;
    let make_name = name.clone();
    let make = move || -> Work {
        let digester =
            Digester::with_implementation(algorithm, &make_name).expect("it passed its self-test");
        let (start, mut digests) = (digester.start(), vec![0; BATCH * algorithm.digest_size()]);
        Box::new(move |blocks| {
            let digests = &mut digests[..blocks.len() * algorithm.digest_size()];
            digester.finish_many(&start, blocks, digests);
        })
    };
    let mut contestant = Contestant::new(algorithm.name(), name, make);
    contestant.is_reference = is_reference;
    contestant
}

/// Creates a contestant that uses another library.
fn theirs(contestant: contestants::Contestant) -> Contestant {
    let group = contestant.algorithm.map_or("-", Algorithm::name);
    let name = contestant.name.clone();
    Contestant::new(group, name, move || {
        let size = contestant.digest_size();
        let (mut hash_many, mut digests) = (contestant.start(), vec![0; BATCH * size]);
        Box::new(move |blocks| hash_many(blocks, &mut digests[..blocks.len() * size]))
    })
}

/// Measures the hashes of blkhash and of other libraries.
#[derive(Parser)]
struct Arguments {
    /// How to print what was measured
    #[arg(long, value_enum, default_value = "table")]
    layout: Layout,

    /// Bytes in a block
    #[arg(long, default_value_t = 4096)]
    block_size: usize,

    /// Milliseconds for each row
    #[arg(long, default_value_t = 400)]
    time: u64,

    /// Only algorithms whose name has one of these in it
    words: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Layout {
    Table,
    Json,
    Csv,
    Svg,
}

impl Arguments {
    fn accepts(&self, group: &str) -> bool {
        self.words.is_empty() || self.words.iter().any(|word| group.contains(word))
    }
}

/// Number of blocks at a time, which fill the lanes of the widest kernel.
const BATCH: usize = 16;
