//! `blkhash btrfs algorithms`: the checksums of btrfs, and how fast the kernel and this program are on this host.

use std::time::Duration;

use blkbench::report::WIDTH;
use blkbench::text;
use blkbench::{Bench, Row};
use blkbtrfs::ChecksumType;
use blkhash::{Digester, Implementation};

use super::args;
use crate::blkhash::bench::file_system::{self, InKernel, is_hard};
use crate::blkhash::bench::{self, DEFAULT_BATCH, DEFAULT_BLOCK_SIZE};
use crate::blkhash::kernel::{self, Driver};
use crate::blkhash::{print, warn};
use crate::problem::{Failure, Outcome};
use crate::records::btrfs::Checksum;
use crate::size::Bytes;
use crate::{json, quote, stdio};

/// Measures the checksums and prints the table.
pub fn run(args: &args::Algorithms) -> Result<Outcome, Failure> {
    warn(ChecksumType::ALL.map(ChecksumType::algorithm));
    let lines = measure(&kernel::drivers(), TIME);
    let text = if args.json {
        lines.iter().map(|line| json::line(&record(line, args.data))).collect()
    } else {
        table(&lines, args.data, stdio::columns())
    };
    print(&text)
}

/// A checksum, and the speed of what computes it.
struct Line {
    kernel: InKernel,
    /// What this program uses, and its figures for many blocks at a time.
    implementation: &'static Implementation,
    row: Row,
}

fn measure(drivers: &[Driver], time: Duration) -> Vec<Line> {
    let best = ChecksumType::ALL
        .map(|kind| (kind, Digester::new(kind.algorithm()).implementation_for(DEFAULT_BATCH)));
    let contestants = best.map(|(kind, implementation)| {
        let mut contestant = bench::implementation(*implementation);
        contestant.is_reference = kind == ChecksumType::Crc32c;
        contestant
    });
    let bench = Bench::hot(DEFAULT_BLOCK_SIZE, DEFAULT_BATCH, time);
    let rows = bench.run(&contestants, |_| {}).rows;
    let lines = file_system::measure(drivers, time).into_iter().zip(best).zip(rows);
    lines.map(|((kernel, (_, implementation)), row)| Line { kernel, implementation, row }).collect()
}

/// Formats the table and what it means, for a terminal with this number of columns if there is one.
fn table(lines: &[Line], data: Option<u64>, columns: Option<usize>) -> String {
    let width = columns.map_or(WIDTH, |columns| columns.min(WIDTH));
    let heads = ["Checksum", ">Bytes", "Forgery", "Kernel driver", ">Kernel", ">Verify", ">Space"];
    let speed = |row: &Row| {
        let speed = row.speed.map_or("-".to_owned(), |speed| text::number(speed.median));
        format!("{speed}{}", bench::mark(&row.ticks))
    };
    let rows: Vec<Vec<String>> = lines
        .iter()
        .map(|line| {
            let space = match data {
                Some(size) => Bytes(space(line.kernel.kind, size)).to_string(),
                None => format!("{:.2} %", 100.0 * line.kernel.kind.size() as f64 / SECTOR as f64),
            };
            let driver = line.kernel.driver.as_deref().unwrap_or("not loaded");
            vec![
                line.kernel.kind.name().to_owned(),
                line.kernel.kind.size().to_string(),
                if is_hard(line.kernel.kind) { "hard" } else { "easy" }.to_owned(),
                quote::printable(driver),
                line.kernel.like.as_ref().map_or("unknown ".to_owned(), speed),
                speed(&line.row),
                space,
            ]
        })
        .collect();
    let what = data.map_or("in proportion to the data".to_owned(), |size| {
        format!("for {} of data", Bytes(size))
    });
    let like: Vec<&str> =
        lines.iter().filter_map(|it| Some(it.kernel.like.as_ref()?.name.as_str())).collect();
    let like = match like.as_slice() {
        [] => String::new(),
        names => format!(" with code of the same kind in this program ({})", names.join(", ")),
    };
    let notes = [
        "Forgery: making two blocks with the same checksum.".to_owned(),
        format!(
            "Kernel: MiB/s of one core that computes one block of 4 KiB after the other, as the file \
             system does for every read and write. The kernel's own code cannot be measured from \
             here. This was measured{like}, and is about right."
        ),
        "Verify: MiB/s of one core for `blkhash btrfs verify`, which computes 16 blocks at a time. \
         It says nothing about the file system."
            .to_owned(),
        format!("Space: {what}. Metadata that is DUP or mirrored takes it as often."),
    ];
    let notes: String = notes.iter().map(|note| text::wrapped(note, 2, width) + "\n").collect();
    let figures =
        lines.iter().flat_map(|line| [Some(&line.row), line.kernel.like.as_ref()]).flatten();
    let all = figures.clone().count();
    let noisy = figures.filter(|row| row.ticks.is_noisy()).count();
    format!(
        "{}\n{notes}{}\n{}\n",
        text::table_within(columns.unwrap_or(usize::MAX), &SPARE, &heads, &rows),
        bench::note(noisy, all, "measure again"),
        text::wrapped(&advice(lines), 0, width)
    )
}

