//! JSON, one object per line: first the machine and the conditions, then the rows.

use serde::Serialize;

use crate::bench::{Conditions, Report, Row};
use crate::machine::Machine;

/// Formats the report as lines of JSON.
pub fn json(report: &Report) -> String {
    let run = Line::Run { machine: &report.machine, conditions: &report.conditions };
    let rows = report.rows.iter().map(Line::Row);
    let lines = [run].into_iter().chain(rows);
    lines.map(|line| serde_json::to_string(&line).expect("plain data is JSON") + "\n").collect()
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Line<'a> {
    Run {
        machine: &'a Machine,
        #[serde(flatten)]
        conditions: &'a Conditions,
    },
    Row(&'a Row),
}
