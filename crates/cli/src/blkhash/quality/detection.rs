//! Counts undetected errors: one to three flipped bits, and bursts, in which all errors lie within a
//! few bits of each other.
//!
//! A linear hash detects a pattern of errors in all blocks or in none. A CRC is also cyclic, so it
//! detects the pattern at all positions or at none. Testing a pattern once therefore covers all blocks
//! and positions. Both properties are checked on samples, which are hashed.

use std::collections::HashSet;

use serde::Serialize;

use blkhash::BitOrder;

use super::hash::{BITS, Hash, Noise, flip};
use super::linear::Syndromes;

/// Errors of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct Errors {
    /// The kind, in words.
    pub what: String,
    /// Number of patterns of errors that were tried.
    pub tried: u64,
    /// Whether these are all patterns of this kind.
    pub all: bool,
    /// Number of patterns that left the checksum unchanged.
    pub undetected: u64,
}

/// Tries errors. `syndromes` is `None` if the hash is not linear.
pub fn detection(hash: &Hash, order: BitOrder, syndromes: Option<&Syndromes>) -> Vec<Errors> {
    let mut errors = match syndromes {
        Some(syndromes) => linear(hash, syndromes),
        None => vec![every_bit(hash, order)],
    };
    let mut noise = Noise(3);
    for flips in [2, 3] {
        errors.push(sampled(hash, &format!("{flips} bits, sampled"), |block| {
            let mut positions = HashSet::new();
            while positions.len() < flips {
                positions.insert(noise.below(BITS));
            }
            positions.iter().for_each(|position| flip(order, block, *position));
        }));
    }
    let longest = hash.bits.min(64);
    let mut noise = Noise(4);
    errors.push(sampled(hash, &format!("bursts up to {longest} bits, sampled"), |block| {
        let length = 1 + noise.below(longest);
        let position = noise.below(BITS - length + 1);
        let pattern = burst(noise.next(), length);
        let flipped = (0..length).filter(|bit| pattern >> bit & 1 == 1);
        flipped.for_each(|bit| flip(order, block, position + bit));
    }));
    errors
}

/// Computes which patterns go undetected by a linear hash, without hashing each of them.
fn linear(hash: &Hash, syndromes: &Syndromes) -> Vec<Errors> {
    let all = syndromes.all();
    let bits = BITS as u64;
    let last = BITS - 1;
    let at: HashSet<u128> = all[..last].iter().copied().collect();
    // The hash is cyclic, so it is enough to try the patterns that contain the last bit.
    let pairs = all[..last].iter().filter(|change| **change == all[last]).count();
    let triples =
        all[..last].iter().filter(|change| at.contains(&(*change ^ all[last]))).count() / 2;
    let mut errors = vec![
        Errors {
            what: "1 bit".into(),
            tried: bits,
            all: true,
            undetected: all.iter().filter(|change| **change == 0).count() as u64,
        },
        Errors {
            what: "2 bits".into(),
            tried: bits * (bits - 1) / 2,
            all: true,
            undetected: pairs as u64,
        },
        Errors {
            what: "3 bits".into(),
            tried: bits * (bits - 1) / 2 * (bits - 2) / 3,
            all: true,
            undetected: triples as u64,
        },
    ];
    // A burst goes undetected if the changes of its bits cancel out. That is impossible in a window
    // of bits whose changes are linearly independent.
    let windows = 0..=BITS - hash.bits;
    let is_dependent =
        |position: &usize| syndromes.solver(*position, hash.bits).dependency.is_some();
    errors.push(Errors {
        what: format!("bursts up to {} bits, by their windows", hash.bits),
        tried: windows.clone().count() as u64,
        all: true,
        undetected: windows.filter(is_dependent).count() as u64,
    });
    errors
}

/// Returns the shortest undetected burst as `(length, pattern)`. The lowest bit of the pattern is the
/// first of the burst.
pub fn shortest_undetected(hash: &Hash, syndromes: &Syndromes) -> Option<(usize, u128)> {
    (1..=(hash.bits + 1).min(128))
        .find_map(|length| Some((length, syndromes.solver(BITS / 2 + 3, length).dependency?)))
}

fn every_bit(hash: &Hash, order: BitOrder) -> Errors {
    let mut block = Noise(5).block();
    let before = hash.of(&block);
    let undetected = (0..BITS).filter(|position| {
        flip(order, &mut block, *position);
        let after = hash.of(&block);
        flip(order, &mut block, *position);
        after == before
    });
    let undetected = undetected.count() as u64;
    Errors { what: "1 bit".into(), tried: BITS as u64, all: true, undetected }
}

/// Hashes blocks before and after `damage`, and counts those whose checksum stays the same.
fn sampled(hash: &Hash, what: &str, mut damage: impl FnMut(&mut [u8])) -> Errors {
    let mut noise = Noise(6);
    let undetected = (0..SAMPLES).filter(|_| {
        let mut block = noise.block();
        let before = hash.of(&block);
        damage(&mut block);
        hash.of(&block) == before
    });
    Errors {
        what: what.to_owned(),
        tried: SAMPLES,
        all: false,
        undetected: undetected.count() as u64,
    }
}

/// Returns `length` bits of noise with the first and the last bit set.
fn burst(noise: u64, length: usize) -> u64 {
    let ends = 1 | 1 << (length - 1);
    noise & (u64::MAX >> (64 - length)) | ends
}

/// Number of blocks that are damaged in each way.
const SAMPLES: u64 = 1 << 14;
