//! `blkhash bench`: how long every implementation takes, and what is the fastest for which use.

mod answer;
mod contestants;
mod driver;
pub mod file_system;
mod filter;
pub mod image;
mod noise;
pub mod recommendation;
mod tools;

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use blkbench::{Amount, Bench, Memory, Report, Scenario, report};
use blkhash::Algorithm;

use self::answer::Answers;
pub use self::contestants::implementation;
use self::contestants::{Field, field};
pub use self::filter::Filter;
use self::noise::longer;
pub use self::noise::{mark, note};
use self::tools::Tools;
use super::args::{self, Layout, Threads};
use crate::problem::{Failure, Outcome};
use crate::progress::Steps;
use crate::stdio::{self, Stdout};
use crate::{json, messages};

/// Measures and prints.
pub fn run(args: &args::Bench) -> Result<Outcome, Failure> {
    let layout = args.layout();
    if args.tools && !matches!(layout, Layout::Docs | Layout::Json) {
        return Err(Failure::usage("--tools: use --format docs or json"));
    }
    let bench = bench(args, layout)?;
    let field = chosen_field(field(), &args.filter)?;
    super::warn(Algorithm::ALL.iter().copied());
    let steps = Steps::new("measuring", STEPS);
    let mut measured = bench.run(&field.contestants, |done| {
        steps.set((STEPS as f64 * done) as u64);
    });
    let time = match bench.amount {
        Amount::Time(time) => time.min(DEFAULT_TIME),
        Amount::Blocks(_) => DEFAULT_TIME,
    };
    let algorithms = algorithms(&measured);
    let beside = Beside {
        answers: matches!(layout, Layout::Docs | Layout::Json)
            .then(|| Answers::measure(&algorithms, time)),
        tools: args.tools.then(|| Tools::measure(&algorithms)).transpose(),
    };
    drop(steps);
    let absent = field.absent.iter();
    let notes =
        absent.map(|(known, reason)| format!("{} was not measured: {reason}", known.name()));
    measured.conditions.notes.extend(notes);
    let longer = match bench.amount {
        Amount::Time(time) => longer(time),
        Amount::Blocks(blocks) => {
            format!("measure more (--iterations {})", blocks.saturating_mul(10))
        }
    };
    Ok(write(&measured, &beside, layout, args.svg.as_deref(), &longer)?.into())
}

/// Contestants besides the implementations.
struct Beside {
    answers: Option<Answers>,
    tools: io::Result<Option<Tools>>,
}

/// Returns the algorithms that have a row.
fn algorithms(measured: &Report) -> Vec<Algorithm> {
    let is_shown = |algorithm: &&Algorithm| {
        let mut rows = measured.rows.iter();
        **algorithm != Algorithm::Null && rows.any(|row| row.group == algorithm.name())
    };
    Algorithm::ALL.iter().filter(is_shown).copied().collect()
}

/// Resolves the arguments of the command line.
fn bench(args: &args::Bench, layout: Layout) -> Result<Bench, Failure> {
    let block_size = args.block_size.unwrap_or(DEFAULT_BLOCK_SIZE);
    let batch = match args.batch {
        Some(batch) => usize::from(batch),
        None => (MAX_DEFAULT_BATCH_SIZE / block_size).clamp(1, DEFAULT_BATCH),
    };
    let mut threads: Vec<usize> = args.threads.iter().map(|Threads(count)| *count).collect();
    if threads.is_empty() {
        threads.push(1);
    }
    threads.sort_unstable();
    threads.dedup();
    let most = threads.last().copied().unwrap_or(1);
    if block_size * batch * most > MAX_MEMORY {
        let what = format!("{batch} blocks of {block_size} bytes on {most} threads");
        return Err(Failure::usage(format!("{what} are more than 1 GiB: use a smaller --batch")));
    }
    let memories: &[Memory] = if args.cold { &[Memory::Hot, Memory::Cold] } else { &[Memory::Hot] };
    let scenarios = threads
        .iter()
        .flat_map(|&threads| memories.iter().map(move |&memory| Scenario { threads, memory }));
    let amount = match (args.iterations, args.time) {
        (Some(iterations), _) => Amount::Blocks(iterations),
        (None, Some(time)) => Amount::Time(time),
        (None, None) if layout == Layout::Speedtest => Amount::Blocks(DEFAULT_ITERATIONS),
        (None, None) => Amount::Time(DEFAULT_TIME),
    };
    Ok(Bench { block_size, batch, scenarios: scenarios.collect(), amount })
}

