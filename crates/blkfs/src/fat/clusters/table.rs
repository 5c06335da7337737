//! The place of a file allocation table, and the form of its entries.

use super::runs::{BAD, END};
use crate::bytes::le16_at;
use crate::volume::Volume;

/// The form of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// FAT12: two entries in three bytes.
    Bits12,
    /// FAT16.
    Bits16,
    /// FAT32: 28 bits in four bytes.
    Bits28,
    /// exFAT.
    Bits32,
}

/// The place and form of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub width: Width,
    /// Offset of the first copy in bytes.
    pub start: u64,
    /// Size of a copy in bytes.
    pub size: u64,
    /// Number of copies.
    pub copies: u8,
    /// The copy that is in use, from 0 on.
    pub active: u8,
    /// Whether the copies have equal content.
    pub is_mirrored: bool,
}

impl Width {
    /// Returns the size of an entry in bits.
    pub fn bits(self) -> u64 {
        match self {
            Self::Bits12 => 12,
            Self::Bits16 => 16,
            Self::Bits28 | Self::Bits32 => 32,
        }
    }

    /// Returns the bits of an entry that count.
    fn mask(self) -> u32 {
        match self {
            Self::Bits12 => 0xfff,
            Self::Bits16 => 0xffff,
            Self::Bits28 => 0x0fff_ffff,
            Self::Bits32 => u32::MAX,
        }
    }

    /// Returns the content of an entry as [`Runs`] has it.
    fn entry(self, value: u32) -> u32 {
        let (value, mask) = (value & self.mask(), self.mask());
        match mask - value {
            // 0xfff8 and above end a chain, except in exFAT.
            0 => END,
            1..8 if self != Self::Bits32 => END,
            8 => BAD,
            _ => value,
        }
    }

    /// Calls `each` with the entries in some bytes of a table, until it returns `false`. Returns whether it never did.
    pub fn decode(self, bytes: &[u8], mut each: impl FnMut(u32) -> bool) -> bool {
        match self {
            Self::Bits12 => (0..bytes.len() * 2 / 3).all(|index| {
                let pair = le16_at(bytes, index * 3 / 2).map_or(0, u32::from);
                each(self.entry(if index % 2 == 0 { pair } else { pair >> 4 }))
            }),
            Self::Bits16 => {
                let mut entries = bytes.as_chunks::<2>().0.iter();
                entries.all(|entry| each(self.entry(u16::from_le_bytes(*entry).into())))
            }
            Self::Bits28 | Self::Bits32 => {
                let mut entries = bytes.as_chunks::<4>().0.iter();
                entries.all(|entry| each(self.entry(u32::from_le_bytes(*entry))))
            }
        }
    }
}

impl Table {
    /// Returns the number of entries of a copy.
    pub fn entries(&self) -> u64 {
        self.size.saturating_mul(8) / self.width.bits()
    }

    /// Returns the offset of the end of the last copy.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.size.saturating_mul(self.copies.into()))
    }

    /// Returns the entry of a cluster.
    pub fn entry(&self, volume: &Volume, cluster: u32) -> Option<u32> {
        let (bits, first) = (self.width.bits(), u64::from(cluster));
        let at = first.checked_mul(bits)? / 8;
        let bytes =
            volume.read(self.copy(self.active).checked_add(at)?, bits.div_ceil(8) as usize).ok()?;
        let mut value = 0;
        for byte in bytes.iter().rev() {
            value = value << 8 | u32::from(*byte);
        }
        let shift = if self.width == Width::Bits12 && cluster % 2 == 1 { 4 } else { 0 };
        Some(self.width.entry(value >> shift))
    }

    /// Returns the offset of a copy.
    pub fn copy(&self, index: u8) -> u64 {
        self.start.saturating_add(self.size.saturating_mul(index.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::runs::FREE;
    use super::*;

    fn decoded(width: Width, bytes: &[u8]) -> Vec<u32> {
        let mut entries = Vec::new();
        assert!(width.decode(bytes, |entry| {
            entries.push(entry);
            true
        }));
        entries
    }

    #[test]
    fn entries_of_each_width() {
        let bytes = [0xf8, 0xff, 0xff, 0x03, 0x70, 0xff, 0, 0];
        assert_eq!(decoded(Width::Bits12, &bytes), [END, END, 3, BAD, FREE]);
        let bytes = [0xf8, 0xff, 0xf7, 0xff, 0xf6, 0xff, 3, 0, 0, 0];
        assert_eq!(decoded(Width::Bits16, &bytes), [END, BAD, 0xfff6, 3, FREE]);
        let bytes = [0xf8, 0xff, 0xff, 0xff, 0xf7, 0xff, 0xff, 0x1f, 1, 2, 3, 0xf4];
        assert_eq!(decoded(Width::Bits28, &bytes), [END, BAD, 0x0403_0201]);
        assert_eq!(decoded(Width::Bits32, &bytes), [0xffff_fff8, 0x1fff_fff7, 0xf403_0201]);
        assert_eq!(decoded(Width::Bits32, &[0xff; 4]), [END]);
        assert_eq!(decoded(Width::Bits32, &[0xf7, 0xff, 0xff, 0xff]), [BAD]);
    }
}
