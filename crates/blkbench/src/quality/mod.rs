//! Measures which errors a checksum detects, and how its bits behave, over blocks of 4096 bytes.
//!
//! All noise comes from fixed seeds. Figures other than times are the same in every run.

mod avalanche;
mod collisions;
mod detection;
mod forgery;
mod linear;

use serde::Serialize;

pub use self::avalanche::Avalanche;
pub use self::collisions::Collisions;
pub use self::detection::Errors;
pub use self::forgery::Forgery;

/// A function from blocks to checksums of 32 to 128 bits.
pub trait Checksum {
    /// Returns the name.
    fn name(&self) -> &'static str;

    /// Returns the size of a checksum in bits.
    fn bits(&self) -> usize;

    /// Returns the checksum of a block, as a number below 2 to the power of [`Self::bits`].
    fn of(&self, block: &[u8]) -> u128;

    /// Returns the checksums of many blocks.
    fn of_many(&self, blocks: &[&[u8]]) -> Vec<u128> {
        blocks.iter().map(|block| self.of(block)).collect()
    }

    /// Returns whether the bits of a byte go through the register of a CRC from the highest to the lowest. Bursts are
    /// runs of bits in this order. For other functions, any order will do.
    fn is_highest_bit_first(&self) -> bool {
        false
    }

    /// Returns a way to keep the checksum of a block that was changed. CRCs and other linear functions need none.
    fn forger(&self) -> Option<Forger> {
        None
    }
}

/// A way to keep the checksum of a changed block.
#[derive(Clone, Copy, Debug)]
pub struct Forger {
    /// The method, in words.
    pub how: &'static str,
    /// Number of bytes that must be free to choose.
    pub bytes: usize,
    /// Gets the original, and a copy with other bytes at [`Self::TAMPERED`]. Changes more bytes of the copy, so that it
    /// has the checksum of the original.
    pub forge: fn(&[u8], &mut [u8]),
}

impl Forger {
    /// Offset of the 8 bytes with which a block is tampered.
    pub const TAMPERED: usize = 1024;
}

/// The measured properties of a checksum.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Quality {
    /// The name of the checksum.
    pub algorithm: &'static str,
    /// Its size in bits.
    pub bits: usize,
    /// Whether the change of the checksum depends only on the errors, not on the block.
    pub linear: bool,
    /// Effects of single bits.
    pub avalanche: Avalanche,
    /// Undetected errors of each kind.
    pub errors: Vec<Errors>,
    /// Length in bits of the shortest undetected burst, if known.
    pub shortest_undetected_burst: Option<usize>,
    /// Blocks with equal parts of the checksum.
    pub collisions: Collisions,
    /// Cost of forging a block, if a way is known.
    pub forgery: Option<Forgery>,
}

impl Quality {
    /// Measures a checksum.
    ///
    /// # Panics
    ///
    /// Panics if a forger fails, or a checksum is larger than [`Checksum::bits`].
    pub fn of(checksum: &dyn Checksum) -> Self {
        let syndromes = linear::Syndromes::of(checksum);
        let syndromes = syndromes.as_ref();
        let shortest = syndromes.and_then(|known| detection::shortest_undetected(checksum, known));
        Self {
            algorithm: checksum.name(),
            bits: checksum.bits(),
            linear: syndromes.is_some(),
            avalanche: avalanche::avalanche(checksum),
            errors: detection::detection(checksum, syndromes),
            shortest_undetected_burst: shortest.map(|(length, _)| length),
            collisions: collisions::collisions(checksum),
            forgery: forgery::forge(checksum, syndromes),
        }
    }
}

/// Flips the bit at `position`, counted in the order of `checksum`.
fn flip(checksum: &dyn Checksum, block: &mut [u8], position: usize) {
    let bit = if checksum.is_highest_bit_first() { 7 - position % 8 } else { position % 8 };
    block[position / 8] ^= 1 << bit;
}

/// Size of a block in bytes, which is that of a btrfs sector.
pub(crate) const BLOCK: usize = 4096;

/// Size of a block in bits.
const BITS: usize = 8 * BLOCK;

#[cfg(test)]
mod tests;
