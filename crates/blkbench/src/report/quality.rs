//! The qualities of checksums: a table for each property.

use super::WIDTH;
use crate::quality::{BLOCK, Quality};
use crate::text::{self, number};

/// Formats a table for each property.
pub fn quality(found: &[Quality]) -> String {
    let mut out = format!("Checksums of blocks of {BLOCK} bytes, the same noise in every run\n");
    if let Some(first) = found.first() {
        out += &avalanche(first, found);
        out += &detection(found);
        out += &collisions(first, found);
        out += &forgery(found);
    }
    out
}

fn avalanche(first: &Quality, found: &[Quality]) -> String {
    let title = format!(
        "Avalanche: one bit of the block is flipped, {} bits in {} blocks each. The bias of a bit of the checksum is \
         0 % if it flips half of the time, and 100 % if it always or never flips: over all flips, and the worst for \
         one bit of the block, next to what chance gives. A CRC is linear: each bit of the block always flips \
         the same ones, which is no defect against accidents.",
        first.avalanche.positions, first.avalanche.blocks
    );
    let rows = found.iter().map(|quality| {
        let measured = &quality.avalanche;
        let shares =
            [measured.mean, measured.worst_bit, measured.worst_pair, measured.expected_pair];
        let shares = shares.map(|share| format!("{:.2} %", 100.0 * share));
        [quality.algorithm.to_owned(), quality.bits.to_string()].into_iter().chain(shares).collect()
    });
    let heads = ["Digest", ">Bits", ">Bits that flip", ">Worst bias", ">For one bit", ">By chance"];
    section(&title, &heads, &rows.collect::<Vec<_>>())
}

fn detection(found: &[Quality]) -> String {
    let title = "Detection: errors in a block that leave its checksum as it was. What all errors of a kind do to a \
                 linear checksum follows from what each bit does, and is computed; samples are hashed.";
    let mut rows = Vec::new();
    for quality in found {
        let mut row = |errors: String, tried: String, undetected: String| {
            rows.push(vec![quality.algorithm.to_owned(), errors, tried, undetected]);
        };
        for errors in &quality.errors {
            let all = if errors.all { "all " } else { "" };
            row(
                errors.what.clone(),
                format!("{all}{}", errors.tried),
                errors.undetected.to_string(),
            );
        }
        if let Some(length) = quality.shortest_undetected_burst {
            let errors = format!("shortest undetected burst: {length} bits");
            row(errors, "-".into(), "1 pattern".into());
        }
    }
    section(title, &["Digest", "Errors", ">Tried", ">Undetected"], &rows)
}

fn collisions(first: &Quality, found: &[Quality]) -> String {
    let (blocks, expected) = (first.collisions.blocks, first.collisions.expected);
    let title = format!(
        "Collisions of 32 bits of the checksum in {blocks} blocks; chance has {expected:.1} ± {:.1}.",
        expected.sqrt()
    );
    let rows = found.iter().map(|quality| {
        let counted = &quality.collisions;
        vec![quality.algorithm.to_owned(), counted.low.to_string(), counted.high.to_string()]
    });
    section(&title, &["Digest", ">Low 32 bits", ">High 32 bits"], &rows.collect::<Vec<_>>())
}

fn forgery(found: &[Quality]) -> String {
    let title = "Forgery: a block is changed, and then more bytes of it, so that it has the checksum of the original. \
                 One thread; every forged block is hashed to check it.";
    let rows = found.iter().map(|quality| {
        let cells = match &quality.forgery {
            Some(forgery) => [
                forgery.bytes.to_string(),
                number(forgery.microseconds),
                format!("{:.0}", 1e6 / forgery.microseconds),
                forgery.how.to_owned(),
            ],
            None => ["-", "-", "-", NO_FORGER].map(str::to_owned),
        };
        [quality.algorithm.to_owned()].into_iter().chain(cells).collect()
    });
    let heads = ["Digest", ">Bytes", ">Microseconds", ">In a second", "How"];
    section(title, &heads, &rows.collect::<Vec<_>>())
}

/// Formats a table below a paragraph that explains it.
fn section(title: &str, heads: &[&str], rows: &[Vec<String>]) -> String {
    format!("\n{}\n\n{}", text::wrapped(title, 0, WIDTH), text::table(heads, rows))
}

/// <https://github.com/Cyan4973/xxHash>: "non-cryptographic hash algorithm".
const NO_FORGER: &str = "none here; it is non-cryptographic";
