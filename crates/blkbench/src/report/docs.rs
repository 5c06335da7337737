//! A table as in the documentation of btrfs: digest, cycles per block, ratio, implementation.

use super::{MARK, batches, header, scenario, sections};
use crate::bench::Report;
use crate::clock::SHORT_TICKS;
use crate::text::{self, Align, number};

/// The report as one such table for each scenario, the fastest first. Behind the spread of noisy rows is a [`MARK`].
///
/// Lines fit 80 columns, unless blocks are large or threads are many. Rows fit `width`, without some of the columns if
/// it is small.
pub fn docs(report: &Report, width: usize) -> String {
    let conditions = &report.conditions;
    let mut out = header(report, 10);
    let size = text::size(conditions.block_size as u64).replace(' ', "");
    let ticks = format!("{SHORT_TICKS}/{size}");
    let has_cycles = conditions.core_cycles_missing.is_none();
    for (circumstances, rows) in sections(report) {
        out += &format!("\n{}, {}\n", batches(conditions), scenario(circumstances));
        if has_cycles {
            out += &format!("{CORE_CYCLES}: core cycles for a block, from perf events\n");
        }
        out.push('\n');
        let mut heads = vec![("Digest", Align::Left), (ticks.as_str(), Align::Right)];
        if has_cycles {
            heads.push((CORE_CYCLES, Align::Right));
        }
        let others = [("Ratio", Align::Right), ("MiB/s", Align::Right), (SPREAD, Align::Right)];
        heads.extend(others);
        heads.push(("Implementation", Align::Left));
        let mut rows: Vec<_> = rows.iter().collect();
        rows.sort_by(|a, b| a.ticks.median.total_cmp(&b.ticks.median));
        let rows: Vec<Vec<String>> = rows
            .into_iter()
            .map(|row| {
                let mut cells = vec![row.group.clone(), number(row.ticks.median)];
                if has_cycles {
                    cells.push(row.core_cycles.map_or("-".into(), |cycles| number(cycles.median)));
                }
                cells.extend([
                    row.ratio.map_or("-".into(), |ratio| format!("{ratio:.2}")),
                    row.speed.map_or("-".into(), |speed| format!("{:.0}", speed.median)),
                    format!(
                        "{:.1}{}",
                        row.ticks.percent(),
                        if row.ticks.is_noisy() { MARK } else { ' ' }
                    ),
                    row.name.clone(),
                ]);
                cells
            })
            .collect();
        out += &text::table_within(width, &SPARE, &heads, &rows);
    }
    out
}

/// The head of the column of spreads, with a place for [`MARK`].
const SPREAD: &str = "± % ";

/// Columns that narrow tables leave out. The implementation has the name of its digest.
const SPARE: [&str; 5] = [SPREAD, "Ratio", "Digest", CORE_CYCLES, "MiB/s"];

/// The head of the column of core cycles.
const CORE_CYCLES: &str = "Core";
