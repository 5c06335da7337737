//! The four checksums of btrfs, many blocks at a time.

use std::fmt;

use blkhash::{Algorithm, Digester, Implementation, State};

/// What a file system's checksums are.
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
    /// All of them, by their number on disk.
    pub const ALL: [Self; 4] = [Self::Crc32c, Self::Xxhash, Self::Sha256, Self::Blake2b];

    pub(crate) fn from_raw(number: u16) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The name, as mkfs.btrfs has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Crc32c => "crc32c",
            Self::Xxhash => "xxhash",
            Self::Sha256 => "sha256",
            Self::Blake2b => "blake2b",
        }
    }

    /// What computes it.
    pub const fn algorithm(self) -> Algorithm {
        match self {
            Self::Crc32c => Algorithm::Crc32c,
            Self::Xxhash => Algorithm::Xxh64,
            Self::Sha256 => Algorithm::Sha256,
            Self::Blake2b => Algorithm::Blake2b256,
        }
    }

    /// Bytes of a checksum.
    pub const fn size(self) -> usize {
        self.algorithm().digest_size()
    }
}

impl fmt::Display for ChecksumType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A checksum as it is stored: in little endian where it is a number. Its hexadecimal is what the
/// kernel and btrfs-progs print.
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

    /// The stored bytes.
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
    /// With the best implementations of this machine.
    pub(crate) fn new(kind: ChecksumType) -> Self {
        Self::with_digester(kind, Digester::new(kind.algorithm()))
    }

    /// With one implementation for everything.
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

    /// Whether blocks are best summed where they lie in memory.
    pub(crate) fn hides_latency(&self) -> bool {
        self.digester.hides_latency()
    }

    /// The checksum of `block`.
    pub(crate) fn sum(&self, block: &[u8]) -> Checksum {
        let mut stored = [0; MAX_SIZE];
        let stored = &mut stored[..self.size()];
        self.sum_many(&[block], stored);
        Checksum::new(stored)
    }

    /// Writes the checksums of `blocks`, all of the same length, to `stored`, as they are stored.
    pub(crate) fn sum_many(&self, blocks: &[&[u8]], stored: &mut [u8]) {
        self.digester.finish_many(&self.start, blocks, stored);
        // Digests are big endian throughout the project; btrfs stores numbers in little endian.
        match self.kind {
            ChecksumType::Crc32c | ChecksumType::Xxhash => {
                stored.chunks_exact_mut(self.size()).for_each(<[u8]>::reverse);
            }
            ChecksumType::Sha256 | ChecksumType::Blake2b => {}
        }
    }
}

/// Bytes that every structure leaves for a checksum.
pub(crate) const MAX_SIZE: usize = 32;

/// Blocks that are handed to the kernels at once: a multiple of the lanes of any.
pub(crate) const LANES: usize = 64;
