//! Measures how long it takes to change a block arbitrarily and keep its checksum.
//!
//! A CRC is linear. Changing as many bits as it is long, anywhere in the block, sets it to any value. Which bits to flip
//! is the solution of a system of linear equations.

use std::time::{Duration, Instant};

use blkrecord::record;

use super::linear::{Solver, Syndromes};
use super::{BLOCK, Checksum, Forger, flip};
use crate::noise::Noise;

record! {
    /// Cost of forging blocks.
    #[derive(Clone, Debug)]
    pub struct Forgery {
        /// the method
        pub how: &'static str,
        /// bytes of the block that it changes
        pub bytes: usize,
        /// blocks that were forged, all of them checked
        pub forged: u64,
        /// microseconds for each, without that check
        pub microseconds: f64,
    }
}

/// Forges blocks. Returns `None` if no way is known.
pub fn forge(checksum: &dyn Checksum, syndromes: Option<&Syndromes>) -> Option<Forgery> {
    let Some(syndromes) = syndromes else {
        let Forger { how, bytes, forge } = checksum.forger()?;
        return Some(measure(checksum, how, bytes, |original, block, _| forge(original, block)));
    };
    let bits = checksum.bits();
    let solver = syndromes.solver(8 * PATCH, bits);
    let patch = |_: &[u8], block: &mut [u8], wanted| patch(checksum, &solver, block, wanted);
    Some(measure(checksum, "linear equations over the patch", bits / 8, patch))
}

/// Forges blocks for a fixed time. `forge` gets a block, its tampered copy, and the checksum that the copy must have.
fn measure(
    checksum: &dyn Checksum,
    how: &'static str,
    bytes: usize,
    forge: impl Fn(&[u8], &mut [u8], u128),
) -> Forgery {
    let mut noise = Noise(8);
    let (mut forged, mut spent) = (0, Duration::ZERO);
    while spent < ENOUGH && forged < MOST {
        let original = noise.block::<BLOCK>();
        let wanted = checksum.of(&original);
        let mut block = original;
        noise.fill(&mut block[Forger::TAMPERED..][..8]);
        let started = Instant::now();
        forge(&original, &mut block, wanted);
        spent += started.elapsed();
        let succeeded = block != original && checksum.of(&block) == wanted;
        assert!(succeeded, "{}: a forged block has the checksum of the original", checksum.name());
        forged += 1;
    }
    Forgery { how, bytes, forged, microseconds: spent.as_secs_f64() * 1e6 / forged as f64 }
}

/// Flips the bits at [`PATCH`] that bring the checksum to `wanted`.
fn patch(checksum: &dyn Checksum, solver: &Solver, block: &mut [u8], wanted: u128) {
    let change = checksum.of(block) ^ wanted;
    let flips = solver.solve(change).expect("any change can be made by as many bits");
    for bit in (0..checksum.bits()).filter(|bit| flips >> bit & 1 == 1) {
        flip(checksum, block, 8 * PATCH + bit);
    }
}

/// Offset of the bytes that are patched for a linear checksum.
const PATCH: usize = 2048;

/// Time spent on forging.
const ENOUGH: Duration = Duration::from_millis(50);

/// Maximum number of forged blocks.
const MOST: u64 = 20_000;
