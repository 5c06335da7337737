//! `blkhash map dups`: counts blocks that occur more than once.

use std::fmt::Write as _;
use std::io::Write as _;

use blkmap::{DupsSummary, Header};

use super::args::Dups;
use crate::blkhash::confine_to_open_files;
use crate::json;
use crate::map::open;
use crate::problem::{Failure, Outcome, Problem};
use crate::records;
use crate::size::Bytes;
use crate::stdio::Stdout;

/// Counts the blocks of the maps on the command line.
pub fn run(args: &Dups) -> Result<Outcome, Failure> {
    let maps: Vec<_> = args.maps.iter().map(|name| (name, open::open(name))).collect();
    confine_to_open_files();
    let mut dups = blkmap::Dups::default();
    let (mut header, mut outcome) = (None, Outcome::Clean);
    for (name, map) in maps {
        match map.and_then(|map| dups.add(&map).map(|()| *map.header())) {
            Ok(parameters) => header = Some(parameters),
            Err(error) => {
                Problem::from(&error).report(name);
                outcome = Outcome::Unknown;
            }
        }
    }
    // The counts of some of the maps would look like counts of all.
    if let (Some(header), Outcome::Clean) = (header, outcome) {
        let summary = dups.summary();
        let text = match args.json {
            true => object(args.maps.len(), &header, &summary),
            false => table(args.maps.len(), &header, &summary),
        };
        Stdout.write_all(text.as_bytes())?;
    }
    Ok(outcome)
}

fn table(maps: usize, header: &Header, summary: &DupsSummary) -> String {
    let mut rows = vec![
        ("maps", maps.to_string()),
        ("block size", Bytes(header.block_size.into()).to_string()),
        ("blocks", summary.blocks.to_string()),
        ("zeros", summary.zero_blocks.to_string()),
        ("different", summary.different.to_string()),
        ("repeated", summary.repeated.to_string()),
        ("could save", Bytes(summary.repeated_bytes).to_string()),
    ];
    if summary.unknown_blocks > 0 {
        rows.push(("not known", summary.unknown_blocks.to_string()));
    }
    if summary.sampled > 1 {
        rows.push(("estimated", format!("from one of {} digests", summary.sampled)));
    }
    rows.iter().fold(String::new(), |mut text, (label, value)| {
        let label = format!("{label}:");
        let _ = writeln!(text, "{label:<12}{value}");
        text
    })
}

fn object(maps: usize, header: &Header, summary: &DupsSummary) -> String {
    json::line(&records::map::Duplicates {
        maps,
        digest: header.algorithm.name(),
        block_size: header.block_size.get(),
        blocks: summary.blocks,
        zero_blocks: summary.zero_blocks,
        different_blocks: summary.different,
        repeated_blocks: summary.repeated,
        repeated_bytes: summary.repeated_bytes,
        unknown_blocks: summary.unknown_blocks,
        sampled: summary.sampled,
    })
}
