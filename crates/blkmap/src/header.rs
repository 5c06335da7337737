//! The header, which names the parameters of a map.

use blkhash::{Algorithm, BlockSize, Digester, Leaf, Salt, Strength};

use crate::bytes::{array, put, u16_at, u32_at};
use crate::{Error, PAGE, Result};

/// The parameters of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// Random bytes that tie pages and commits to this file.
    pub file_id: [u8; 16],
    /// Digest of the blocks.
    pub algorithm: Algorithm,
    /// Size of a block of the image.
    pub block_size: BlockSize,
    /// Salt, which is hashed before each block.
    pub salt: Salt,
}

impl Header {
    /// Returns the header of a new map, with random bytes for its file.
    ///
    /// # Errors
    ///
    /// Fails if the system has no random bytes.
    pub fn new(algorithm: Algorithm, block_size: BlockSize, salt: Salt) -> std::io::Result<Self> {
        let mut file_id = [0; 16];
        getrandom::fill(&mut file_id)?;
        Ok(Self::with_id(file_id, algorithm, block_size, salt))
    }

    /// Returns the header of a map with known bytes for its file, which no other file may have.
    pub const fn with_id(
        file_id: [u8; 16],
        algorithm: Algorithm,
        block_size: BlockSize,
        salt: Salt,
    ) -> Self {
        Self { file_id, algorithm, block_size, salt }
    }

    /// Returns whether there are maps with digests of `algorithm`: it needs no key, and has digests.
    pub fn accepts(algorithm: Algorithm) -> bool {
        algorithm.digest_size() > 0 && algorithm.properties().strength != Strength::Keyed
    }

    /// Returns the definition of the digest of a block.
    pub fn leaf(&self) -> Leaf {
        Leaf::salted(&Digester::new(self.algorithm), self.block_size, &self.salt)
    }

    /// Returns the distance between entries in a page, in bytes: the length of a digest rounded up to a
    /// power of two, at least 4.
    pub fn entry_size(&self) -> usize {
        self.algorithm.digest_size().next_power_of_two().max(4)
    }

    /// Returns the number of blocks in a page.
    pub fn blocks_per_page(&self) -> u64 {
        (PAGE / self.entry_size()) as u64
    }

    /// Returns the bytes of the header.
    pub fn to_bytes(&self) -> [u8; PAGE] {
        let mut bytes = [0; PAGE];
        let salt = self.salt.as_bytes();
        put(&mut bytes, 0, &MAGIC);
        put(&mut bytes, 8, &VERSION.to_le_bytes());
        put(&mut bytes, 12, &(PAGE as u32).to_le_bytes());
        put(&mut bytes, 16, &self.file_id);
        put(&mut bytes, 32, self.algorithm.name().as_bytes());
        put(&mut bytes, 64, &(self.algorithm.digest_size() as u32).to_le_bytes());
        put(&mut bytes, 68, &(self.entry_size() as u32).to_le_bytes());
        put(&mut bytes, 72, &(self.block_size.get() as u32).to_le_bytes());
        put(&mut bytes, 76, &(PAGE as u32).to_le_bytes());
        put(&mut bytes, 84, &(salt.len() as u16).to_le_bytes());
        put(&mut bytes, SALT_AT, salt);
        bytes
    }

    /// Parses a header.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are no header, or one of another version or with unknown parameters.
    pub fn parse(bytes: &[u8; PAGE]) -> Result<Self> {
        if !bytes.starts_with(&MAGIC) {
            return Err(Error::Magic);
        }
        if u32_at(bytes, 8) != VERSION {
            return Err(Error::Version(u32_at(bytes, 8)));
        }
        let name = bytes[32..64].split(|byte| *byte == 0).next().unwrap_or_default();
        let name = String::from_utf8_lossy(name);
        // Only the name that is written is read, so that a map has one form.
        let known = Algorithm::ALL.iter().copied().find(|known| known.name() == name);
        let algorithm = known.filter(|known| Self::accepts(*known));
        let algorithm = algorithm.ok_or_else(|| {
            Error::Unsupported(format!("has digests {name:?}, which are unknown"))
        })?;
        let block_size = BlockSize::try_from(u64::from(u32_at(bytes, 72)));
        let block_size = block_size.map_err(|error| Error::damaged(72, error.to_string()))?;
        if u32_at(bytes, 80) != PLAIN {
            return Err(Error::Unsupported(
                "has digests with a key, which are not supported".into(),
            ));
        }
        let length = usize::from(u16_at(bytes, 84));
        let salt = bytes[SALT_AT..][..Salt::MAX].get(..length);
        let salt = salt.and_then(|salt| Salt::try_from(salt).ok());
        let salt = salt.ok_or_else(|| Error::damaged(84, format!("a salt of {length} bytes")))?;
        let header = Self { file_id: array(bytes, 16), algorithm, block_size, salt };
        // Sizes, padding and reserved bytes have one value each.
        match header.to_bytes().iter().zip(bytes).position(|(one, other)| one != other) {
            Some(at) => Err(Error::damaged(at as u64, "a field of the header has another value")),
            None => Ok(header),
        }
    }

    /// Returns the part that a content id covers: everything that decides about digests.
    pub(crate) fn parameters(&self) -> Vec<u8> {
        self.to_bytes()[32..SALT_AT + Salt::MAX].to_vec()
    }
}

/// The first bytes of a map.
pub const MAGIC: [u8; 8] = *b"\x89BLKMAP\n";

const VERSION: u32 = 1;

/// The kind of the digests: H(salt, block).
const PLAIN: u32 = 0;

const SALT_AT: usize = 96;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::{is_zero, u64_at};

    fn header() -> Header {
        Header {
            file_id: *b"0123456789abcdef",
            algorithm: Algorithm::Sha256,
            block_size: BlockSize::DEFAULT,
            salt: "00ff".parse().unwrap(),
        }
    }

    #[test]
    fn headers_round_trip() {
        for &algorithm in Algorithm::ALL {
            let header = Header { algorithm, ..header() };
            let parsed = Header::parse(&header.to_bytes());
            if !Header::accepts(algorithm) {
                assert!(parsed.is_err());
            } else {
                assert_eq!(parsed.unwrap(), header);
                assert!(header.entry_size() >= algorithm.digest_size());
            }
        }
    }

    #[test]
    fn every_changed_byte_is_refused_or_another_parameter() {
        let header = header();
        for at in 0..PAGE {
            let mut bytes = header.to_bytes();
            bytes[at] ^= 0x40;
            if let Ok(parsed) = Header::parse(&bytes) {
                assert_ne!(parsed, header, "{at}");
                assert_eq!(parsed.to_bytes(), bytes, "{at}");
            }
        }
    }

    #[test]
    fn fields_have_their_places() {
        let bytes = header().to_bytes();
        assert_eq!(&bytes[..8], b"\x89BLKMAP\n");
        assert_eq!((u32_at(&bytes, 8), u32_at(&bytes, 12)), (1, 4096));
        assert_eq!(&bytes[32..39], b"sha256\0");
        assert_eq!((u32_at(&bytes, 64), u32_at(&bytes, 68)), (32, 32));
        assert_eq!((u32_at(&bytes, 72), u32_at(&bytes, 76)), (65536, 4096));
        assert_eq!((u16_at(&bytes, 84), u64_at(&bytes, 88)), (2, 0));
        assert_eq!(&bytes[96..98], [0x00, 0xff]);
        assert!(is_zero(&bytes[98..]));
    }
}
