//! The length of a block.

use std::fmt;

/// The length of the blocks that content is cut into: a power of two from [`MIN`](Self::MIN) to
/// [`MAX`](Self::MAX) bytes.
///
/// ```
/// use blkhash::BlockSize;
///
/// assert_eq!(BlockSize::try_from(4096)?.get(), 4096);
/// assert!(BlockSize::try_from(1000).is_err());
/// # Ok::<(), blkhash::InvalidBlockSize>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockSize(u32);

/// The error for a number of bytes that is not a [`BlockSize`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid block size {0}: use a power of two from {min} to {max}",
    min = BlockSize::MIN,
    max = BlockSize::MAX
)]
pub struct InvalidBlockSize(u64);

impl BlockSize {
    /// The smallest block size: a sector of 512 bytes.
    pub const MIN: Self = Self(512);

    /// The largest block size: 64 MiB.
    pub const MAX: Self = Self(64 << 20);

    /// The default block size: 64 KiB.
    pub const DEFAULT: Self = Self(64 << 10);

    /// A page of most machines: 4 KiB, the default of fs-verity and dm-verity.
    pub const PAGE: Self = Self(4 << 10);

    /// Returns the size in bytes.
    pub const fn get(self) -> usize {
        self.0 as usize
    }
}

impl Default for BlockSize {
    /// Returns [`BlockSize::DEFAULT`].
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl TryFrom<u64> for BlockSize {
    type Error = InvalidBlockSize;

    fn try_from(bytes: u64) -> Result<Self, InvalidBlockSize> {
        match u32::try_from(bytes).map(Self) {
            Ok(size) if size.0.is_power_of_two() && (Self::MIN..=Self::MAX).contains(&size) => {
                Ok(size)
            }
            _ => Err(InvalidBlockSize(bytes)),
        }
    }
}

impl From<BlockSize> for u64 {
    fn from(size: BlockSize) -> Self {
        size.0.into()
    }
}

impl fmt::Display for BlockSize {
    /// Writes the number of bytes, or with `{:#}` their number in the largest unit, as in `64 KiB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (f.alternate(), self.0) {
            (false, bytes) => fmt::Display::fmt(&bytes, f),
            (true, bytes) if bytes >= 1 << 20 => write!(f, "{} MiB", bytes >> 20),
            (true, bytes) if bytes >= 1 << 10 => write!(f, "{} KiB", bytes >> 10),
            (true, bytes) => write!(f, "{bytes} bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two_in_range() {
        for bytes in (9..=26).map(|power| 1_u64 << power) {
            let size = BlockSize::try_from(bytes).unwrap();
            assert_eq!(size.get() as u64, bytes);
            assert_eq!(size.to_string(), bytes.to_string());
        }
        for bytes in [0, 1, 256, 511, 513, 3 << 10, 128 << 20, 1 << 32, (1 << 32) + 512, u64::MAX] {
            assert!(BlockSize::try_from(bytes).is_err(), "{bytes}");
        }
        let words = [512, 1 << 10, 512 << 10, 1 << 20, 64 << 20]
            .map(|bytes: u64| format!("{:#}", BlockSize::try_from(bytes).unwrap()));
        assert_eq!(words, ["512 bytes", "1 KiB", "512 KiB", "1 MiB", "64 MiB"]);
        assert_eq!(
            BlockSize::try_from(3072).unwrap_err().to_string(),
            "invalid block size 3072: use a power of two from 512 to 67108864"
        );
    }
}
