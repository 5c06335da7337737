//! Output of the measurements as tables and as JSON.

use blkbench::report::WIDTH;
use blkbench::text::{self, Align, number};

use super::Quality;
use super::hash::BLOCK;
use crate::json;

/// Formats JSON, one object per line.
pub fn json(found: &[Quality]) -> String {
    found.iter().map(|quality| json::text(quality) + "\n").collect()
}

/// Formats a table for each property.
pub fn text(found: &[Quality]) -> String {
    let mut out = format!("Checksums of blocks of {BLOCK} bytes, the same noise in every run\n");
    out += &avalanche(found);
    out += &detection(found);
    out += &collisions(found);
    out += &forgery(found);
    out
}

fn avalanche(found: &[Quality]) -> String {
    let heads = [
        ("Digest", Align::Left),
        ("Bits", Align::Right),
        ("Bits that flip", Align::Right),
        ("Worst bias", Align::Right),
        ("For one bit", Align::Right),
        ("By chance", Align::Right),
    ];
    let percent = |share: f64| format!("{:.2} %", 100.0 * share);
    let rows: Vec<Vec<String>> = found
        .iter()
        .map(|quality| {
            let measured = &quality.avalanche;
            vec![
                quality.algorithm.to_owned(),
                quality.bits.to_string(),
                percent(measured.mean),
                percent(measured.worst_bit),
                percent(measured.worst_pair),
                percent(measured.expected_pair),
            ]
        })
        .collect();
    let what = found.first().map_or(String::new(), |quality| {
        let measured = &quality.avalanche;
        format!("{} bits in {} blocks each", measured.positions, measured.blocks)
    });
    let title = format!(
        "Avalanche: one bit of the block is flipped, {what}. The bias of a bit of the checksum is 0 % \
         if it flips half of the time, and 100 % if it always or never flips: over all flips, and the \
         worst for one bit of the block, with what chance gives beside it. A CRC is linear: each bit \
         of the block always flips the same ones, which is no defect against accidents."
    );
    section(&title, &heads, &rows)
}

fn detection(found: &[Quality]) -> String {
    let heads = [
        ("Digest", Align::Left),
        ("Errors", Align::Left),
        ("Tried", Align::Right),
        ("Undetected", Align::Right),
    ];
    let mut rows = Vec::new();
    for quality in found {
        for errors in &quality.errors {
            let tried = errors.tried.to_string();
            rows.push(vec![
                quality.algorithm.to_owned(),
                errors.what.clone(),
                if errors.all { format!("all {tried}") } else { tried },
                errors.undetected.to_string(),
            ]);
        }
        if let Some(length) = quality.shortest_undetected_burst {
            rows.push(vec![
                quality.algorithm.to_owned(),
                format!("shortest undetected burst: {length} bits"),
                "-".into(),
                "1 pattern".into(),
            ]);
        }
    }
    let title = "Detection: errors in a block that leave its checksum as it was. What all errors of a \
                 kind do to a linear checksum follows from what each bit does, and is computed; \
                 samples are hashed.";
    section(title, &heads, &rows)
}

fn collisions(found: &[Quality]) -> String {
    let heads =
        [("Digest", Align::Left), ("Low 32 bits", Align::Right), ("High 32 bits", Align::Right)];
    let rows: Vec<Vec<String>> = found
        .iter()
        .map(|quality| {
            let counted = &quality.collisions;
            vec![quality.algorithm.to_owned(), counted.low.to_string(), counted.high.to_string()]
        })
        .collect();
    let what = found.first().map_or(String::new(), |quality| {
        let counted = &quality.collisions;
        let deviation = counted.expected.sqrt();
        format!("{} blocks; chance has {:.1} ± {deviation:.1}", counted.blocks, counted.expected)
    });
    section(&format!("Collisions of 32 bits of the checksum in {what}."), &heads, &rows)
}

fn forgery(found: &[Quality]) -> String {
    let heads = [
        ("Digest", Align::Left),
        ("Bytes", Align::Right),
        ("Microseconds", Align::Right),
        ("In a second", Align::Right),
        ("How", Align::Left),
    ];
    let rows: Vec<Vec<String>> = found
        .iter()
        .map(|quality| {
            let name = quality.algorithm.to_owned();
            match &quality.forgery {
                Some(forgery) => vec![
                    name,
                    forgery.bytes.to_string(),
                    number(forgery.microseconds),
                    format!("{:.0}", 1e6 / forgery.microseconds),
                    forgery.how.to_owned(),
                ],
                None => vec![name, "-".into(), "-".into(), "-".into(), NO_FORGER.to_owned()],
            }
        })
        .collect();
    let title = "Forgery: a block is changed, and then more bytes of it, so that it has the checksum of \
                 the original. One thread; every forged block is hashed to check it.";
    section(title, &heads, &rows)
}

/// Formats a table below a paragraph that explains it.
fn section(title: &str, heads: &[(&str, Align)], rows: &[Vec<String>]) -> String {
    format!("\n{}\n\n{}", text::wrapped(title, 0, WIDTH), text::table(heads, rows))
}

/// <https://github.com/Cyan4973/xxHash>: "non-cryptographic hash algorithm".
const NO_FORGER: &str = "none here; it is non-cryptographic";
