//! JSON, one object per line: first the machine and the conditions, then the rows.

use blkrecord::{Flat, record};

use crate::bench::{Conditions, Memory, Report, Row, Sample};
use crate::machine::Machine;
use crate::stats::Spread;

record! {
    /// A run of the benchmark.
    pub struct Run<'a> {
        /// `run`
        pub kind: &'static str,
        /// what it was measured on
        pub machine: &'a Machine,
        /// the conditions
        pub conditions: Flat<&'a Conditions>,
    }
}

record! {
    /// A contestant in a scenario.
    pub struct Line<'a> {
        /// `row`
        pub kind: &'static str,
        /// the algorithm
        pub group: &'a str,
        /// the implementation
        pub name: &'a str,
        /// threads that hash at the same time
        pub threads: usize,
        /// where the blocks are: `hot` in the cache, or `cold` in memory
        pub memory: &'static str,
        /// blocks in all samples and threads
        pub blocks: u64,
        /// ticks for a block on one thread
        pub ticks: Spread,
        /// core cycles for a block on one thread; null where `core_cycles_missing` says why
        pub core_cycles: Option<Spread>,
        /// MiB in a second on all threads; null for `NULL-NOP`, which reads nothing
        pub speed: Option<Spread>,
        /// ticks in proportion to ticks of crc32c in the same scenario
        pub ratio: Option<f64>,
        /// what the figures are computed from
        pub samples: &'a [Sample],
    }
}

/// Formats the report as lines of JSON.
pub fn json(report: &Report) -> String {
    let conditions = Flat(&report.conditions);
    let run = serde_json::to_string(&Run { kind: "run", machine: &report.machine, conditions });
    let lines = [run].into_iter().chain(report.rows.iter().map(line));
    lines.map(|line| line.expect("plain data is JSON") + "\n").collect()
}

fn line(row: &Row) -> serde_json::Result<String> {
    let memory = match row.scenario.memory {
        Memory::Hot => "hot",
        Memory::Cold => "cold",
    };
    serde_json::to_string(&Line {
        kind: "row",
        group: &row.group,
        name: &row.name,
        threads: row.scenario.threads,
        memory,
        blocks: row.blocks,
        ticks: row.ticks,
        core_cycles: row.core_cycles,
        speed: row.speed,
        ratio: row.ratio,
        samples: &row.samples,
    })
}
