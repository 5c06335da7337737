//! The linearity of a CRC, which makes it easy to reason about and to forge. The change of the
//! checksum depends only on which bits were flipped. It is the exclusive or of the changes that each
//! flip causes.

use super::{BITS, BLOCK, Checksum, flip};
use crate::noise::Noise;

/// The change of the checksum caused by flipping each bit of a block, in the order of the bits.
pub struct Syndromes(Vec<u128>);

impl Syndromes {
    /// Computes the syndromes of a checksum. Returns `None` if it is not linear.
    pub fn of(checksum: &dyn Checksum) -> Option<Self> {
        let mut block = [0; BLOCK];
        let zero = checksum.of(&block);
        let syndromes = (0..BITS).map(|position| {
            flip(checksum, &mut block, position);
            let change = checksum.of(&block) ^ zero;
            flip(checksum, &mut block, position);
            change
        });
        let syndromes = Self(syndromes.collect());
        let mut noise = Noise(1);
        let is_linear = (0..CHECKS).all(|_| {
            let mut block = noise.block::<BLOCK>();
            let before = checksum.of(&block);
            let flips: Vec<usize> = (0..FLIPS).map(|_| noise.below(BITS)).collect();
            for &position in &flips {
                flip(checksum, &mut block, position);
            }
            checksum.of(&block) ^ before == syndromes.change(flips)
        });
        is_linear.then_some(syndromes)
    }

    /// Returns the change caused by flipping the bits at `positions`.
    pub fn change(&self, positions: impl IntoIterator<Item = usize>) -> u128 {
        positions.into_iter().fold(0, |change, position| change ^ self.0[position])
    }

    /// Returns the change for every bit.
    pub fn all(&self) -> &[u128] {
        &self.0
    }

    /// Returns a solver that finds which of the `bits` bits from `position` on to flip for a change.
    pub fn solver(&self, position: usize, bits: usize) -> Solver {
        Solver::new(&self.0[position..position + bits])
    }
}

/// Finds vectors with a given exclusive or, by Gaussian elimination.
pub struct Solver {
    /// Reduced vectors with distinct highest bits, each with the set of vectors it was made from.
    rows: Vec<(u128, u128)>,
    /// A set of vectors whose exclusive or is zero, if any.
    pub dependency: Option<u128>,
}

impl Solver {
    /// Creates a solver for up to 128 vectors.
    pub fn new(vectors: &[u128]) -> Self {
        let mut solver = Self { rows: Vec::new(), dependency: None };
        for (index, &vector) in vectors.iter().enumerate() {
            let (rest, set) = solver.reduce(vector);
            let set = set ^ 1 << index;
            if rest == 0 {
                solver.dependency.get_or_insert(set);
            } else {
                let at = solver.rows.partition_point(|(vector, _)| *vector > rest);
                solver.rows.insert(at, (rest, set));
            }
        }
        solver
    }

    /// Returns vectors whose exclusive or is `change`, as a set of bits, if any.
    pub fn solve(&self, change: u128) -> Option<u128> {
        let (rest, set) = self.reduce(change);
        (rest == 0).then_some(set)
    }

    /// Reduces `vector` by the rows. Returns the rest, and the set of vectors that were used.
    fn reduce(&self, vector: u128) -> (u128, u128) {
        self.rows.iter().fold((vector, 0), |(rest, set), (row, made_of)| {
            if rest ^ row < rest { (rest ^ row, set ^ made_of) } else { (rest, set) }
        })
    }
}

/// Number of blocks on which linearity is checked.
const CHECKS: usize = 64;

/// Number of bits flipped in each.
const FLIPS: usize = 9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solvers() {
        let vectors = [0b0110, 0b0011, 0b1000];
        let solver = Solver::new(&vectors);
        assert_eq!(solver.dependency, None);
        assert_eq!(solver.solve(0b1101), Some(0b111));
        assert_eq!(solver.solve(0b0101), Some(0b011));
        assert_eq!(solver.solve(0b0001), None);
        let dependent = Solver::new(&[0b01, 0b10, 0b11]);
        assert_eq!(dependent.dependency, Some(0b111));
    }
}
