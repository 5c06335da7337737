//! Comma-separated values, a line for each row.

use std::borrow::Cow;

use super::Memory;
use crate::bench::Report;

/// Formats the report as in RFC 4180, but with LF line ends, below a line of names.
pub fn csv(report: &Report) -> String {
    let conditions = &report.conditions;
    let mut out = NAMES.join(",") + "\n";
    for row in &report.rows {
        let memory = match row.scenario.memory {
            Memory::Hot => "hot",
            Memory::Cold => "cold",
        };
        let optional =
            |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.4}"));
        let cells = [
            quoted(&row.group).into_owned(),
            quoted(&row.name).into_owned(),
            row.scenario.threads.to_string(),
            memory.to_owned(),
            conditions.block_size.to_string(),
            conditions.batch.to_string(),
            row.blocks.to_string(),
            optional(Some(row.ticks.min)),
            optional(Some(row.ticks.median)),
            optional(Some(row.ticks.max)),
            optional(Some(row.ticks.mad)),
            optional(row.core_cycles.map(|cycles| cycles.median)),
            optional(row.ratio),
            optional(row.speed.map(|speed| speed.median)),
        ];
        out += &(cells.join(",") + "\n");
    }
    out
}

fn quoted(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\"")).into();
    }
    text.into()
}

const NAMES: [&str; 14] = [
    "digest",
    "implementation",
    "threads",
    "memory",
    "block_size",
    "batch",
    "blocks",
    "ticks_min",
    "ticks_median",
    "ticks_max",
    "ticks_mad",
    "core_cycles_median",
    "ratio",
    "mib_per_second",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_if_needed() {
        assert_eq!(quoted("sha256-soft"), "sha256-soft");
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
