//! `blkhash algorithms`: a table of what there is, or all that is known of an algorithm, in the
//! spirit of /proc/crypto.

mod choice;
mod kernel;
mod trivia;

use std::io;

use blkbench::text::{self, Align};
use blkhash::{Algorithm, Digester, Status};
use serde::Serialize;

use self::choice::{Choice, choices};
use self::kernel::Driver;
use self::trivia::{Linux, Trivia};
use super::args;

/// Prints what was asked for; the error is one of writing.
pub fn run(args: &args::Algorithms) -> io::Result<bool> {
    let algorithms = if args.names.is_empty() { Algorithm::ALL } else { &args.names };
    super::warn(algorithms.iter().copied());
    let drivers = args.kernel.then(kernel::drivers);
    let drivers = drivers.as_deref();
    let text = match (args.json, args.names.is_empty()) {
        (true, _) => algorithms.iter().map(|algorithm| json(*algorithm, drivers) + "\n").collect(),
        (false, true) => table(algorithms, drivers),
        (false, false) => {
            let records: Vec<_> =
                algorithms.iter().map(|algorithm| record(*algorithm, drivers)).collect();
            records.join("\n")
        }
    };
    super::print(&text)
}

/// One line for each algorithm, with the implementation for many blocks at a time.
fn table(algorithms: &[Algorithm], drivers: Option<&[Driver]>) -> String {
    let mut heads = vec![
        ("Algorithm", Align::Left),
        ("Implementation", Align::Left),
        ("Lanes", Align::Right),
        ("Self-test", Align::Left),
        ("Bits", Align::Right),
        ("Strength", Align::Left),
        ("FIPS", Align::Left),
        ("32 B", Align::Left),
        ("Licence", Align::Left),
        ("Linux", Align::Left),
    ];
    if drivers.is_some() {
        heads.extend([("Kernel driver", Align::Left), ("Priority", Align::Right)]);
    }
    heads.push(("Used by", Align::Left));
    let rows: Vec<Vec<String>> = algorithms
        .iter()
        .map(|&algorithm| {
            let (known, trivia) = (algorithm.properties(), Trivia::of(algorithm));
            let best = Digester::new(algorithm).implementation_for(MANY);
            let mut cells = vec![
                known.name.to_owned(),
                best.variant.to_owned(),
                best.lanes.to_string(),
                self_test(best.status).to_owned(),
                (8 * known.digest_size).to_string(),
                known.strength.to_string(),
                known.fips.map_or("-", |standard| standard.trim_start_matches("FIPS ")).to_owned(),
                yes_no(known.fits_32_bytes()).to_owned(),
                trivia.licence.map_or("-".to_owned(), |licence| licence.to_string()),
                yes_no(trivia.linux != Linux::Absent).to_owned(),
            ];
            if let Some(drivers) = drivers {
                let driver = of(drivers, algorithm).next();
                cells.push(driver.map_or("-".into(), |driver| driver.driver.clone()));
                let priority = driver.and_then(|driver| driver.priority);
                cells.push(priority.map_or("-".into(), |priority| priority.to_string()));
            }
            cells.push(trivia.used_by.join(", "));
            cells
        })
        .collect();
    text::table(&heads, &rows)
}

/// All that is known of an algorithm: a record for itself and one for each implementation.
fn record(algorithm: Algorithm, drivers: Option<&[Driver]>) -> String {
    let (known, trivia) = (algorithm.properties(), Trivia::of(algorithm));
    let or_dash = |names: &[&str]| if names.is_empty() { "-".into() } else { names.join(", ") };
    let licence = trivia.licence.map_or("-".to_owned(), |licence| {
        format!("{licence} (goes with GPL-2 and into boot loaders)")
    });
    let linux = match trivia.linux {
        Linux::Absent => "no".to_owned(),
        Linux::Library => "yes, for its own use".to_owned(),
        Linux::Crypto(name) => format!("yes, {name} in its crypto API"),
    };
    let mut out = lines(&[
        ("name", known.name.to_owned()),
        ("aliases", or_dash(known.aliases)),
        ("digest bits", (8 * known.digest_size).to_string()),
        ("strength", known.strength.to_string()),
        ("standard", known.fips.unwrap_or("-").to_owned()),
        ("fits 32 bytes", yes_no(known.fits_32_bytes()).to_owned()),
        ("licence", licence),
        ("linux", linux),
        ("used by", or_dash(trivia.used_by)),
    ]);
    let choices = choices(algorithm);
    for choice in &choices {
        let implementation = &choice.implementation;
        let rank = match rank(choice, &choices) {
            Some((rank, all)) => format!("{rank} of {all}, {} cycles/KiB", cost(choice)),
            None => "only one".to_owned(),
        };
        out.push('\n');
        out += &lines(&[
            ("implementation", implementation.name()),
            ("lanes", implementation.lanes.to_string()),
            ("needs", implementation.feature.map_or("-", blkhash::Feature::name).to_owned()),
            ("rank", rank),
            ("chosen", choice.describe()),
            ("selftest", self_test(implementation.status).to_owned()),
        ]);
    }
    let Some(drivers) = drivers else { return out };
    for driver in of(drivers, algorithm) {
        out.push('\n');
        out += &lines(&[
            ("kernel driver", driver.driver.clone()),
            ("priority", driver.priority.map_or("-".into(), |priority| priority.to_string())),
            ("selftest", driver.selftest.clone()),
        ]);
    }
    if of(drivers, algorithm).next().is_none() {
        out += &format!("\n{}", lines(&[("kernel driver", "- (not in /proc/crypto now)".into())]));
    }
    out
}

