//! Measures which errors a checksum detects, and how its bits behave, over blocks of 4096 bytes.
//!
//! All noise comes from fixed seeds. Figures other than times are the same in every run.

mod avalanche;
mod collisions;
mod detection;
mod forgery;
mod linear;

use blkrecord::record;

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

record! {
    /// The measured properties of a checksum.
    #[derive(Clone, Debug)]
    pub struct Quality {
        /// the algorithm
        pub algorithm: &'static str,
        /// bits of a checksum
        pub bits: usize,
        /// whether the change of the checksum depends on the error alone, not on the block
        pub linear: bool,
        /// how a flipped bit of the block changes the checksum
        pub avalanche: Avalanche,
        /// errors of each kind, and how many go undetected
        pub errors: Vec<Errors>,
        /// bits of the shortest burst that goes undetected; null if it is not known
        pub shortest_undetected_burst: Option<usize>,
        /// blocks that share 32 bits of their checksums
        pub collisions: Collisions,
        /// how fast a changed block is given the checksum of the original; null if nothing here does it
        pub forgery: Option<Forgery>,
    }
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

/// Size of a block in bytes, which is the size of a btrfs sector.
pub(crate) const BLOCK: usize = 4096;

/// Size of a block in bits.
const BITS: usize = 8 * BLOCK;

#[cfg(test)]
mod tests;
