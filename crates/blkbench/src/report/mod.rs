//! Formats the results for people and programs.

mod csv;
mod docs;
mod json;
mod quality;
mod speedtest;
mod svg;

pub use csv::csv;
pub use docs::docs;
pub use json::{Line, Run, json};
pub use quality::quality;
pub use speedtest::speedtest;
pub use svg::svg;

use crate::bench::{Conditions, Memory, Report, Row, Scenario};
use crate::text;

/// Describes the scenario of a row.
fn scenario(scenario: Scenario) -> String {
    let threads = match scenario.threads {
        1 => "1 thread".to_owned(),
        threads => format!("{threads} threads"),
    };
    match scenario.memory {
        Memory::Hot => format!("hot in cache, {threads}"),
        Memory::Cold => format!("from memory, {threads}"),
    }
}

/// Describes the batches.
fn batches(conditions: &Conditions) -> String {
    let size = text::size(conditions.block_size as u64);
    match conditions.batch {
        1 => format!("1 block of {size} at a time"),
        batch => format!("{batch} blocks of {size} at a time"),
    }
}

/// Describes the units of the figures.
fn unit(conditions: &Conditions) -> String {
    let rate = conditions.ticks_per_nanosecond;
    let unit = match conditions.ticks {
        "nanoseconds" => "nanoseconds".to_owned(),
        ticks => format!("{ticks}, {rate:.2} GHz"),
    };
    match &conditions.core_cycles_missing {
        None => format!("{unit}; core cycles from perf events"),
        Some(reason) => format!("{unit}; no core cycles ({reason})"),
    }
}

/// The lines above a table: `NAME: VALUE`, with values from the column after `names` on.
fn header(report: &Report, names: usize) -> String {
    let lines = facts(report).into_iter().map(|(name, value)| {
        let line = format!("{:<names$} {value}", format!("{name}:"));
        text::wrapped(&line, names + 1, WIDTH) + "\n"
    });
    lines.collect()
}

/// The circumstances of all rows, by name.
fn facts(report: &Report) -> Vec<(&'static str, String)> {
    let Report { machine, conditions, .. } = report;
    let pinned = if conditions.pinned { "pinned" } else { "not pinned" };
    let cache = machine.last_level_cache.map_or("unknown".to_owned(), text::size);
    let mut lines = vec![
        (
            "CPU",
            format!("{}, {} processors, last-level cache {cache}", machine.cpu, machine.processors),
        ),
        ("Features", machine.features.join(" ")),
        ("Kernel", machine.kernel.clone()),
        ("Compiler", machine.compiler.clone()),
        ("Date", format!("{} UTC", machine.date)),
        ("Units", unit(conditions)),
        ("Samples", format!("{} a row, median; threads {pinned}", conditions.repetitions)),
    ];
    if let Some(size) = conditions.cold_buffer {
        lines.push((
            "Memory",
            format!("cold blocks come from a buffer of {}", text::size(size as u64)),
        ));
    }
    lines.extend(conditions.notes.iter().map(|note| ("Note", note.clone())));
    lines
}

/// Returns the rows of each scenario.
fn sections(report: &Report) -> impl Iterator<Item = (Scenario, &[Row])> {
    report.rows.chunk_by(|a, b| a.scenario == b.scenario).map(|rows| (rows[0].scenario, rows))
}

/// Columns of a terminal.
pub const WIDTH: usize = 80;

/// Stands after a figure whose measurements are noisy.
pub const MARK: char = '*';

#[cfg(test)]
mod tests;
