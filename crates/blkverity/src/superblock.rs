//! The superblock of a hash file of dm-verity.
//!
//! Its fields are `struct verity_sb` of cryptsetup, all in little endian:
//!
//! | offset | length | field |
//! |--:|--:|---|
//! | 0 | 8 | `verity\0\0` |
//! | 8 | 4 | version, 1 |
//! | 12 | 4 | hash type, 1 |
//! | 16 | 16 | UUID |
//! | 32 | 32 | name of the digest, padded with zeros |
//! | 64 | 4 | size of a data block in bytes |
//! | 68 | 4 | size of a hash block in bytes |
//! | 72 | 8 | number of data blocks |
//! | 80 | 2 | length of the salt in bytes |
//! | 88 | 256 | salt, padded with zeros |

use blkhash::{Algorithm, BlockSize, Construction, Parameters, Salt};

use crate::Layout;

/// The description of a tree in a hash file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// UUID of the hash file.
    pub uuid: [u8; 16],
    /// Digest of data blocks and hash blocks.
    pub algorithm: Algorithm,
    /// Size of a block of data.
    pub data_block_size: BlockSize,
    /// Size of a block of the tree.
    pub hash_block_size: BlockSize,
    /// Number of blocks of data, at least 1.
    pub data_blocks: u64,
    /// Salt, which is hashed before each block.
    pub salt: Salt,
}

/// The reason why bytes are no superblock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SuperblockError {
    /// The magic bytes are missing.
    #[error("no superblock of dm-verity")]
    Magic,
    /// The version is not 1.
    #[error("version {0} of the superblock is unknown")]
    Version(u32),
    /// The hash type is not 1.
    #[error("hash type {0} is not supported: type 1 is")]
    HashType(u32),
    /// No digest has this name, or dm-verity is not defined for it.
    #[error("the digest {0:?} is unknown")]
    Algorithm(String),
    /// The size of a data block is not a power of two from 512 to 512 KiB.
    #[error("data blocks of {0} bytes: the size is a power of two from 512 to 524288")]
    DataBlockSize(u32),
    /// The size of a hash block is not a power of two from 512 to 512 KiB.
    #[error("hash blocks of {0} bytes: the size is a power of two from 512 to 524288")]
    HashBlockSize(u32),
    /// There is no data, or too much.
    #[error("{0} data blocks")]
    DataBlocks(u64),
    /// The salt is longer than its field.
    #[error("a salt of {0} bytes: at most {max} are possible", max = Salt::MAX)]
    Salt(u16),
}

impl Superblock {
    /// Length in bytes.
    pub const SIZE: usize = 512;

    /// The largest block, as in veritysetup: 512 KiB.
    pub const MAX_BLOCK_SIZE: u64 = 512 << 10;

    /// Returns the superblock of a tree with the defaults of veritysetup: SHA-256, and blocks of 4096 bytes. It has no
    /// salt, and a UUID of zeros.
    pub fn new(data_blocks: u64) -> Self {
        Self {
            uuid: [0; 16],
            algorithm: Algorithm::Sha256,
            data_block_size: BlockSize::PAGE,
            hash_block_size: BlockSize::PAGE,
            data_blocks,
            salt: Salt::EMPTY,
        }
    }

    /// Sets the number of blocks of data to the blocks in `length` bytes.
    ///
    /// # Errors
    ///
    /// Fails if the length is not one whole block or more, or dm-verity is not defined for the digest.
    pub fn with_data_length(self, length: u64) -> Result<Self, blkhash::Error> {
        let Self { algorithm, data_block_size, .. } = self;
        let parameters = Parameters::new(algorithm, Construction::DmVerity, data_block_size)?;
        parameters.check_length(length)?;
        Ok(Self { data_blocks: length / u64::from(data_block_size), ..self })
    }

