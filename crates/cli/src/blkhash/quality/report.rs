//! What was measured, for people and programs.

use blkbench::text::{self, Align, number};

use super::Quality;
use super::hash::BLOCK;

/// An object a line.
pub fn json(found: &[Quality]) -> String {
    let line = |quality| serde_json::to_string(quality).expect("plain data is JSON") + "\n";
    found.iter().map(line).collect()
}

/// A table for each property.
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
    format!(
        "\nAvalanche: one bit of the block flipped, {what}.\nA bit of the checksum has a bias of 0 % if \
         it flips half of the time, of 100 % if always or never:\nover all flips, and at worst for one \
         bit of the block (by chance that is as said beside it).\nA CRC is linear: each bit of the \
         block always flips the same ones, which is no defect against accidents.\n\n{}",
        text::table(&heads, &rows)
    )
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
    format!(
        "\nDetection: errors in a block that leave its checksum as it was. What linear checksums do \
         with all\nerrors follows from what each bit does, and is computed; samples are hashed.\n\n{}",
        text::table(&heads, &rows)
    )
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
    format!("\nCollisions of 32 bits of the checksum in {what}.\n\n{}", text::table(&heads, &rows))
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
    format!(
        "\nForgery: a block was changed, and so many bytes more of it, to have the checksum of the \
         original.\nOne thread; every forged block was hashed to check it.\n\n{}",
        text::table(&heads, &rows)
    )
}

/// <https://github.com/Cyan4973/xxHash>: "non-cryptographic hash algorithm".
const NO_FORGER: &str = "no forger here; its authors call it non-cryptographic";
