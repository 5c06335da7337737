//! Measures how long it takes to change a block arbitrarily and keep its checksum.
//!
//! A CRC is linear. Changing as many bits as it is long, anywhere in the block, sets it to any value.
//! Which bits to flip is the solution of a system of linear equations. XXH64 mixes in the words of a
//! lane one after the other, in invertible steps. The next word of the lane can therefore cancel the
//! change made by the word before it.

use std::time::{Duration, Instant};

use blkhash::{Algorithm, BitOrder};
use serde::Serialize;

use super::hash::{Hash, Noise, flip};
use super::linear::{Solver, Syndromes};

/// Cost of forging blocks.
#[derive(Clone, Debug, Serialize)]
pub struct Forgery {
    /// The method.
    pub how: &'static str,
    /// Number of bytes that must be free to choose.
    pub bytes: usize,
    /// Number of forged blocks. Each was hashed afterwards and had the checksum of the original.
    pub forged: u64,
    /// Microseconds for each block, without that check.
    pub microseconds: f64,
}

/// Forges blocks. Returns `None` if no method for this hash is implemented.
pub fn forge(hash: &Hash, order: BitOrder, syndromes: Option<&Syndromes>) -> Option<Forgery> {
    if let Some(syndromes) = syndromes {
        let solver = syndromes.solver(8 * PATCH, hash.bits);
        let how = "linear equations over the patch";
        let patch = |_: &[u8], block: &mut [u8], wanted| patch(hash, order, &solver, block, wanted);
        return Some(measure(hash, how, hash.bits / 8, patch));
    }
    if hash.algorithm == Algorithm::Xxh64 {
        let how = "the lane's next word undoes it";
        return Some(measure(hash, how, 8, |original, block, _| compensate(original, block)));
    }
    None
}

/// Forges blocks for a fixed time. `forge` gets a block, its tampered copy, and the checksum that the
/// copy must have.
fn measure(
    hash: &Hash,
    how: &'static str,
    bytes: usize,
    forge: impl Fn(&[u8], &mut [u8], u128),
) -> Forgery {
    let mut noise = Noise(8);
    let (mut forged, mut spent) = (0, Duration::ZERO);
    while spent < ENOUGH && forged < MOST {
        let original = noise.block();
        let wanted = hash.of(&original);
        let mut block = original;
        block[TAMPERED..TAMPERED + 8].copy_from_slice(&noise.next().to_le_bytes());
        let started = Instant::now();
        forge(&original, &mut block, wanted);
        spent += started.elapsed();
        let succeeded = block != original && hash.of(&block) == wanted;
        assert!(succeeded, "{}: a forged block has the checksum of the original", hash.algorithm);
        forged += 1;
    }
    Forgery { how, bytes, forged, microseconds: spent.as_secs_f64() * 1e6 / forged as f64 }
}

/// Flips the bits at [`PATCH`] that bring the checksum to `wanted`.
fn patch(hash: &Hash, order: BitOrder, solver: &Solver, block: &mut [u8], wanted: u128) {
    let change = hash.of(block) ^ wanted;
    let flips = solver.solve(change).expect("any change can be made by as many bits");
    let flipped = (0..hash.bits).filter(|bit| flips >> bit & 1 == 1);
    flipped.for_each(|bit| flip(order, block, 8 * PATCH + bit));
}

/// Sets the word of XXH64's first lane that follows the tampered one, so that the lane continues with
/// the state it has in the original.
fn compensate(original: &[u8], block: &mut [u8]) {
    let word = |bytes: &[u8], at: usize| {
        u64::from_le_bytes(bytes[at..at + 8].try_into().expect("a word has 8 bytes"))
    };
    let round = |lane: u64, word: u64| {
        lane.wrapping_add(word.wrapping_mul(PRIME_2)).rotate_left(31).wrapping_mul(PRIME_1)
    };
    let start = PRIME_1.wrapping_add(PRIME_2);
    let before = (0..TAMPERED).step_by(STRIPE).fold(start, |lane, at| round(lane, word(block, at)));
    let [lane, tampered] = [original, &*block].map(|bytes| round(before, word(bytes, TAMPERED)));
    let next = TAMPERED + STRIPE;
    let difference = lane.wrapping_sub(tampered).wrapping_mul(inverse(PRIME_2));
    let compensated = word(original, next).wrapping_add(difference);
    block[next..next + 8].copy_from_slice(&compensated.to_le_bytes());
}

const fn inverse(odd: u64) -> u64 {
    // Newton's iteration doubles the number of correct bits of the inverse: 3, 6, 12, 24, 48, 96.
    let mut inverse = odd;
    let mut step = 0;
    while step < 5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
        step += 1;
    }
    inverse
}

/// Offset at which blocks are tampered with: the beginning of a stripe of XXH64.
const TAMPERED: usize = 1024;

/// Offset of the bytes that are patched for a CRC.
const PATCH: usize = 2048;

/// Number of bytes that XXH64 processes at a time, a word for each of its four lanes.
const STRIPE: usize = 32;

/// The multipliers of XXH64's lanes.
const PRIME_1: u64 = 0x9e37_79b1_85eb_ca87;
const PRIME_2: u64 = 0xc2b2_ae3d_27d4_eb4f;

/// Time spent on forging.
const ENOUGH: Duration = Duration::from_millis(50);

/// Maximum number of forged blocks.
const MOST: u64 = 20_000;
