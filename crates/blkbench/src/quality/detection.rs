//! Counts undetected errors: one to three flipped bits, and bursts, in which all errors are within a few bits of each
//! other.
//!
//! A linear checksum detects a pattern of errors in all blocks or in none. A CRC is also cyclic, so it detects the
//! pattern at all positions or at none. Testing a pattern once therefore covers all blocks and positions. Both
//! properties are checked on samples, which are hashed.

use std::collections::HashSet;

use blkrecord::record;

use super::linear::Syndromes;
use super::{BITS, BLOCK, Checksum, flip};
use crate::noise::Noise;

record! {
    /// Errors of one kind.
    #[derive(Clone, Debug)]
    pub struct Errors {
        /// the kind of error
        pub what: String,
        /// errors that were tried or computed
        pub tried: u64,
        /// whether these are all errors of that kind, not a sample
        pub all: bool,
        /// those that leave the checksum as it was
        pub undetected: u64,
    }
}

/// Tries errors. `syndromes` is `None` if the checksum is not linear.
pub fn detection(checksum: &dyn Checksum, syndromes: Option<&Syndromes>) -> Vec<Errors> {
    let mut errors = match syndromes {
        Some(syndromes) => linear(checksum, syndromes),
        None => vec![every_bit(checksum)],
    };
    let mut noise = Noise(3);
    for flips in [2, 3] {
        errors.push(sampled(checksum, format!("{flips} bits, sampled"), || {
            let mut positions = HashSet::new();
            while positions.len() < flips {
                positions.insert(noise.below(BITS));
            }
            positions.into_iter().collect()
        }));
    }
    let longest = checksum.bits().min(64);
    let mut noise = Noise(4);
    errors.push(sampled(checksum, format!("bursts up to {longest} bits, sampled"), || {
        let length = 1 + noise.below(longest);
        let position = noise.below(BITS - length + 1);
        // Noise with the first and the last bit set.
        let pattern = noise.next() & (u64::MAX >> (64 - length)) | 1 | 1 << (length - 1);
        let flipped = (0..length).filter(|bit| pattern >> bit & 1 == 1);
        flipped.map(|bit| position + bit).collect()
    }));
    errors
}

/// Computes which patterns go undetected by a linear checksum, without hashing each of them.
fn linear(checksum: &dyn Checksum, syndromes: &Syndromes) -> Vec<Errors> {
    let all = |what: String, tried: u64, undetected: usize| Errors {
        what,
        tried,
        all: true,
        undetected: undetected as u64,
    };
    // The checksum is cyclic, so it is enough to try the pairs and triples that contain the last bit.
    let (last, others) = syndromes.all().split_last().expect("a block has bits");
    let at: HashSet<u128> = others.iter().copied().collect();
    let count = |is_undetected: &dyn Fn(&u128) -> bool| {
        others.iter().filter(|change| is_undetected(change)).count()
    };
    let zeros = syndromes.all().iter().filter(|change| **change == 0).count();
    let triples = count(&|change| at.contains(&(change ^ last))) / 2;
    // A burst goes undetected if the changes of its bits cancel out. That is impossible in a window of bits whose
    // changes are linearly independent.
    let bits = checksum.bits();
    let windows = 0..=BITS - bits;
    let number = windows.clone().count() as u64;
    let dependent = windows.filter(|at| syndromes.solver(*at, bits).dependency.is_some()).count();
    let n = BITS as u64;
    vec![
        all("1 bit".into(), n, zeros),
        all("2 bits".into(), n * (n - 1) / 2, count(&|change| change == last)),
        all("3 bits".into(), n * (n - 1) / 2 * (n - 2) / 3, triples),
        all(format!("bursts up to {bits} bits, by their windows"), number, dependent),
    ]
}

/// Returns the shortest undetected burst as `(length, pattern)`. The lowest bit of the pattern is the first of the
/// burst.
pub fn shortest_undetected(
    checksum: &dyn Checksum,
    syndromes: &Syndromes,
) -> Option<(usize, u128)> {
    (1..=(checksum.bits() + 1).min(128))
        .find_map(|length| Some((length, syndromes.solver(BITS / 2 + 3, length).dependency?)))
}

fn every_bit(checksum: &dyn Checksum) -> Errors {
    let block = Noise(5).block::<BLOCK>();
    let undetected = (0..BITS).filter(|position| !is_detected(checksum, block, &[*position]));
    let undetected = undetected.count() as u64;
    Errors { what: "1 bit".into(), tried: BITS as u64, all: true, undetected }
}

/// Flips bits of blocks, and counts those whose checksum stays the same.
fn sampled(
    checksum: &dyn Checksum,
    what: String,
    mut positions: impl FnMut() -> Vec<usize>,
) -> Errors {
    let mut noise = Noise(6);
    let samples = (0..SAMPLES).map(|_| is_detected(checksum, noise.block::<BLOCK>(), &positions()));
    let undetected = samples.filter(|is_detected| !is_detected).count() as u64;
    Errors { what, tried: SAMPLES, all: false, undetected }
}

/// Returns whether the checksum of a block changes with these bits.
fn is_detected(checksum: &dyn Checksum, mut block: [u8; BLOCK], positions: &[usize]) -> bool {
    let before = checksum.of(&block);
    for position in positions {
        flip(checksum, &mut block, *position);
    }
    checksum.of(&block) != before
}

/// Number of blocks that are damaged in each way.
const SAMPLES: u64 = 1 << 14;
