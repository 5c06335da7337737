//! Figures whose measurements are noisy: a mark after each, and a note below their table.

use std::time::Duration;

use blkbench::report::MARK;
use blkbench::{NOISY_PERCENT, Spread};

use crate::blkhash::args::MAX_TIME;

/// Returns the mark of a noisy figure, and a space for any other.
pub fn mark(spread: &Spread) -> char {
    if spread.is_noisy() { MARK } else { ' ' }
}

/// Returns the option that measures for several times as long as `time`.
pub fn longer(time: Duration) -> String {
    format!("measure longer (--time {})", (5 * time).min(MAX_TIME).as_secs_f64())
}

/// Says of `noisy` figures of `all` what makes them rough, and what to do about it; empty if there
/// are none. `longer` is what to do to measure for longer.
pub fn note(noisy: usize, all: usize, longer: &str) -> String {
    if noisy == 0 {
        return String::new();
    }
    format!(
        "\n{MARK} Rough: the measurements of {noisy} of {all} figures differ by more than \
         {NOISY_PERCENT} %.\n  The machine was busy. Close other programs, {longer},\n  or pick an idle \
         processor: taskset -c 1 blkhash ...\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_than_before() {
        let seconds = |text: &str| longer(Duration::from_secs_f64(text.parse().unwrap()));
        assert_eq!(seconds("0.4"), "measure longer (--time 2)");
        assert_eq!(seconds("0.12"), "measure longer (--time 0.6)");
        assert_eq!(seconds("3000"), "measure longer (--time 3600)");
    }

    #[test]
    fn one_note_for_all_rows() {
        assert_eq!(note(0, 38, "measure again"), "");
        let text = note(12, 38, "measure longer (--time 2)");
        assert!(text.contains("12 of 38") && text.contains("--time 2"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
