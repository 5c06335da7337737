//! Statistics of several measurements of the same thing.

use blkrecord::record;

record! {
    /// The spread of measurements.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Spread as "Spreads" {
        /// the smallest measurement
        pub min: f64,
        /// the one in the middle
        pub median: f64,
        /// the largest
        pub max: f64,
        /// median of the distances from the median, which outliers do not affect; above 5 % of the median, the machine
        /// was busy
        pub mad: f64,
    }
}

impl Spread {
    /// Returns the spread of `values`, which may be in any order.
    ///
    /// # Panics
    ///
    /// Panics if there are no values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        assert!(!values.is_empty(), "a spread of at least one measurement");
        let median = median(&mut values);
        let (min, max) = (values[0], values[values.len() - 1]);
        let mut distances: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
        Self { min, median, max, mad: self::median(&mut distances) }
    }

    /// Returns [`Spread::mad`] in percent of the median.
    pub fn percent(&self) -> f64 {
        if self.median > 0.0 { 100.0 * self.mad / self.median } else { 0.0 }
    }

    /// Returns whether the measurements differ by more than [`NOISY_PERCENT`], so that the median
    /// is rough.
    pub fn is_noisy(&self) -> bool {
        self.percent() > NOISY_PERCENT
    }
}

/// Measurements on an idle machine differ by less, in percent of their median.
pub const NOISY_PERCENT: f64 = 5.0;

/// Sorts `values`; the middle one, or the mean of the two in the middle.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        f64::midpoint(values[middle - 1], values[middle])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads() {
        let one = Spread::of([7.0]);
        assert_eq!(one, Spread { min: 7.0, median: 7.0, max: 7.0, mad: 0.0 });
        let even = Spread::of([4.0, 1.0, 100.0, 2.0]);
        assert_eq!((even.min, even.median, even.max, even.mad), (1.0, 3.0, 100.0, 1.5));
        assert_eq!(even.percent(), 50.0);
        assert!(even.is_noisy() && !one.is_noisy());
        assert!(!Spread { min: 90.0, median: 100.0, max: 200.0, mad: NOISY_PERCENT }.is_noisy());
    }
}