/// Returns what the speeds of the kernel mean for mkfs.btrfs.
fn advice(lines: &[Line]) -> String {
    let choice = |is_hard_wanted: bool| {
        let candidates = lines.iter().filter(|line| is_hard(line.kernel.kind) == is_hard_wanted);
        let mut speeds = Vec::new();
        for line in candidates {
            speeds.push((line.kernel.kind.name(), line.kernel.speed()?));
        }
        // The first is the one with more users.
        let (first, second) = (*speeds.first()?, *speeds.get(1)?);
        let (fast, slow) =
            if second.1 > NEARLY * first.1 { (second, first) } else { (first, second) };
        let ratio = fast.1 / slow.1;
        Some(match ratio > NEARLY {
            true => format!("{} ({ratio:.1} times as fast as {})", fast.0, slow.0),
            false => format!("{} (about as fast as {})", fast.0, slow.0),
        })
    };
    let or_unknown = |choice: Option<String>, names| {
        choice.unwrap_or_else(|| format!("{names}, whose speed in the kernel is unknown"))
    };
    format!(
        "For this host: mkfs.btrfs --csum against errors: {}. Against forgery: {}. More: blkhash \
         btrfs algorithms --help",
        or_unknown(choice(false), "crc32c or xxhash"),
        or_unknown(choice(true), "sha256 or blake2b"),
    )
}

fn record(line: &Line, data: Option<u64>) -> Checksum<'_> {
    let properties = line.kernel.kind.algorithm().properties();
    Checksum {
        checksum: line.kernel.kind.name(),
        algorithm: properties.name,
        bytes: line.kernel.kind.size(),
        collisions_are_hard: is_hard(line.kernel.kind),
        standard: properties.fips,
        kernel_driver: line.kernel.driver.as_deref(),
        kernel_like: line.kernel.like.as_ref().map(|row| row.name.as_str()),
        kernel_mib_per_second: line.kernel.speed(),
        ticks: line.row.ticks.median,
        // Each of them reads, and crc32c is one of them.
        ratio: line.row.ratio.unwrap_or(f64::NAN),
        mib_per_second: line.row.speed.map_or(f64::NAN, |speed| speed.median),
        implementation: line.implementation.name(),
        data_bytes: data,
        space_bytes: data.map(|size| space(line.kernel.kind, size)),
    }
}

/// Returns the size in bytes of the checksums for `data` bytes of data, in one copy and without the
/// headers of tree blocks.
pub fn space(kind: ChecksumType, data: u64) -> u64 {
    data.div_ceil(SECTOR).saturating_mul(kind.size() as u64)
}

/// Bytes of data for each checksum, which is the default sector size of mkfs.btrfs.
const SECTOR: u64 = 4096;

/// Columns that narrow tables leave out.
const SPARE: [&str; 3] = ["Bytes", "Kernel driver", "Space"];

/// Time spent on each figure.
const TIME: Duration = Duration::from_millis(150);

/// Speeds that differ by less are equal.
const NEARLY: f64 = 1.1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_follows_from_the_kernel() {
        let driver = |name: &str, driver: &str| Driver {
            name: name.into(),
            driver: driver.into(),
            ..Driver::default()
        };
        let drivers = [
            driver("crc32c", "crc32c-generic"),
            driver("xxhash64", "xxhash64-generic"),
            driver("blake2b-256", "blake2b-256-generic"),
        ];
        const SHORT: Duration = Duration::from_millis(1);
        let mut lines = measure(&drivers, SHORT);
        let like = |line: &Line| line.kernel.like.as_ref().map(|row| row.name.clone());
        let names: Vec<_> = lines.iter().map(like).collect();
        let expected = [Some("crc32c-table"), Some("xxh64-soft"), None, Some("blake2b256-soft")];
        assert_eq!(names, expected.map(|name| name.map(str::to_owned)));
        let mut set = |speeds: [f64; 4]| {
            for (line, speed) in lines.iter_mut().zip(speeds) {
                // What this program does in batches has no part in the advice.
                line.row.speed = Some(blkbench::Spread::of([9e9 / speed]));
                let row = line.kernel.like.get_or_insert_with(|| line.row.clone());
                row.speed = Some(blkbench::Spread::of([speed]));
            }
            advice(&lines)
        };
        let text = set([10_000.0, 12_000.0, 1500.0, 600.0]);
        assert!(text.contains("xxhash (1.2 times as fast as crc32c)"), "{text}");
        assert!(text.contains("sha256 (2.5 times as fast as blake2b)"), "{text}");
        let text = set([10_000.0, 9500.0, 300.0, 600.0]);
        assert!(text.contains("crc32c (about as fast as xxhash)"), "{text}");
        assert!(text.contains("blake2b (2.0 times as fast as sha256)"), "{text}");
        let text = advice(&measure(&[], SHORT));
        assert!(text.contains("crc32c or xxhash, whose speed in the kernel is unknown"), "{text}");
        for data in [None, Some(10 << 40)] {
            let measured = measure(&drivers, SHORT);
            let narrow = table(&measured, data, Some(40));
            let (rows, _) = narrow.split_once("\n\n").unwrap();
            assert!(rows.lines().all(|line| line.chars().count() <= 40), "{rows}");
            assert!(rows.contains("Kernel") && rows.contains("Verify"), "{rows}");
            let text = table(&measured, data, None);
            assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
            assert!(text.contains("not loaded") && text.contains("unknown"), "{text}");
        }
    }

    #[test]
    fn space_of_checksums() {
        // The btrfs documentation gives the same sizes.
        assert_eq!(space(ChecksumType::Crc32c, 1 << 30), 1 << 20);
        assert_eq!(space(ChecksumType::Sha256, 1 << 40), 8 << 30);
        assert_eq!(space(ChecksumType::Xxhash, 1), 8);
        assert_eq!(space(ChecksumType::Xxhash, 0), 0);
    }
}
