//! The reference counts that an image stores: a table of blocks of counts of 1 to 64 bits.

use super::counts::PAGE;
use super::input::Input;
use crate::error::{Error, Result};
use crate::formats::fields::array;
use crate::formats::qcow2::header::Header;
use crate::formats::two_level::Rules;

/// The stored counts, read when they are needed.
pub(super) struct Stored<'a> {
    input: Input<'a>,
    /// The part of the table in the file. All other entries are 0.
    table: Vec<u64>,
    cluster_bits: u32,
    order: u32,
    /// Pieces of blocks. The place of a piece depends on its offset.
    slots: Vec<Option<Slot>>,
    /// Clusters whose counts were looked up last, in units of a piece, and their slot.
    last: (u64, usize),
}

struct Slot {
    offset: u64,
    bytes: Box<[u8; PIECE]>,
}

/// The counts of the clusters of a page.
pub(super) enum Page {
    /// All are 0.
    Zero,
    /// Those in the array, but for the `step` counts of each block for which a bit of `unreadable` is set.
    Counts { unreadable: u64, step: usize },
}

impl<'a> Stored<'a> {
    /// Reads the table.
    pub fn read(input: Input<'a>, header: &Header) -> Result<(Self, Option<Error>)> {
        let cluster_bits = header.geometry().cluster_bits();
        let refcounts = header.refcounts;
        let entries = u64::from(refcounts.clusters) << (cluster_bits - 3);
        let mut table = Vec::new();
        let failed = input.for_each_entry(refcounts.offset, entries, |index, entry| {
            table.resize(index as usize, 0);
            table.push(entry);
            Ok(())
        })?;
        let slots = std::iter::repeat_with(|| None).take(SLOTS).collect();
        let order = refcounts.order;
        Ok((Self { input, table, cluster_bits, order, slots, last: (u64::MAX, 0) }, failed))
    }

    pub fn table(&self) -> &[u64] {
        &self.table
    }

    /// Returns the largest count that can be stored.
    pub fn max(&self) -> u64 {
        u64::MAX >> (64 - (1 << self.order))
    }

    /// Returns the count of a cluster. `None` if it cannot be read.
    #[inline]
    pub fn get(&mut self, cluster: u64) -> Result<Option<u64>> {
        let piece_bits = self.piece_bits();
        if self.last.0 == cluster >> piece_bits
            && let Some(slot) = &self.slots[self.last.1]
        {
            return Ok(Some(decode(&slot.bytes, self.order, cluster & ((1 << piece_bits) - 1))));
        }
        self.find(cluster)
    }

    fn find(&mut self, cluster: u64) -> Result<Option<u64>> {
        let Ok(block) = self.block(cluster >> self.block_bits()) else { return Ok(None) };
        let Some(block) = block else { return Ok(Some(0)) };
        let piece_bits = self.piece_bits();
        let within = (cluster & ((1 << self.block_bits()) - 1)) >> piece_bits;
        let length = PIECE.min(1 << self.cluster_bits);
        let offset = block + within * length as u64;
        let number = (offset >> 9).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SLOTS.ilog2());
        let slot = &mut self.slots[number as usize];
        if slot.as_ref().is_none_or(|slot| slot.offset != offset) {
            let mut bytes = match slot.take() {
                Some(slot) => slot.bytes,
                None => Box::new([0; PIECE]),
            };
            if self.input.read(&mut bytes[..length], offset)?.is_some() {
                return Ok(None);
            }
            *slot = Some(Slot { offset, bytes });
        }
        self.last = (cluster >> piece_bits, number as usize);
        let bytes = slot.as_ref().map(|slot| &*slot.bytes);
        Ok(bytes.map(|bytes| decode(bytes, self.order, cluster & ((1 << piece_bits) - 1))))
    }

    /// Reads the counts of the [`PAGE`] clusters from `cluster` on, which begins a page.
    pub fn page(&self, cluster: u64, counts: &mut [u64; PAGE]) -> Result<Page> {
        let step = PAGE.min(1 << self.block_bits());
        let block_of = |index: usize| self.block((cluster + index as u64) >> self.block_bits());
        if (0..PAGE).step_by(step).all(|index| block_of(index) == Ok(None)) {
            return Ok(Page::Zero);
        }
        let mut unreadable = 0;
        let mut bytes = [0; PAGE * 8];
        let bytes = &mut bytes[..(step << self.order) / 8];
        for (number, counts) in counts.chunks_exact_mut(step).enumerate() {
            let is_read = match block_of(number * step) {
                Ok(None) => {
                    counts.fill(0);
                    true
                }
                Ok(Some(block)) => {
                    let first = (cluster + (number * step) as u64) & ((1 << self.block_bits()) - 1);
                    let failed = self.input.read(bytes, block + (first << self.order) / 8)?;
                    decode_all(bytes, self.order, counts);
                    failed.is_none()
                }
                Err(Invalid) => false,
            };
            if !is_read {
                unreadable |= 1 << number;
            }
        }
        Ok(Page::Counts { unreadable, step })
    }

    /// Returns the offset of a block, or `None` if all of its counts are 0.
    fn block(&self, index: u64) -> Result<Option<u64>, Invalid> {
        let entry = usize::try_from(index).ok().and_then(|index| self.table.get(index));
        let offset = entry.copied().unwrap_or(0) & BLOCK_OFFSET;
        let cluster = 1 << self.cluster_bits;
        match offset {
            0 => Ok(None),
            _ if offset & (cluster - 1) != 0 || offset > i64::MAX as u64 - cluster => Err(Invalid),
            _ => Ok(Some(offset)),
        }
    }

    /// Returns the binary logarithm of the number of counts in a block.
    fn block_bits(&self) -> u32 {
        self.cluster_bits + 3 - self.order
    }

    fn piece_bits(&self) -> u32 {
        self.block_bits().min(PIECE.ilog2() + 3 - self.order)
    }
}