    /// Returns whether bytes begin like a superblock.
    pub fn has_magic(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC)
    }

    /// Parses a superblock.
    ///
    /// # Errors
    ///
    /// Fails if a field has a value that is not supported.
    pub fn parse(bytes: &[u8; Self::SIZE]) -> Result<Self, SuperblockError> {
        let u16_at = |at: usize| u16::from_le_bytes(array(&bytes[at..]));
        let u32_at = |at: usize| u32::from_le_bytes(array(&bytes[at..]));
        if !Self::has_magic(bytes) {
            return Err(SuperblockError::Magic);
        }
        let (version, hash_type) = (u32_at(8), u32_at(12));
        if version != VERSION {
            return Err(SuperblockError::Version(version));
        }
        if hash_type != HASH_TYPE {
            return Err(SuperblockError::HashType(hash_type));
        }
        let name = bytes[32..64].split(|byte| *byte == 0).next().unwrap_or_default();
        let name = String::from_utf8_lossy(name);
        let algorithm = name.parse().ok().filter(|it| Construction::DmVerity.accepts(*it));
        let algorithm = algorithm.ok_or_else(|| SuperblockError::Algorithm(name.into_owned()))?;
        let (data, hash) = (u32_at(64), u32_at(68));
        let data_block_size = block_size(data).ok_or(SuperblockError::DataBlockSize(data))?;
        let hash_block_size = block_size(hash).ok_or(SuperblockError::HashBlockSize(hash))?;
        let data_blocks = u64::from_le_bytes(array(&bytes[72..]));
        let length = data_blocks.checked_mul(data_block_size.into());
        if data_blocks == 0 || length.is_none_or(|length| i64::try_from(length).is_err()) {
            return Err(SuperblockError::DataBlocks(data_blocks));
        }
        let length = u16_at(80);
        let salt = bytes[88..88 + Salt::MAX].get(..usize::from(length));
        let salt = salt.and_then(|salt| Salt::try_from(salt).ok());
        let salt = salt.ok_or(SuperblockError::Salt(length))?;
        let uuid = array(&bytes[16..]);
        Ok(Self { uuid, algorithm, data_block_size, hash_block_size, data_blocks, salt })
    }

    /// Returns the bytes of the superblock.
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let name = self.digest_name().as_bytes();
        let salt = self.salt.as_bytes();
        let mut put = |at: usize, field: &[u8]| bytes[at..][..field.len()].copy_from_slice(field);
        put(0, MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(12, &HASH_TYPE.to_le_bytes());
        put(16, &self.uuid);
        put(32, name);
        put(64, &(self.data_block_size.get() as u32).to_le_bytes());
        put(68, &(self.hash_block_size.get() as u32).to_le_bytes());
        put(72, &self.data_blocks.to_le_bytes());
        put(80, &(salt.len() as u16).to_le_bytes());
        put(88, salt);
        bytes
    }

    /// Returns the name of the digest in the superblock, as in the kernel.
    pub fn digest_name(&self) -> &'static str {
        match self.algorithm {
            Algorithm::Blake2b256 => "blake2b-256",
            Algorithm::Blake2b512 => "blake2b-512",
            Algorithm::Blake2s256 => "blake2s-256",
            other => other.name(),
        }
    }

    /// Returns the layout of the tree in a file with the superblock at this offset. `None` if its end is
    /// past 2^63 - 1.
    pub fn layout(&self, offset: u64) -> Option<Layout> {
        let start = offset.checked_add(Self::SIZE as u64)?;
        let start = start.checked_next_multiple_of(self.hash_block_size.into())?;
        Layout::new(self.algorithm, self.hash_block_size, start, self.data_blocks)
    }

    /// Returns the length of the data in bytes.
    pub fn data_length(&self) -> u64 {
        self.data_blocks * u64::from(self.data_block_size)
    }
}

fn block_size(bytes: u32) -> Option<BlockSize> {
    let size = u64::from(bytes);
    BlockSize::try_from(size).ok().filter(|_| size <= Superblock::MAX_BLOCK_SIZE)
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    *bytes.first_chunk().expect("a field inside the superblock")
}

const MAGIC: &[u8] = b"verity\0\0";

const VERSION: u32 = 1;

/// The type of all distributions. Type 0 is for old Chrome OS.
const HASH_TYPE: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn superblock() -> Superblock {
        Superblock {
            uuid: *b"0123456789abcdef",
            algorithm: Algorithm::Blake2b512,
            data_block_size: BlockSize::PAGE,
            hash_block_size: BlockSize::MIN,
            data_blocks: 1234,
            salt: "5a".repeat(256).parse().unwrap(),
        }
    }

    #[test]
    fn superblocks_round_trip() {
        for &algorithm in Algorithm::ALL {
            let superblock = Superblock { algorithm, ..superblock() };
            let parsed = Superblock::parse(&superblock.to_bytes());
            if Construction::DmVerity.accepts(algorithm) {
                assert_eq!(parsed, Ok(superblock));
            } else {
                assert!(matches!(parsed, Err(SuperblockError::Algorithm(_))), "{algorithm}");
            }
        }
    }

    #[test]
    fn other_values_are_refused() {
        let with = |at: usize, field: &[u8]| {
            let mut bytes = superblock().to_bytes();
            bytes[at..][..field.len()].copy_from_slice(field);
            Superblock::parse(&bytes).unwrap_err()
        };
        assert_eq!(with(0, b"V"), SuperblockError::Magic);
        assert_eq!(with(8, &[2]), SuperblockError::Version(2));
        assert_eq!(with(12, &[0]), SuperblockError::HashType(0));
        assert_eq!(with(32, b"md6\0"), SuperblockError::Algorithm("md6".into()));
        assert_eq!(with(32, &[0xff, 0]), SuperblockError::Algorithm("\u{fffd}".into()));
        assert_eq!(with(64, &[1]), SuperblockError::DataBlockSize(4097));
        assert_eq!(with(64, &[0, 0, 16]), SuperblockError::DataBlockSize(1 << 20));
        assert_eq!(with(68, &[0; 4]), SuperblockError::HashBlockSize(0));
        assert_eq!(with(72, &[0; 8]), SuperblockError::DataBlocks(0));
        assert_eq!(with(72, &[0xff; 8]), SuperblockError::DataBlocks(u64::MAX));
        assert_eq!(with(80, &[1, 1]), SuperblockError::Salt(257));
    }
}
