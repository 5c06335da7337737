//! `blkhash algorithms`: a table of all algorithms, or details of some in the style of /proc/crypto.

mod choice;
mod measure;
mod trivia;

use blkbench::report::WIDTH;
use blkbench::text;
use blkhash::{Algorithm, Digester, Status, implementations};

use self::choice::{Choice, assumed_of, choices};
use self::measure::Measured;
use self::trivia::{Linux, Trivia};
use super::args;
use crate::blkhash::kernel::{self, Driver};
use crate::problem::{Failure, Outcome};
use crate::records::algorithm::{self as records, Implementation};
use crate::{json, quote, stdio};

/// Prints the table or the details.
///
/// # Errors
///
/// Fails if standard output cannot be written.
pub fn run(args: &args::Algorithms) -> Result<Outcome, Failure> {
    let algorithms = if args.names.is_empty() { Algorithm::ALL } else { &args.names };
    super::warn(algorithms.iter().copied());
    let drivers = args.kernel.then(kernel::drivers);
    let drivers = drivers.as_deref();
    let measured = args.measure.then(|| Measured::new(algorithms));
    let measured = measured.as_ref();
    let text = match (args.json, args.names.is_empty()) {
        (true, _) => {
            algorithms.iter().map(|algorithm| json(*algorithm, drivers, measured) + "\n").collect()
        }
        (false, true) => summary(algorithms, drivers, measured),
        (false, false) => {
            let records: Vec<_> =
                algorithms.iter().map(|algorithm| record(*algorithm, drivers, measured)).collect();
            records.join("\n") + &why(algorithms) + &measured.map(choices_of).unwrap_or_default()
        }
    };
    super::print(&text)
}

/// Formats a line for each algorithm, with the implementation that hashes many blocks at a time.
fn summary(
    algorithms: &[Algorithm],
    drivers: Option<&[Driver]>,
    measured: Option<&Measured>,
) -> String {
    let used = |algorithm| Digester::new(algorithm).implementation_for(MANY).variant;
    let width = stdio::columns().map_or(WIDTH, |columns| columns.min(WIDTH));
    let mut out = table(width, algorithms, drivers, measured, used) + "\n";
    for note in NOTES {
        out += &(text::wrapped(note, 0, width) + "\n");
    }
    out + &measured.map(choices_of).unwrap_or_default()
}

/// Describes the CPU, and the implementations that a large job would choose.
fn choices_of(measured: &Measured) -> String {
    let mut out = format!("\nMeasured: {}\n", measured.cpu());
    for &algorithm in Algorithm::ALL {
        if let Some(choice) = measured.choice(algorithm) {
            let text = format!("A large job would use {}", choice.describe());
            out += &text::wrapped(&text, 2, WIDTH);
            out.push('\n');
        }
    }
    out
}

/// Formats the table. Its lines fit `width` for any names of implementations and drivers.
fn table(
    width: usize,
    algorithms: &[Algorithm],
    drivers: Option<&[Driver]>,
    measured: Option<&Measured>,
    used: impl Fn(Algorithm) -> &'static str,
) -> String {
    let speed = |algorithm: Algorithm, variant: &str| match measured {
        None => String::new(),
        Some(measured) => {
            let speed = measured.speed(&format!("{algorithm}-{variant}"));
            speed.map_or("-".to_owned(), |speed| format!("{speed:.0}"))
        }
    };
    let mut heads = vec![
        "Algorithm",
        ">Bits",
        "Strength",
        "FIPS",
        "Implementation",
        ">MiB/s",
        if drivers.is_some() { "Kernel driver" } else { "Used by" },
    ];
    let mut rows: Vec<Vec<String>> = algorithms
        .iter()
        .map(|&algorithm| {
            let known = algorithm.properties();
            let last = match drivers {
                Some(drivers) => {
                    let driver = of(drivers, algorithm).next();
                    driver.map_or("-".into(), |driver| quote::printable(&driver.driver))
                }
                None => Trivia::of(algorithm).used_by.join(", "),
            };
            let used = used(algorithm);
            vec![
                known.name.to_owned(),
                (8 * known.digest_size).to_string(),
                known.strength.to_string(),
                known.fips.map_or("-", |standard| standard.trim_start_matches("FIPS ")).to_owned(),
                used.to_owned(),
                speed(algorithm, used),
                last,
            ]
        })
        .collect();
    if measured.is_none() {
        heads.remove(SPEED);
        rows.iter_mut().for_each(|row| drop(row.remove(SPEED)));
    }
    text::table_within(width, &SPARE, &heads, &rows)
}