/// The entry of a block is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Invalid;

/// Returns a count of `1 << order` bits. Small ones begin at the least significant bit of a byte.
#[inline]
fn decode(bytes: &[u8; PIECE], order: u32, index: u64) -> u64 {
    let index = index as usize;
    match order {
        0..3 => {
            let bit = index << order;
            let mask = (1 << (1 << order)) - 1;
            u64::from(bytes[bit / 8] >> (bit % 8)) & mask
        }
        3 => bytes[index].into(),
        4 => u16::from_be_bytes(array(bytes, index * 2)).into(),
        5 => u32::from_be_bytes(array(bytes, index * 4)).into(),
        _ => u64::from_be_bytes(array(bytes, index * 8)),
    }
}

/// Decodes all counts in `bytes`.
fn decode_all(bytes: &[u8], order: u32, counts: &mut [u64]) {
    match order {
        0..3 => {
            let (in_byte, mask) = (8 >> order, (1 << (1 << order)) - 1);
            for (counts, byte) in counts.chunks_exact_mut(in_byte).zip(bytes) {
                for (index, count) in counts.iter_mut().enumerate() {
                    *count = u64::from(*byte >> (index << order)) & mask;
                }
            }
        }
        3 => counts.iter_mut().zip(bytes).for_each(|(count, it)| *count = (*it).into()),
        4 => {
            let stored = bytes.as_chunks().0;
            counts
                .iter_mut()
                .zip(stored)
                .for_each(|(count, it)| *count = u16::from_be_bytes(*it).into());
        }
        5 => {
            let stored = bytes.as_chunks().0;
            counts
                .iter_mut()
                .zip(stored)
                .for_each(|(count, it)| *count = u32::from_be_bytes(*it).into());
        }
        _ => {
            let stored = bytes.as_chunks().0;
            counts.iter_mut().zip(stored).for_each(|(count, it)| *count = u64::from_be_bytes(*it));
        }
    }
}

/// Bits of an entry of the table that hold the offset of a block. The others must be 0.
pub(super) const BLOCK_OFFSET: u64 = !0x1ff;

/// Number of bytes of a block that are cached.
const PIECE: usize = 4096;

/// Number of pieces that are cached, 16 MiB. They have the counts of 512 GiB of clusters of 64 KiB.
const SLOTS: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_all_widths() {
        let mut bytes = [0; PIECE];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = (index * 37 % 251) as u8;
        }
        for order in 0..=6 {
            let mut counts = vec![0; (PIECE * 8) >> order];
            decode_all(&bytes, order, &mut counts);
            for (index, count) in counts.iter().enumerate() {
                assert_eq!(decode(&bytes, order, index as u64), *count, "{order} {index}");
            }
        }
        // The bits of 0x25 from the least significant one on.
        bytes[0] = 0x25;
        assert_eq!([0, 1, 2, 3, 5].map(|index| decode(&bytes, 0, index)), [1, 0, 1, 0, 1]);
        assert_eq!([0, 1, 2, 3].map(|index| decode(&bytes, 1, index)), [1, 1, 2, 0]);
        assert_eq!([0, 1].map(|index| decode(&bytes, 2, index)), [5, 2]);
        bytes[1] = 1;
        assert_eq!(decode(&bytes, 4, 0), 0x2501);
    }
}
