//! Raw images: the guest's bytes are the file's own, from a first byte on, exact to the byte.

pub(crate) mod cold;
mod device;
pub(crate) mod direct;
pub(crate) mod disk;
mod in_use;
mod stamps;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::error::{ErrorKind, Result};
use crate::storage::HostFile;
use crate::{Extent, ExtentKind, Lent};

/// What to make of the holes that a file system reports in a raw image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Holes {
    /// They are zeros and need not be read.
    #[default]
    Trust,
    /// Read them all the same; one that is not zero is an error.
    Verify,
    /// Do not ask for holes.
    Ignore,
}

/// Whether host files are read through the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Cache {
    /// Local regular files are, as far as it holds them already; block devices and network file
    /// systems, which another host may have written to, are read directly.
    #[default]
    Auto,
    /// Always.
    Yes,
    /// Never, unless the file system cannot do without.
    No,
}

/// A raw layer of a chain.
pub(crate) struct Raw {
    pub file: Arc<HostFile>,
    pub holes: Holes,
    start: u64,
    size: u64,
}

impl Raw {
    /// The bytes of `file` from `start` to its end.
    pub fn new(file: Arc<HostFile>, start: u64, holes: Holes) -> Self {
        let size = file.size().saturating_sub(start);
        Self { file, holes, start, size }
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    /// Where the guest's byte `offset` lies in the file.
    pub fn host_offset(&self, offset: u64) -> u64 {
        self.start + offset
    }

    /// The kind and length of the extent at `offset`; the range lies below the size.
    pub fn extent(&self, offset: u64, limit: u64) -> Result<(ExtentKind, u64)> {
        if self.holes != Holes::Trust {
            return Ok((ExtentKind::Data, limit));
        }
        let Extent { kind, length, .. } = self.file.extent(self.host_offset(offset), limit)?;
        Ok((kind, length))
    }

    /// Fills `buf` from the file's byte `host_offset` on.
    pub fn read_exact_at(&self, buf: &mut [u8], host_offset: u64) -> Result<()> {
        self.file.read_exact_at(buf, host_offset)?;
        match self.holes {
            Holes::Verify => self.verify_holes(buf, host_offset),
            Holes::Trust | Holes::Ignore => Ok(()),
        }
    }

    /// The same bytes where they lie in memory, if they do and need not be looked at before.
    pub fn lend(&self, host_offset: u64, length: usize) -> Option<Lent> {
        match self.holes {
            Holes::Trust | Holes::Ignore => self.file.lend(host_offset, length),
            Holes::Verify => None,
        }
    }

    fn verify_holes(&self, buf: &[u8], host_offset: u64) -> Result<()> {
        let mut done = 0;
        while done < buf.len() {
            let offset = host_offset + done as u64;
            let extent = self.file.extent(offset, (buf.len() - done) as u64)?;
            let bytes = &buf[done..done + extent.length as usize];
            if extent.kind == ExtentKind::Zero
                && let Some(position) = bytes.iter().position(|byte| *byte != 0)
            {
                let reason = "the file system reports a hole and its content is not zero";
                let error = self.file.error(ErrorKind::Holes, reason);
                return Err(error.at(offset + position as u64));
            }
            done += bytes.len();
        }
        Ok(())
    }
}

/// A name that is none of those of [`Holes`] or [`Cache`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownName;

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown name")
    }
}

impl std::error::Error for UnknownName {}

impl FromStr for Holes {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        match name {
            "trust" => Ok(Self::Trust),
            "verify" => Ok(Self::Verify),
            "ignore" => Ok(Self::Ignore),
            _ => Err(UnknownName),
        }
    }
}

impl FromStr for Cache {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        match name {
            "auto" => Ok(Self::Auto),
            "yes" => Ok(Self::Yes),
            "no" => Ok(Self::No),
            _ => Err(UnknownName),
        }
    }
}

#[cfg(test)]
mod tests;
