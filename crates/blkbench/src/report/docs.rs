//! A table as in the documentation of btrfs: digest, cycles per block, ratio, implementation.

use super::{batches, header, scenario, sections};
use crate::bench::Report;
use crate::clock::SHORT_TICKS;
use crate::text::{self, Align, number};

/// Formats the report as one table for each scenario.
pub fn docs(report: &Report) -> String {
    let conditions = &report.conditions;
    let mut out = String::new();
    for (name, value) in header(report) {
        out += &format!("{:<10} {value}\n", format!("{name}:"));
    }
    let size = text::size(conditions.block_size as u64).replace(' ', "");
    let ticks = format!("{SHORT_TICKS}/{size}");
    let core = format!("Core cycles/{size}");
    let has_cycles = conditions.core_cycles_missing.is_none();
    for (circumstances, rows) in sections(report) {
        out += &format!("\n{}, {}\n\n", batches(conditions), scenario(circumstances));
        let mut heads = vec![("Digest", Align::Left), (ticks.as_str(), Align::Right)];
        if has_cycles {
            heads.push((core.as_str(), Align::Right));
        }
        let others = [("Ratio", Align::Right), ("MiB/s", Align::Right), ("±", Align::Right)];
        heads.extend(others);
        heads.push(("Implementation", Align::Left));
        let rows: Vec<Vec<String>> = rows
            .iter()
            .map(|row| {
                let mut cells = vec![row.group.clone(), number(row.ticks.median)];
                if has_cycles {
                    cells.push(row.core_cycles.map_or("-".into(), |cycles| number(cycles.median)));
                }
                cells.extend([
                    row.ratio.map_or("-".into(), |ratio| format!("{ratio:.2}")),
                    row.speed.map_or("-".into(), |speed| format!("{:.0}", speed.median)),
                    format!("{:.1} %", row.ticks.percent()),
                    row.name.clone(),
                ]);
                cells
            })
            .collect();
        out += &text::table(&heads, &rows);
    }
    out
}
