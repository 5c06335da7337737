//! Measures closures over blocks of bytes and prints the results.
//!
//! It knows no algorithm. A [`Contestant`] is a name and a closure that takes a batch of blocks.
//! All contestants are measured alike and in turns, so that a drifting clock or other load affects
//! all of them:
//!
//! 1. [`Bench::run`] finds for each contestant how many calls fill its share of the time.
//! 2. A repetition measures every contestant once, in order. There are [`Bench::REPETITIONS`].
//! 3. A [`Row`] has the samples of one contestant in one [`Scenario`], and a [`Report`] has all rows
//!    with the [`Machine`] and the conditions of the run.
//!
//! Only the calls are timed, and nothing is subtracted. [`Contestant::nop`] shows the cost of an
//! empty call.
//!
//! [`quality`] measures which errors a checksum detects instead.

mod bench;
mod clock;
mod contestant;
mod counter;
mod input;
mod machine;
mod noise;
pub mod quality;
pub mod report;
mod stats;
pub mod svg;
pub mod text;

pub use bench::{Amount, Bench, Conditions, Memory, Report, Row, Sample, Scenario};
pub use contestant::{Contestant, Work};
pub use machine::Machine;
pub use stats::{NOISY_PERCENT, Spread};

/// Runs the examples of README.md as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