/// Formats a record for an algorithm, then one for each implementation and each driver of the kernel.
fn record(algorithm: Algorithm, drivers: Option<&[Driver]>, measured: Option<&Measured>) -> String {
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
    let ranks: Vec<usize> = choices.iter().map(|choice| choice.rank(&choices)).collect();
    let mut order: Vec<(usize, &Choice)> = ranks.into_iter().zip(&choices).collect();
    order.sort_by_key(|(rank, _)| *rank);
    for (rank, choice) in &order {
        let implementation = &choice.implementation;
        out.push('\n');
        out += &lines(&[
            ("implementation", implementation.name()),
            ("lanes", implementation.lanes.to_string()),
            ("needs", implementation.feature.map_or("-", blkhash::Feature::name).to_owned()),
            (
                "preference",
                match order.len() {
                    1 => "only one".to_owned(),
                    all => format!("{rank} of {all}"),
                },
            ),
            ("status", choice.describe()),
            ("selftest", self_test(implementation.status).to_owned()),
        ]);
        if let Some(speed) = measured.and_then(|known| known.speed(&implementation.name())) {
            out += &lines(&[("measured", format!("{speed:.0} MiB/s on this CPU"))]);
        }
    }
    let Some(drivers) = drivers else { return out };
    for driver in of(drivers, algorithm) {
        out.push('\n');
        out += &lines(&[
            ("kernel driver", quote::printable(&driver.driver)),
            ("priority", driver.priority.map_or("-".into(), |priority| priority.to_string())),
            ("selftest", quote::printable(&driver.selftest)),
        ]);
    }
    if of(drivers, algorithm).next().is_none() {
        out += &format!("\n{}", lines(&[("kernel driver", "- (not in /proc/crypto now)".into())]));
    }
    out
}

/// Explains the order of preference. Returns an empty text if no algorithm has several
/// implementations.
fn why(algorithms: &[Algorithm]) -> String {
    let mut several = algorithms.iter().filter(|known| implementations(**known).len() > 1);
    let Some(first) = several.next() else { return String::new() };
    let order = match assumed_of(&choices(*first)) {
        Some(cpus) => format!("a guess, by cycles for a byte on {cpus}, all lanes filled"),
        None => "an assumed order, which was not measured on this architecture".to_owned(),
    };
    format!(
        "\n{}\nTo measure on this CPU: blkhash algorithms --measure {first}\n",
        text::wrapped(&format!("Preference: {order}."), 0, WIDTH)
    )
}

fn json(algorithm: Algorithm, drivers: Option<&[Driver]>, measured: Option<&Measured>) -> String {
    let (known, trivia) = (algorithm.properties(), Trivia::of(algorithm));
    let choices = choices(algorithm);
    let assumed_of = assumed_of(&choices);
    let implementations = choices.iter().map(|choice| {
        let implementation = &choice.implementation;
        let is_ranked = choices.len() > 1;
        Implementation {
            name: implementation.name(),
            lanes: implementation.lanes,
            needs: implementation.feature.map(blkhash::Feature::name),
            rank: is_ranked.then(|| choice.rank(&choices)),
            assumed_cycles_per_byte: assumed_of.is_some().then(|| choice.assumed_cycles()),
            measured_mib_per_second: measured.map(|known| known.speed(&implementation.name())),
            chosen: choice.batches.clone(),
            reason: choice.reason.clone(),
            selftest: self_test(implementation.status),
        }
    });
    let object = records::Algorithm {
        name: known.name,
        aliases: known.aliases,
        digest_bits: 8 * known.digest_size,
        strength: known.strength.to_string(),
        standard: known.fips,
        fits_32_bytes: known.fits_32_bytes(),
        licence: trivia.licence,
        linux: trivia.linux != Linux::Absent,
        kernel_name: kernel_name(algorithm),
        used_by: trivia.used_by,
        assumed_of: assumed_of.clone(),
        implementations: implementations.collect(),
        cpu: measured.map(Measured::cpu),
        measured_best: measured.map(|known| known.choice(algorithm).map(|it| it.best.as_str())),
        kernel: drivers.map(|drivers| of(drivers, algorithm).collect()),
    };
    json::text(&object)
}

