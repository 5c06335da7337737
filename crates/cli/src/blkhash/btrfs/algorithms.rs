//! `blkhash btrfs algorithms`: the table of the btrfs documentation, measured on this CPU.

use std::io;
use std::time::Duration;

use blkbench::report::WIDTH;
use blkbench::text::{self, Align};
use blkbench::{Amount, Bench, Memory, Row, Scenario};
use blkbtrfs::ChecksumType;
use blkhash::{Digester, Implementation, Strength};
use serde_json::json;

use super::args;
use crate::blkhash::bench::{self, DEFAULT_BATCH, DEFAULT_BLOCK_SIZE};
use crate::blkhash::verdict::Outcome;
use crate::blkhash::{print, warn};
use crate::size::Bytes;

/// Measures the checksums and prints the table.
pub fn run(args: &args::Algorithms) -> io::Result<Outcome> {
    warn(ChecksumType::ALL.map(ChecksumType::algorithm));
    let lines = measure();
    let text = if args.json {
        lines.iter().map(|line| format!("{}\n", object(line, args.data))).collect()
    } else {
        table(&lines, args.data)
    };
    print(&text)?;
    Ok(Outcome::Clean)
}

/// A checksum with its implementation and speed.
struct Line {
    kind: ChecksumType,
    implementation: &'static Implementation,
    row: Row,
}

fn measure() -> Vec<Line> {
    let best = ChecksumType::ALL
        .map(|kind| (kind, Digester::new(kind.algorithm()).implementation_for(DEFAULT_BATCH)));
    let contestants = best.map(|(kind, implementation)| {
        let mut contestant = bench::implementation(*implementation);
        contestant.is_reference = kind == ChecksumType::Crc32c;
        contestant
    });
    let bench = Bench {
        block_size: DEFAULT_BLOCK_SIZE,
        batch: DEFAULT_BATCH,
        scenarios: vec![Scenario { threads: 1, memory: Memory::Hot }],
        amount: Amount::Time(TIME),
    };
    let report = bench.run(&contestants, |_| {});
    let lines = best.into_iter().zip(report.rows);
    lines.map(|((kind, implementation), row)| Line { kind, implementation, row }).collect()
}

fn table(lines: &[Line], data: Option<u64>) -> String {
    let heads = [
        ("Checksum", Align::Left),
        ("Bytes", Align::Right),
        ("Forgery", Align::Left),
        ("FIPS", Align::Left),
        ("Cycles", Align::Right),
        ("Ratio", Align::Right),
        ("MiB/s", Align::Right),
        ("Computed by", Align::Left),
        ("Space", Align::Right),
    ];
    let rows: Vec<Vec<String>> = lines
        .iter()
        .map(|line| {
            let properties = line.kind.algorithm().properties();
            let space = match data {
                Some(size) => Bytes(space(line.kind, size)).to_string(),
                None => format!("{:.2} %", 100.0 * line.kind.size() as f64 / SECTOR as f64),
            };
            vec![
                line.kind.name().to_owned(),
                line.kind.size().to_string(),
                if is_hard(line.kind) { "hard" } else { "easy" }.to_owned(),
                properties
                    .fips
                    .map_or("-", |standard| standard.trim_start_matches("FIPS "))
                    .to_owned(),
                format!("{}{}", text::number(line.row.ticks.median), bench::mark(&line.row.ticks)),
                text::number(line.row.ratio.unwrap_or_default()),
                line.row.speed.map_or("-".to_owned(), |speed| text::number(speed.median)),
                line.implementation.variant.to_owned(),
                space,
            ]
        })
        .collect();
    let what = data.map_or("in proportion to the data".to_owned(), |size| {
        format!("for {} of data", Bytes(size))
    });
    let notes = format!(
        "\nForgery: making two blocks with the same checksum. Cycles: of the time stamp counter for a \
         block of 4 KiB, on one thread, 16 blocks at a time. Space: {what}; metadata that is DUP or \
         mirrored takes it as often. Which checksum to choose: blkhash btrfs algorithms --help"
    );
    let noisy = lines.iter().filter(|line| line.row.ticks.is_noisy()).count();
    format!(
        "{}{}\n{}",
        text::table(&heads, &rows),
        text::wrapped(&notes, 0, WIDTH),
        bench::note(noisy, lines.len(), "measure again")
    )
}

fn object(line: &Line, data: Option<u64>) -> serde_json::Value {
    let properties = line.kind.algorithm().properties();
    json!({
        "checksum": line.kind.name(),
        "algorithm": properties.name,
        "bytes": line.kind.size(),
        "collisions_are_hard": is_hard(line.kind),
        "standard": properties.fips,
        "ticks": line.row.ticks.median,
        "ratio": line.row.ratio,
        "mib_per_second": line.row.speed.map(|speed| speed.median),
        "implementation": line.implementation.name(),
        "data_bytes": data,
        "space_bytes": data.map(|size| space(line.kind, size)),
    })
}

fn is_hard(kind: ChecksumType) -> bool {
    kind.algorithm().properties().strength == Strength::Cryptographic
}

/// Returns the size in bytes of the checksums for `data` bytes of data, in one copy and without the
/// headers of tree blocks.
pub fn space(kind: ChecksumType, data: u64) -> u64 {
    data.div_ceil(SECTOR).saturating_mul(kind.size() as u64)
}

/// Bytes of data for each checksum, which is the default sector size of mkfs.btrfs.
const SECTOR: u64 = 4096;

/// Time spent on each checksum.
const TIME: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_of_checksums() {
        // The btrfs documentation gives the same sizes.
        assert_eq!(space(ChecksumType::Crc32c, 1 << 30), 1 << 20);
        assert_eq!(space(ChecksumType::Sha256, 1 << 40), 8 << 30);
        assert_eq!(space(ChecksumType::Xxhash, 1), 8);
        assert_eq!(space(ChecksumType::Xxhash, 0), 0);
    }
}
