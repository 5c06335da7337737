//! The implementation that a large job would choose, from measured rows, next to the assumed one.

use std::fmt::Write;

use blkbench::report::WIDTH;
use blkbench::{Report, Row, text};
use blkhash::{Algorithm, Digester};

/// The choice for an algorithm with several implementations.
#[derive(Clone, Debug, PartialEq)]
pub struct Recommendation {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The name of the implementation that a large job would choose.
    pub best: String,
    /// The name of the implementation that is used before anything is measured.
    pub assumed: String,
    /// The time of the assumed implementation, relative to the best one's.
    pub ratio: f64,
}

/// Returns the choice for `batch` blocks at a time for each algorithm of `rows` that has several
/// implementations, among them the assumed one. All rows belong to one scenario.
pub fn recommendations(rows: &[Row], batch: usize) -> Vec<Recommendation> {
    let assumed = |algorithm| Digester::new(algorithm).implementation_for(batch).name();
    Algorithm::ALL
        .iter()
        .filter_map(|&algorithm| recommendation(rows, algorithm, assumed(algorithm)))
        .collect()
}

fn recommendation(rows: &[Row], algorithm: Algorithm, assumed: String) -> Option<Recommendation> {
    let known = |row: &&Row| {
        blkhash::implementations(algorithm).iter().any(|known| known.name() == row.name)
    };
    let rows: Vec<&Row> = rows.iter().filter(known).collect();
    let time = |row: &Row| row.ticks.median;
    let current = rows.iter().find(|row| row.name == assumed).filter(|_| rows.len() > 1)?;
    let fastest = rows.iter().min_by(|a, b| time(a).total_cmp(&time(b)))?;
    let ratio = time(current) / time(fastest);
    let best = if ratio > CLEARLY_SLOWER { fastest.name.clone() } else { assumed.clone() };
    Some(Recommendation { algorithm, best, assumed, ratio })
}

/// Describes the choices, and adds a line for a report. The text is empty if nothing was compared.
pub fn describe(report: &Report) -> String {
    let Some(scenario) = report.rows.first().map(|row| row.scenario) else { return String::new() };
    let rows = report.rows.chunk_by(|a, b| a.scenario == b.scenario).next().unwrap_or_default();
    let batch = report.conditions.batch;
    let choices = recommendations(rows, batch);
    if choices.is_empty() {
        return String::new();
    }
    let mut out = "\nA large job with such batches would use:\n".to_owned();
    for choice in &choices {
        let _ = writeln!(out, "  {}", text::wrapped(&choice.describe(), 4, WIDTH - 2));
    }
    if choices.iter().any(Recommendation::disagrees) {
        let advice = "A small job uses the assumed implementation. Please report the next line, so \
                      that the table can be corrected for this CPU.";
        let _ = writeln!(out, "{}", text::wrapped(advice, 0, WIDTH));
    }
    let _ = writeln!(
        out,
        "\nreport: {}; {batch} x {}, {} thread{}; MiB/s: {}",
        report.machine.cpu,
        text::size(report.conditions.block_size as u64),
        scenario.threads,
        if scenario.threads == 1 { "" } else { "s" },
        speeds(rows, &choices)
    );
    out
}

/// Lists the speeds of all implementations of the algorithms that have a choice.
fn speeds(rows: &[Row], choices: &[Recommendation]) -> String {
    let is_listed = |row: &&Row| choices.iter().any(|it| it.algorithm.name() == row.group);
    let speed = |row: &Row| row.speed.map(|speed| format!("{} {:.0}", row.name, speed.median));
    rows.iter().filter(is_listed).filter_map(speed).collect::<Vec<_>>().join(", ")
}

impl Recommendation {
    /// Returns whether another implementation than the assumed one would be chosen.
    pub fn disagrees(&self) -> bool {
        self.best != self.assumed
    }

    /// Describes the choice in a line.
    pub fn describe(&self) -> String {
        match self.disagrees() {
            false => format!("{}, as assumed", self.best),
            true => format!(
                "{}. The table assumes {}, which takes {:.2} times as long.",
                self.best, self.assumed, self.ratio
            ),
        }
    }
}

/// The assumed implementation stays in use unless it takes more than this, as in a large job.
const CLEARLY_SLOWER: f64 = 1.03;

#[cfg(test)]
mod tests {
    use blkbench::{Memory, Scenario, Spread};

    use super::*;

    fn row(name: &str, ticks: f64) -> Row {
        Row {
            group: "sha256".to_owned(),
            name: name.to_owned(),
            row_name: None,
            scenario: Scenario { threads: 1, memory: Memory::Hot },
            blocks: 1,
            ticks: Spread::of([ticks]),
            core_cycles: None,
            speed: Some(Spread::of([1e6 / ticks])),
            ratio: None,
            samples: Vec::new(),
        }
    }

    fn choice(rows: &[(&str, f64)], assumed: &str) -> Option<Recommendation> {
        let rows: Vec<Row> = rows.iter().map(|(name, ticks)| row(name, *ticks)).collect();
        recommendation(&rows, Algorithm::Sha256, assumed.to_owned())
    }

    #[test]
    fn the_fastest_is_chosen_if_it_is_clearly_faster() {
        // In the order of the costs, the fastest first, second and last.
        let cases = [
            ([100.0, 200.0], "sha256-soft", "sha256-soft, as assumed"),
            ([102.0, 100.0], "sha256-soft", "sha256-soft, as assumed"),
            (
                [134.0, 100.0],
                "sha256-soft",
                "sha256-x86_sha. The table assumes sha256-soft, which takes 1.34 times as long.",
            ),
        ];
        for ([soft, other], assumed, expected) in cases {
            let rows = [("sha256-soft", soft), ("sha256-x86_sha", other)];
            if blkhash::implementations(Algorithm::Sha256).iter().any(|it| it.variant == "x86_sha")
            {
                assert_eq!(choice(&rows, assumed).unwrap().describe(), expected);
            }
        }
        assert_eq!(choice(&[("sha256-soft", 1.0)], "sha256-soft"), None);
        assert_eq!(choice(&[("sha256-x86_sha", 1.0), ("other", 2.0)], "sha256-soft"), None);
    }
}
