//! Measures closures over blocks of bytes and prints what it measured.
//!
//! It knows no algorithm: a [`Contestant`] is a name and a closure that takes a batch of blocks. All
//! contestants are measured alike, in turns, so that a clock that drifts or a neighbour that comes
//! and goes hits all of them:
//!
//! 1. [`Bench::run`] finds for each contestant how many calls fill its share of the time.
//! 2. A repetition measures every contestant once, in order; there are [`Bench::REPETITIONS`].
//! 3. A [`Row`] has the samples of one contestant in one [`Scenario`], and a [`Report`] has all rows
//!    with the [`Machine`] and the conditions they were measured under.
//!
//! Nothing is timed but the calls, and nothing is subtracted: [`Contestant::nop`] shows what an
//! empty call costs.

mod bench;
mod clock;
mod contestant;
mod cores;
mod counter;
mod input;
mod machine;
pub mod report;
mod stats;
pub mod text;

pub use bench::{Amount, Bench, Conditions, Memory, Report, Row, Sample, Scenario};
pub use contestant::{Contestant, Work};
pub use machine::Machine;
pub use stats::Spread;

/// Its examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
