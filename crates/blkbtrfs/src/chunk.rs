//! Chunks: the mapping of logical addresses to bytes of devices.
//!
//! No field of a chunk is trusted. Lengths, numbers of stripes and their offsets are checked before
//! a chunk is used, so that mapping an address cannot overflow.

use std::collections::BTreeMap;
use std::fmt;

use crate::bytes::{array_at, u16_at, u32_at, u64_at};
use crate::error::{Error, Result};
use crate::uuid::Uuid;

/// Distribution of a chunk over devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Profile {
    /// One copy.
    Single,
    /// Two copies on one device.
    Dup,
    /// Striped over all devices.
    Raid0,
    /// Copies on two devices.
    Raid1,
    /// Copies on three devices.
    Raid1c3,
    /// Copies on four devices.
    Raid1c4,
    /// Striped over pairs of devices.
    Raid10,
    /// Striped over devices, with one parity in each row.
    Raid5,
    /// Striped over devices, with two parities in each row.
    Raid6,
}

impl Profile {
    /// Returns the name as in mkfs.btrfs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Dup => "DUP",
            Self::Raid0 => "RAID0",
            Self::Raid1 => "RAID1",
            Self::Raid1c3 => "RAID1C3",
            Self::Raid1c4 => "RAID1C4",
            Self::Raid10 => "RAID10",
            Self::Raid5 => "RAID5",
            Self::Raid6 => "RAID6",
        }
    }

    /// Returns the number of parities in a row of stripes.
    pub const fn parities(self) -> u64 {
        match self {
            Self::Raid5 => 1,
            Self::Raid6 => 2,
            _ => 0,
        }
    }

    fn from_flags(flags: u64) -> Option<Self> {
        let bits = flags >> FIRST_PROFILE_BIT & 0xff;
        Some(match bits {
            0 => Self::Single,
            0x01 => Self::Raid0,
            0x02 => Self::Raid1,
            0x04 => Self::Dup,
            0x08 => Self::Raid10,
            0x10 => Self::Raid5,
            0x20 => Self::Raid6,
            0x40 => Self::Raid1c3,
            0x80 => Self::Raid1c4,
            _ => return None,
        })
    }

    /// Returns whether a chunk of this profile may have that many stripes.
    fn allows(self, stripes: u64, sub_stripes: u16) -> bool {
        match self {
            Self::Single => stripes == 1,
            Self::Dup | Self::Raid1 => stripes == 2,
            Self::Raid1c3 => stripes == 3,
            Self::Raid1c4 => stripes == 4,
            Self::Raid0 => stripes >= 1,
            Self::Raid10 => stripes >= 2 && stripes.is_multiple_of(2) && sub_stripes == 2,
            Self::Raid5 | Self::Raid6 => stripes > self.parities(),
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A range of logical addresses and its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) logical: u64,
    pub(crate) length: u64,
    pub(crate) flags: u64,
    pub(crate) profile: Profile,
    pub(crate) stripes: Box<[Stripe]>,
}

/// Space of a chunk on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stripe {
    pub(crate) device: u64,
    pub(crate) offset: u64,
    pub(crate) device_uuid: Uuid,
}

/// Contiguous bytes on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) device: u64,
    pub(crate) physical: u64,
    pub(crate) length: u64,
}

impl Chunk {
    /// Parses the chunk item of `logical`. Also returns the length of the item.
    pub(crate) fn parse(logical: u64, bytes: &[u8], sector_size: u64) -> Result<(Self, usize)> {
        let fail = |reason: String| Err(Error::corrupt(logical, reason));
        let fields = || {
            Some((
                u64_at(bytes, 0)?,
                u64_at(bytes, 0x10)?,
                u64_at(bytes, 0x18)?,
                u16_at(bytes, 0x2c)?,
                u16_at(bytes, 0x2e)?,
            ))
        };
        let Some((length, stripe_length, flags, count, sub_stripes)) = fields() else {
            return fail("the item of a chunk is cut off".into());
        };
        let Some(profile) = Profile::from_flags(flags) else {
            return fail(format!("a chunk has the flags {flags:#x}: more than one profile"));
        };
        if flags & (DATA | METADATA | SYSTEM) == 0 || flags & !KNOWN != 0 {
            return fail(format!("a chunk has the flags {flags:#x}, which are not known"));
        }
        if !profile.allows(count.into(), sub_stripes) {
            return fail(format!("a chunk of profile {profile} has {count} stripes"));
        }
        let sector = u32_at(bytes, 0x28).map(u64::from);
        if let Some(sector) = sector.filter(|sector| *sector != sector_size) {
            return fail(format!("a chunk has sectors of {sector} bytes, not {sector_size}"));
        }
        if stripe_length != STRIPE {
            return fail(format!("a chunk has stripes of {stripe_length} bytes, not {STRIPE}"));
        }
        if length == 0
            || !length.is_multiple_of(sector_size)
            || !logical.is_multiple_of(sector_size)
            || logical.checked_add(length).is_none()
        {
            return fail(format!("a chunk has a length of {length} bytes"));
        }
        let size = HEAD + usize::from(count) * STRIPE_ITEM;
        let Some(items) = bytes.get(HEAD..size) else {
            return fail(format!("the item of a chunk with {count} stripes is cut off"));
        };
        let stripes = items.chunks_exact(STRIPE_ITEM).filter_map(|item| {
            Some(Stripe {
                device: u64_at(item, 0)?,
                offset: u64_at(item, 8)?,
                device_uuid: Uuid(array_at(item, 16)?),
            })
        });
        let chunk = Self { logical, length, flags, profile, stripes: stripes.collect() };
        let share = chunk.stripe_share();
        if let Some(stripe) = chunk.stripes.iter().find(|it| it.offset.checked_add(share).is_none())
        {
            return fail(format!("a chunk lies at {} of device {}", stripe.offset, stripe.device));
        }
        Ok((chunk, size))
    }