/// The ones that the globs name. The reference stays, without a row unless a glob names it.
fn chosen_field(field: Field, globs: &[String]) -> Result<Field, Failure> {
    let filter = Filter::new(globs).map_err(Failure::usage)?;
    let Field { mut contestants, mut absent } = field;
    let mut names: Vec<(String, String)> =
        contestants.iter().map(|known| (known.group.clone(), known.name.clone())).collect();
    names.extend(absent.iter().map(|(known, _)| (known.algorithm.name().into(), known.name())));
    if let Some(wanted) = filter.unmatched(&names).first() {
        return Err(Failure::Usage(filter::explain_unmatched(wanted, &names)));
    }
    for contestant in &mut contestants {
        contestant.is_shown = filter.accepts(&contestant.group, &contestant.name);
    }
    absent.retain(|(known, _)| filter.accepts(known.algorithm.name(), &known.name()));
    if let Some((known, reason)) =
        absent.first().filter(|_| contestants.iter().all(|c| !c.is_shown))
    {
        return Err(Failure::usage(format!("{} cannot run here: {reason}", known.name())));
    }
    contestants.retain(|contestant| contestant.is_shown || contestant.is_reference);
    Ok(Field { contestants, absent })
}

/// The chart first: if it cannot be written, the figures are printed all the same. `longer` is what
/// to do if they are rough.
fn write(
    measured: &Report,
    beside: &Beside,
    layout: Layout,
    chart: Option<&Path>,
    longer: &str,
) -> io::Result<bool> {
    let mut all_well = true;
    if let Some(path) = chart
        && let Err(error) = std::fs::write(path, report::svg(measured))
    {
        all_well = false;
        let name = path.as_os_str().as_encoded_bytes();
        messages::message_of(name, &messages::reason(&error));
    }
    let tools = match &beside.tools {
        Ok(tools) => tools.as_ref(),
        Err(error) => {
            all_well = false;
            messages::message(&format!("--tools: {}", messages::reason(error)));
            None
        }
    };
    for problem in tools.iter().flat_map(|tools| tools.problems()) {
        all_well = false;
        messages::message(&problem);
    }
    let answers = beside.answers.as_ref();
    let text = match layout {
        Layout::Docs => {
            let noisy = measured.rows.iter().filter(|row| row.ticks.is_noisy()).count();
            report::docs(measured, stdio::columns().unwrap_or(usize::MAX))
                + &recommendation::describe(measured)
                + &note(noisy, measured.rows.len(), longer)
                + &tools.map(Tools::text).unwrap_or_default()
                + &answers.map(Answers::text).unwrap_or_default()
        }
        Layout::Speedtest => report::speedtest(measured),
        Layout::Csv => report::csv(measured),
        Layout::Json => {
            // Names of this CPU and its kernel.
            let lines = report::json(measured);
            let lines = lines.lines().map(|line| json::escaped(line).into_owned() + "\n");
            lines.collect::<String>()
                + &tools.map(Tools::json).unwrap_or_default()
                + &answers.map(Answers::json).unwrap_or_default()
        }
    };
    Stdout.write_all(text.as_bytes())?;
    Ok(all_well)
}

/// A sector of btrfs.
pub const DEFAULT_BLOCK_SIZE: usize = 4096;

/// Fills the lanes of the widest kernel.
pub const DEFAULT_BATCH: usize = 16;

/// Default maximum size of a batch.
const MAX_DEFAULT_BATCH_SIZE: usize = 64 << 20;

/// Maximum size of all batches together, in bytes.
const MAX_MEMORY: usize = 1 << 30;

/// Number of steps of the progress.
const STEPS: u64 = 1000;

/// The default of hash-speedtest.
const DEFAULT_ITERATIONS: u64 = 100_000;

/// For each row: all of them are done in five seconds.
const DEFAULT_TIME: Duration = Duration::from_millis(80);
