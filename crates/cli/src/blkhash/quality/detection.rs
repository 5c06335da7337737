//! Which errors go undetected: one to three flipped bits, and bursts, in which all errors lie within
//! a few bits of each other.
//!
//! Where a hash is linear, one pattern of errors is detected in all blocks or in none. A CRC is
//! cyclic besides: it is also detected at all positions or at none. So looking at a pattern once
//! tells of all blocks and positions; both properties are checked on samples, which are hashed.

use std::collections::HashSet;

use serde::Serialize;

use blkhash::BitOrder;

use super::hash::{BITS, Hash, Noise, flip};
use super::linear::Syndromes;

/// Errors of a kind.
#[derive(Clone, Debug, Serialize)]
pub struct Errors {
    /// The kind, in words.
    pub what: String,
    /// How many patterns of errors were tried.
    pub tried: u64,
    /// Whether those are all there are.
    pub all: bool,
    /// How many left the checksum as it was.
    pub undetected: u64,
}

/// Tries errors. `syndromes` are those of a hash that is linear.
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

/// The patterns that can be tried without hashing each of them.
fn linear(hash: &Hash, syndromes: &Syndromes) -> Vec<Errors> {
    let all = syndromes.all();
    let bits = BITS as u64;
    let last = BITS - 1;
    let at: HashSet<u128> = all[..last].iter().copied().collect();
    // By position, so that every pattern of two or three has the last bit in it.
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
    // A burst goes undetected if the changes of its bits cancel out: none does within a window of
    // bits whose changes are linearly independent.
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

/// The shortest burst that is not detected, as `(length, pattern)`; the lowest bit of the pattern is
/// the first of the burst.
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

/// Hashes blocks before and after `damage`.
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

/// `length` bits of which the first and the last are set.
fn burst(noise: u64, length: usize) -> u64 {
    let ends = 1 | 1 << (length - 1);
    noise & (u64::MAX >> (64 - length)) | ends
}

/// Blocks that are damaged in each way.
const SAMPLES: u64 = 1 << 14;