    pub(crate) fn end(&self) -> u64 {
        self.logical + self.length
    }

    /// Returns the number of copies of the content.
    pub(crate) fn mirrors(&self) -> u32 {
        match self.profile {
            Profile::Single | Profile::Raid0 | Profile::Raid5 | Profile::Raid6 => 1,
            Profile::Dup | Profile::Raid1 | Profile::Raid10 => 2,
            Profile::Raid1c3 => 3,
            Profile::Raid1c4 => 4,
        }
    }

    /// Returns the number of stripes in a row that hold different data.
    pub(crate) fn data_stripes(&self) -> u64 {
        let stripes = self.stripes.len() as u64;
        match self.profile {
            Profile::Raid0 => stripes,
            Profile::Raid10 => stripes / 2,
            Profile::Raid5 | Profile::Raid6 => stripes - self.profile.parities(),
            _ => 1,
        }
    }

    /// Returns the bytes that the chunk uses on each device.
    pub(crate) fn stripe_share(&self) -> u64 {
        match self.data_stripes() {
            1 => self.length,
            // The last row may be shorter.
            stripes => self.length.div_ceil(stripes * STRIPE).saturating_mul(STRIPE),
        }
    }

    /// Maps `logical`, which is within the chunk, to mirror `mirror`, counted from 0. The length
    /// of the result is the number of contiguous bytes.
    pub(crate) fn map(&self, logical: u64, mirror: u32) -> Run {
        let offset = logical - self.logical;
        let left = self.length - offset;
        let mirror = u64::from(mirror);
        let (index, within, length) = match self.profile {
            Profile::Single
            | Profile::Dup
            | Profile::Raid1
            | Profile::Raid1c3
            | Profile::Raid1c4 => (mirror, offset, left),
            Profile::Raid0 | Profile::Raid10 | Profile::Raid5 | Profile::Raid6 => {
                let (row, column, rest) = self.place(logical);
                let index = match self.profile {
                    Profile::Raid10 => 2 * column + mirror,
                    Profile::Raid5 | Profile::Raid6 => self.rotated(row, column),
                    _ => column,
                };
                (index, row * STRIPE + rest, (STRIPE - rest).min(left))
            }
        };
        let stripe = self.stripes[index as usize];
        Run { device: stripe.device, physical: stripe.offset + within, length }
    }

    /// Returns the logical address of the byte `physical` of a device, if the chunk is there. `None` with
    /// RAID5 and RAID6.
    pub(crate) fn unmap(&self, device: u64, physical: u64) -> Option<u64> {
        let share = self.stripe_share();
        let (index, within) = self.stripes.iter().enumerate().find_map(|(index, stripe)| {
            let within = physical.checked_sub(stripe.offset).filter(|within| *within < share)?;
            (stripe.device == device).then_some((index as u64, within))
        })?;
        let column = match self.profile {
            Profile::Raid0 => index,
            Profile::Raid10 => index / 2,
            Profile::Raid5 | Profile::Raid6 => return None,
            _ => 0,
        };
        let (row, rest) = (within / STRIPE, within % STRIPE);
        let number = row.checked_mul(self.data_stripes())?.checked_add(column)?;
        let offset = number.checked_mul(STRIPE)?.checked_add(rest)?;
        (offset < self.length).then(|| self.logical + offset)
    }

    /// Returns the row and the column of the stripe that holds `logical`, and the offset in the
    /// stripe. Supports striped profiles only.
    pub(crate) fn place(&self, logical: u64) -> (u64, u64, u64) {
        let offset = logical - self.logical;
        let (number, rest) = (offset / STRIPE, offset % STRIPE);
        (number / self.data_stripes(), number % self.data_stripes(), rest)
    }

