//! A table as in the documentation of btrfs: digest, cycles per block, ratio, implementation.

use super::{MARK, batches, header, scenario, sections};
use crate::bench::Report;
use crate::clock::SHORT_TICKS;
use crate::text::{self, number};

/// The report as one such table for each scenario, the fastest first. A [`MARK`] follows the spread of noisy rows.
///
/// Lines fit 80 columns, unless blocks are large or threads are many. Rows fit `width`, without some of the columns if
/// it is small.
pub fn docs(report: &Report, width: usize) -> String {
    let conditions = &report.conditions;
    let mut out = header(report, 10);
    let size = text::size(conditions.block_size as u64).replace(' ', "");
    let ticks = format!(">{SHORT_TICKS}/{size}");
    let has_cycles = conditions.core_cycles_missing.is_none();
    for (circumstances, rows) in sections(report) {
        out += &format!("\n{}, {}\n", batches(conditions), scenario(circumstances));
        if has_cycles {
            out += "Core: core cycles for a block, from perf events\n";
        }
        out.push('\n');
        let mut heads = vec!["Digest", ticks.as_str()];
        if has_cycles {
            heads.push(">Core");
        }
        heads.extend([">Ratio", ">MiB/s", ">± % ", "Implementation"]);
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

/// Columns that narrow tables leave out. The implementation has the name of its digest.
const SPARE: [&str; 5] = ["± % ", "Ratio", "Digest", "Core", "MiB/s"];
