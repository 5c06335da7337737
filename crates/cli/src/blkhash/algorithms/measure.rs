//! Measurements of all implementations on this CPU, in less than a second.

use std::time::Duration;

use blkbench::{Bench, Report, Row};
use blkhash::{Algorithm, Status, implementations};

use crate::blkhash::bench::recommendation::{Recommendation, recommendations};
use crate::blkhash::bench::{self, DEFAULT_BATCH, DEFAULT_BLOCK_SIZE};

/// Measurements on this CPU.
pub struct Measured {
    report: Report,
    choices: Vec<Recommendation>,
}

impl Measured {
    /// Measures every usable implementation of `algorithms`, with as many blocks at a time as fill
    /// the lanes of the widest kernel.
    pub fn new(algorithms: &[Algorithm]) -> Self {
        let all = algorithms.iter().flat_map(|algorithm| implementations(*algorithm));
        let usable =
            all.filter(|known| known.status == Status::Ready && known.algorithm != Algorithm::Null);
        let contestants: Vec<_> = usable.map(|known| bench::implementation(*known)).collect();
        let time = TIME / contestants.len().max(1) as u32;
        let bench = Bench::hot(DEFAULT_BLOCK_SIZE, DEFAULT_BATCH, time);
        let report = bench.run(&contestants, |_| {});
        let choices = recommendations(&report.rows, DEFAULT_BATCH);
        Self { report, choices }
    }

    /// Returns the name of the CPU.
    pub fn cpu(&self) -> &str {
        &self.report.machine.cpu
    }

    /// Returns the speed of an implementation in MiB/s, if it was measured.
    pub fn speed(&self, implementation: &str) -> Option<f64> {
        let rows = &mut self.report.rows.iter();
        let row: &Row = rows.find(|row| row.name == implementation)?;
        Some(row.speed?.median)
    }

    /// Returns the choice for an algorithm, if it has several implementations.
    pub fn choice(&self, algorithm: Algorithm) -> Option<&Recommendation> {
        self.choices.iter().find(|choice| choice.algorithm == algorithm)
    }
}

/// Time for all samples. What is around them takes about as long as a third of it.
const TIME: Duration = Duration::from_millis(600);