fn json(algorithm: Algorithm, drivers: Option<&[Driver]>) -> String {
    let (known, trivia) = (algorithm.properties(), Trivia::of(algorithm));
    let choices = choices(algorithm);
    let implementations = choices.iter().map(|choice| {
        let implementation = &choice.implementation;
        ImplementationObject {
            name: implementation.name(),
            lanes: implementation.lanes,
            needs: implementation.feature.map(blkhash::Feature::name),
            rank: rank(choice, &choices).map(|(rank, _)| rank),
            chosen: choice.batches.clone(),
            reason: choice.reason.clone(),
            selftest: self_test(implementation.status),
        }
    });
    let object = Object {
        name: known.name,
        aliases: known.aliases,
        digest_bits: 8 * known.digest_size,
        strength: known.strength.to_string(),
        standard: known.fips,
        fits_32_bytes: known.fits_32_bytes(),
        licence: trivia.licence.map(|licence| licence.to_string()),
        linux: trivia.linux != Linux::Absent,
        kernel_name: kernel_name(algorithm),
        used_by: trivia.used_by,
        implementations: implementations.collect(),
        kernel: drivers.map(|drivers| of(drivers, algorithm).collect()),
    };
    serde_json::to_string(&object).expect("plain data is JSON")
}

#[derive(Serialize)]
struct Object<'a> {
    name: &'static str,
    aliases: &'static [&'static str],
    digest_bits: usize,
    strength: String,
    standard: Option<&'static str>,
    fits_32_bytes: bool,
    licence: Option<String>,
    linux: bool,
    kernel_name: Option<&'static str>,
    used_by: &'static [&'static str],
    implementations: Vec<ImplementationObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<Vec<&'a Driver>>,
}

#[derive(Serialize)]
struct ImplementationObject {
    name: String,
    lanes: usize,
    needs: Option<&'static str>,
    /// Among those that can run, for as many blocks as they have lanes.
    rank: Option<usize>,
    /// Ranges of batches: the first and the last number of blocks, which is null where it is open.
    chosen: Vec<(usize, Option<usize>)>,
    /// Why it is not chosen.
    reason: Option<String>,
    selftest: &'static str,
}

/// Where an implementation stands with all lanes filled, among all of its algorithm.
fn rank(choice: &Choice, all: &[Choice]) -> Option<(usize, usize)> {
    let faster = all.iter().filter(|other| cost(other) < cost(choice)).count();
    (all.len() > 1).then_some((faster + 1, all.len()))
}

/// What a block costs with all lanes filled.
fn cost(choice: &Choice) -> usize {
    choice.implementation.cost as usize / choice.implementation.lanes
}

/// The drivers of an algorithm, the preferred one first.
fn of(drivers: &[Driver], algorithm: Algorithm) -> impl Iterator<Item = &Driver> {
    let name = kernel_name(algorithm);
    drivers.iter().filter(move |driver| name == Some(driver.name.as_str()))
}

fn kernel_name(algorithm: Algorithm) -> Option<&'static str> {
    match Trivia::of(algorithm).linux {
        Linux::Crypto(name) => Some(name),
        Linux::Library | Linux::Absent => None,
    }
}

fn lines(fields: &[(&str, String)]) -> String {
    fields.iter().map(|(name, value)| format!("{name:<14} : {value}\n")).collect()
}

fn self_test(status: Status) -> &'static str {
    match status {
        Status::Ready => "passed",
        Status::Failed => "failed",
        Status::Missing | Status::Disabled => "not run",
    }
}

fn yes_no(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}

/// More blocks at a time than any implementation has lanes.
const MANY: usize = 1024;