/// Returns the drivers of an algorithm, the preferred one first.
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

/// Explanations of the column of implementations.
const NOTES: [&str; 3] = [
    "Implementation: assumed to be the best for many blocks at a time on this CPU.",
    "A large job measures which one is the fastest.",
    "'blkhash algorithms NAME' shows the others, and why they are not used.",
];

/// Columns that narrow tables leave out.
const SPARE: [&str; 5] = ["FIPS", "Strength", "Used by", "Kernel driver", "Bits"];

/// The column of speeds.
const SPEED: usize = 5;

/// A number of blocks that fills the lanes of any implementation.
const MANY: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_fits(text: &str) {
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
    }

    #[test]
    fn tables_fit_a_terminal() {
        let longest = |algorithm: Algorithm| {
            let all = implementations(algorithm).iter().map(|known| known.variant);
            all.max_by_key(|variant| variant.len()).unwrap()
        };
        let drivers: Vec<Driver> = Algorithm::ALL
            .iter()
            .filter_map(|algorithm| kernel_name(*algorithm))
            .map(|name| Driver {
                name: name.to_owned(),
                driver: format!("\u{1b}[2J{name}-{}", "x".repeat(120)),
                ..Driver::default()
            })
            .collect();
        for drivers in [None, Some(&drivers[..])] {
            let text = table(WIDTH, Algorithm::ALL, drivers, None, longest);
            assert_fits(&text);
            assert_eq!(text.lines().count(), Algorithm::ALL.len() + 2);
            assert!(!text.contains('\u{1b}'));
            let name = "blake2s_simd-avx512-x16";
            assert_fits(&table(WIDTH, Algorithm::ALL, drivers, None, |_| name));
            let narrow = table(40, Algorithm::ALL, drivers, None, |_| name);
            assert!(narrow.contains(name) && narrow.lines().all(|line| line.chars().count() <= 40));
            assert_fits(&summary(Algorithm::ALL, drivers, None));
        }
    }

    #[test]
    fn measured_algorithms_have_the_speed_of_each_implementation() {
        let (sha256, md5) = (Algorithm::Sha256, Algorithm::Md5);
        let measured = Measured::new(&[sha256, md5]);
        for known in [sha256, md5].into_iter().flat_map(implementations) {
            let is_ready = known.status == Status::Ready;
            assert_eq!(measured.speed(&known.name()).is_some_and(|speed| speed > 0.0), is_ready);
        }
        let ready = implementations(sha256).iter().filter(|it| it.status == Status::Ready);
        let has_choice = ready.count() > 1;
        assert_eq!(measured.choice(sha256).is_some(), has_choice);
        assert!(measured.choice(md5).is_none());
        let text =
            table(WIDTH, &[sha256, md5, Algorithm::Blake3], None, Some(&measured), |_| "soft");
        assert_eq!(text.lines().filter(|line| line.contains(" - ")).count(), 2, "{text}");
        let text = record(sha256, None, Some(&measured)) + &choices_of(&measured);
        assert!(text.contains(measured.cpu()), "{text}");
        assert_eq!(text.contains("A large job would use sha256-"), has_choice, "{text}");
        assert!(record(md5, None, Some(&measured)).contains("MiB/s on this CPU"));
        let object: serde_json::Value =
            serde_json::from_str(&json(sha256, None, Some(&measured))).unwrap();
        let best = measured.choice(sha256).map(|choice| choice.best.as_str());
        assert_eq!(object["measured_best"].as_str(), best);
    }

    #[test]
    fn records_fit_a_terminal_and_show_no_constant_as_measured() {
        for &algorithm in Algorithm::ALL {
            let text = record(algorithm, None, None) + &why(&[algorithm]);
            assert_fits(&text);
            assert!(!text.contains("cycles/"), "{text}");
            assert_eq!(text.contains("\nPreference: "), implementations(algorithm).len() > 1);
        }
    }
}