    /// Returns the location of a column in a row. Columns of data come before parities. Supports
    /// RAID5 and RAID6 only.
    pub(crate) fn place_in_row(&self, row: u64, column: u64) -> Run {
        let stripe = self.stripes[self.rotated(row, column) as usize];
        Run { device: stripe.device, physical: stripe.offset + row * STRIPE, length: STRIPE }
    }

    /// Returns the index of the stripe of a column. Rows rotate so that the parities are spread
    /// over all devices.
    fn rotated(&self, row: u64, column: u64) -> u64 {
        let stripes = self.stripes.len() as u64;
        (column + row % stripes) % stripes
    }
}

/// Map of all chunks.
#[derive(Debug, Default)]
pub(crate) struct ChunkMap {
    chunks: BTreeMap<u64, Chunk>,
    stripes: usize,
}

impl ChunkMap {
    /// Adds a chunk. Ignores a chunk that is already there, because system chunks are also in the
    /// superblock.
    ///
    /// # Errors
    ///
    /// Fails if the chunk overlaps another one, or if there are too many.
    pub(crate) fn insert(&mut self, chunk: Chunk) -> Result<()> {
        if self.chunks.get(&chunk.logical) == Some(&chunk) {
            return Ok(());
        }
        let before = self.chunks.range(..chunk.end()).next_back();
        if let Some((_, other)) = before.filter(|(_, other)| other.end() > chunk.logical) {
            let reason = format!("a chunk overlaps the one of logical {}", other.logical);
            return Err(Error::corrupt(chunk.logical, reason));
        }
        self.stripes += chunk.stripes.len();
        if self.stripes > MAX_STRIPES {
            let reason = format!("there are more than {MAX_STRIPES} stripes in chunks");
            return Err(Error::corrupt(chunk.logical, reason));
        }
        self.chunks.insert(chunk.logical, chunk);
        Ok(())
    }

    /// Returns the chunk that holds `logical`.
    pub(crate) fn find(&self, logical: u64) -> Option<&Chunk> {
        let (_, chunk) = self.chunks.range(..=logical).next_back()?;
        (logical < chunk.end()).then_some(chunk)
    }

    /// Returns the chunk that holds `length` bytes from `logical`.
    pub(crate) fn find_range(&self, logical: u64, length: u64) -> Option<&Chunk> {
        let chunk = self.find(logical)?;
        (chunk.end() - logical >= length).then_some(chunk)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Chunk> {
        self.chunks.values()
    }
}

/// Bytes of a stripe before the next device follows. No other length was ever in use.
pub(crate) const STRIPE: u64 = 64 << 10;

/// Chunk flags.
pub(crate) const DATA: u64 = 1;
pub(crate) const SYSTEM: u64 = 2;
pub(crate) const METADATA: u64 = 4;
/// Bits of kinds and profiles.
pub(crate) const KNOWN: u64 = DATA | SYSTEM | METADATA | 0xff << FIRST_PROFILE_BIT;
const FIRST_PROFILE_BIT: u32 = 3;

const HEAD: usize = 0x30;
const STRIPE_ITEM: usize = 0x20;

/// Maximum number of stripes of all chunks. Chunks are usually at least 1 GiB, so this is enough for half a PiB. The
/// memory for it is small.
/// Limit in stripes.
const MAX_STRIPES: usize = 512 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unmapping_is_the_inverse_of_mapping() {
        for (profile, stripes) in [
            (Profile::Single, 1),
            (Profile::Dup, 2),
            (Profile::Raid1, 2),
            (Profile::Raid1c3, 3),
            (Profile::Raid0, 3),
            (Profile::Raid10, 4),
        ] {
            let stripe = |index: u64| Stripe {
                // Both stripes of DUP are on one device.
                device: if profile == Profile::Dup { 1 } else { index + 1 },
                offset: 1 << 20 | index << 30,
                device_uuid: Uuid([0; 16]),
            };
            let (logical, length) = (5 << 20, 10 * STRIPE);
            let stripes = (0..stripes).map(stripe).collect();
            let chunk = Chunk { logical, length, flags: DATA, profile, stripes };
            for offset in (0..length).step_by(4096 * 3) {
                for mirror in 0..chunk.mirrors() {
                    let run = chunk.map(logical + offset, mirror);
                    assert_eq!(chunk.unmap(run.device, run.physical), Some(logical + offset));
                    assert_eq!(chunk.unmap(run.device + 9, run.physical), None);
                }
            }
            assert_eq!(chunk.unmap(1, (1 << 20) - 1), None);
            assert_eq!(chunk.unmap(1, (1 << 20) + chunk.stripe_share()), None);
        }
    }
}
