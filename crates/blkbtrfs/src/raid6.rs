//! Computes the parities of a row for RAID5 and RAID6, and lost data from the rest of a row.
//!
//! Bytes are elements of GF(2^8) modulo x^8 + x^4 + x^3 + x^2 + 1. With data D_i, P is the sum of
//! all D_i and Q is the sum of 2^i D_i. Source: H. Peter Anvin, "The mathematics of RAID-6".

/// Sums of a row of data.
#[derive(Default)]
pub(crate) struct Sums {
    p: Vec<u8>,
    q: Vec<u8>,
    has_q: bool,
}

impl Sums {
    /// Begins a row with `length` bytes in each column and `parities` parities.
    pub(crate) fn start(&mut self, length: usize, parities: u64) {
        self.has_q = parities > 1;
        self.p.clear();
        self.p.resize(length, 0);
        self.q.clear();
        self.q.resize(if self.has_q { length } else { 0 }, 0);
    }

    /// Adds the next column. Columns come last to first, so that each doubling of Q raises the
    /// powers of the columns already added.
    pub(crate) fn take(&mut self, data: &[u8]) {
        add(&mut self.p, data);
        if self.has_q {
            self.q.iter_mut().zip(data).for_each(|(q, data)| *q = double(*q) ^ data);
        }
    }

    /// Adds an unknown column as zeros.
    pub(crate) fn take_none(&mut self) {
        self.q.iter_mut().for_each(|q| *q = double(*q));
    }

    /// Returns P for 0, or Q for 1.
    pub(crate) fn parity(&self, number: usize) -> &[u8] {
        if number == 0 { &self.p } else { &self.q }
    }

    /// Adds a stored parity, which leaves the sum of the unknown columns.
    pub(crate) fn add_parity(&mut self, number: usize, stored: &[u8]) {
        add(if number == 0 { &mut self.p } else { &mut self.q }, stored);
    }

    /// Writes an unknown column to `lost`.
    pub(crate) fn solve(&self, way: Way, lost: &mut [u8]) {
        lost.fill(0);
        for (sum, factor) in [(&self.p, way.p), (&self.q, way.q)] {
            let products = products(factor);
            for (lost, sum) in lost.iter_mut().zip(sum) {
                *lost ^= products[usize::from(*sum)];
            }
        }
    }
}

/// Factors that turn the two sums of the unknown columns into a column of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    p: u8,
    q: u8,
}

impl Way {
    /// Computes a column from P, if nothing else is lost.
    pub(crate) const FROM_P: Self = Self { p: 1, q: 0 };

    /// Computes column `lost` from Q, if no other data is lost.
    pub(crate) fn from_q(lost: usize) -> Self {
        Self { p: 0, q: inverse(power(lost)) }
    }

    /// Computes column `lost` from P and Q, if `other` is also unknown.
    pub(crate) fn from_both(lost: usize, other: usize) -> Self {
        // Q + 2^other P cancels `other` and leaves `lost` times (2^lost + 2^other).
        let q = inverse(power(lost) ^ power(other));
        Self { p: multiply(power(other), q), q }
    }
}

/// Maximum number of columns of data. Powers of two repeat after that.
pub(crate) const MAX_COLUMNS: u64 = 255;

fn add(sum: &mut [u8], data: &[u8]) {
    sum.iter_mut().zip(data).for_each(|(sum, data)| *sum ^= data);
}

fn double(value: u8) -> u8 {
    value << 1 ^ if value & 0x80 != 0 { 0x1d } else { 0 }
}

fn multiply(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b != 0 {
        if b & 1 != 0 {
            product ^= a;
        }
        a = double(a);
        b >>= 1;
    }
    product
}

/// Returns 2^`exponent`.
fn power(exponent: usize) -> u8 {
    (0..exponent % 255).fold(1, |value, _| double(value))
}

/// Returns the multiplicative inverse of `value`, which is not zero.
fn inverse(value: u8) -> u8 {
    // The inverse is the 254th power, because the 255th is one.
    (0..254).fold(1, |product, _| multiply(product, value))
}

fn products(factor: u8) -> [u8; 256] {
    let mut value = 0;
    [(); 256].map(|()| {
        let product = multiply(factor, value);
        value = value.wrapping_add(1);
        product
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Computes P and Q by their definition.
    fn encode(columns: &[Vec<u8>]) -> [Vec<u8>; 2] {
        let length = columns[0].len();
        let sum = |factor: fn(usize) -> u8| {
            let byte = |at: usize| {
                let terms = columns.iter().enumerate();
                terms.fold(0, |sum, (index, column)| sum ^ multiply(factor(index), column[at]))
            };
            (0..length).map(byte).collect()
        };
        [sum(|_| 1), sum(power)]
    }

    fn sums_without(columns: &[Vec<u8>], lost: &[usize]) -> Sums {
        let mut sums = Sums::default();
        sums.start(columns[0].len(), 2);
        for (index, column) in columns.iter().enumerate().rev() {
            if lost.contains(&index) { sums.take_none() } else { sums.take(column) }
        }
        sums
    }

    #[test]
    fn arithmetic_is_that_of_a_field() {
        for value in 1..=255 {
            assert_eq!(multiply(value, inverse(value)), 1);
            assert_eq!(double(value), multiply(value, 2));
        }
        let powers: std::collections::HashSet<u8> = (0..255).map(power).collect();
        assert_eq!((powers.len(), power(255), power(8)), (255, 1, 0x1d));
    }

    proptest! {
        #[test]
        fn any_two_columns_of_a_row_are_rebuilt(
            count in 1..20usize,
            seed in prop::collection::vec(any::<u8>(), 20 * 9),
            lost in any::<prop::sample::Index>(),
            other in any::<prop::sample::Index>(),
        ) {
            let columns: Vec<Vec<u8>> = seed.chunks(9).take(count).map(<[u8]>::to_vec).collect();
            let stored = encode(&columns);
            let all = sums_without(&columns, &[]);
            prop_assert_eq!([all.parity(0), all.parity(1)], [&stored[0][..], &stored[1][..]]);

            let lost = lost.index(count);
            let mut rebuilt = vec![0xee; 9];
            let mut sums = sums_without(&columns, &[lost]);
            sums.add_parity(0, &stored[0]);
            sums.solve(Way::FROM_P, &mut rebuilt);
            prop_assert_eq!(&rebuilt, &columns[lost]);
            let mut sums = sums_without(&columns, &[lost]);
            sums.add_parity(1, &stored[1]);
            sums.solve(Way::from_q(lost), &mut rebuilt);
            prop_assert_eq!(&rebuilt, &columns[lost]);

            let other = other.index(count);
            if other != lost {
                let mut sums = sums_without(&columns, &[lost, other]);
                sums.add_parity(0, &stored[0]);
                sums.add_parity(1, &stored[1]);
                sums.solve(Way::from_both(lost, other), &mut rebuilt);
                prop_assert_eq!(&rebuilt, &columns[lost]);
                sums.solve(Way::from_both(other, lost), &mut rebuilt);
                prop_assert_eq!(&rebuilt, &columns[other]);
            }
        }
    }
}
