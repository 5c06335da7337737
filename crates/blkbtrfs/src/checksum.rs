//! The four checksums of btrfs, computed for many blocks at a time.

use std::fmt;

use blkhash::{Algorithm, Digester, Implementation, State};

/// Type of a file system's checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChecksumType {
    /// CRC-32C, the default.
    Crc32c,
    /// XXH64 with seed 0.
    Xxhash,
    /// SHA-256.
    Sha256,
    /// BLAKE2b with 256 bits.
    Blake2b,
}

impl ChecksumType {
    /// All types, in the order of their numbers on disk.
    pub const ALL: [Self; 4] = [Self::Crc32c, Self::Xxhash, Self::Sha256, Self::Blake2b];

    pub(crate) fn from_raw(number: u16) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Returns the name as in mkfs.btrfs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Crc32c => "crc32c",
            Self::Xxhash => "xxhash",
            Self::Sha256 => "sha256",
            Self::Blake2b => "blake2b",
        }
    }

    /// Returns the algorithm that computes the checksum.
    pub const fn algorithm(self) -> Algorithm {
        match self {
            Self::Crc32c => Algorithm::Crc32c,
            Self::Xxhash => Algorithm::Xxh64,
            Self::Sha256 => Algorithm::Sha256,
            Self::Blake2b => Algorithm::Blake2b256,
        }
    }

    /// Returns the size of a checksum in bytes.
    pub const fn size(self) -> usize {
        self.algorithm().digest_size()
    }
}

impl fmt::Display for ChecksumType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A checksum as stored on disk. Checksums that are numbers are little-endian. The hexadecimal form
/// is the same as in the kernel and btrfs-progs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Checksum {
    bytes: [u8; MAX_SIZE],
    length: u8,
}

impl Checksum {
    pub(crate) fn new(stored: &[u8]) -> Self {
        let mut bytes = [0; MAX_SIZE];
        bytes[..stored.len()].copy_from_slice(stored);
        Self { bytes, length: stored.len() as u8 }
    }

    /// Returns the stored bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Checksum({self})")
    }
}

/// Computes checksums of one type.
#[derive(Clone, Debug)]
pub(crate) struct Summer {
    kind: ChecksumType,
    digester: Digester,
    start: State,
}

impl Summer {
    /// Uses the fastest implementations on this machine.
    pub(crate) fn new(kind: ChecksumType) -> Self {
        Self::with_digester(kind, Digester::new(kind.algorithm()))
    }

    /// Uses one implementation for all checksums.
    pub(crate) fn with_implementation(
        kind: ChecksumType,
        implementation: &Implementation,
    ) -> Result<Self, blkhash::Error> {
        let digester = Digester::with_implementation(kind.algorithm(), &implementation.name())?;
        Ok(Self::with_digester(kind, digester))
    }

    fn with_digester(kind: ChecksumType, digester: Digester) -> Self {
        let start = digester.start();
        Self { kind, digester, start }
    }

    pub(crate) fn size(&self) -> usize {
        self.kind.size()
    }

    /// Returns whether blocks are best summed in place in memory.
    pub(crate) fn hides_latency(&self) -> bool {
        self.digester.hides_latency()
    }

    /// Returns the checksum of `block`.
    pub(crate) fn sum(&self, block: &[u8]) -> Checksum {
        let mut stored = [0; MAX_SIZE];
        let stored = &mut stored[..self.size()];
        self.sum_many(&[block], stored);
        Checksum::new(stored)
    }

    /// Computes the checksums of `blocks`, which have equal lengths, and writes them to `stored` in
    /// on-disk form.
    pub(crate) fn sum_many(&self, blocks: &[&[u8]], stored: &mut [u8]) {
        self.digester.finish_many(&self.start, blocks, stored);
        // Digests of numbers are big-endian in this project, but little-endian in btrfs.
        match self.kind {
            ChecksumType::Crc32c | ChecksumType::Xxhash => {
                stored.chunks_exact_mut(self.size()).for_each(<[u8]>::reverse);
            }
            ChecksumType::Sha256 | ChecksumType::Blake2b => {}
        }
    }
}

/// Bytes that every structure reserves for a checksum.
pub(crate) const MAX_SIZE: usize = 32;

/// Number of blocks passed to the kernels at once, a multiple of the lanes of all kernels.
pub(crate) const LANES: usize = 64;
