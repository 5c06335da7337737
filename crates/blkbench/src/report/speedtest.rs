//! Lines as printed by btrfs-progs' hash-speedtest.

use super::{header, scenario, sections};
use crate::bench::Report;

/// Formats the report as such lines.
pub fn speedtest(report: &Report) -> String {
    let conditions = &report.conditions;
    let mut iterations: Vec<u64> = report.rows.iter().map(|row| row.blocks).collect();
    iterations.dedup();
    let iterations = match iterations[..] {
        [same] => same.to_string(),
        _ => "as many as fit the time".to_owned(),
    };
    let mut out =
        format!("Block size:     {}\nIterations:     {iterations}\n", conditions.block_size);
    out += &format!("Batch:          {}\n", conditions.batch);
    out += &header(report, 15);
    let name = |row: &crate::bench::Row| row.row_name.clone().unwrap_or_else(|| row.name.clone());
    let width = report.rows.iter().map(|row| name(row).len()).max().unwrap_or(0).max(16);
    for (circumstances, rows) in sections(report) {
        out += &format!("\n{}\n", scenario(circumstances));
        for row in rows {
            let ticks: u64 = row.samples.iter().map(|sample| sample.ticks).sum();
            let nanoseconds: u64 = row.samples.iter().map(|sample| sample.nanoseconds).sum();
            let bytes = row.blocks as f64 * conditions.block_size as f64;
            let speed = bytes / (1 << 20) as f64 / (nanoseconds.max(1) as f64 / 1e9);
            let each = ticks / row.blocks.max(1);
            let name = name(row);
            out += &format!(
                "{name:>width$}: cycles: {ticks:>12}, cycles/i {each:>8}, {speed:>12.3} MiB/s\n"
            );
        }
    }
    out
}
