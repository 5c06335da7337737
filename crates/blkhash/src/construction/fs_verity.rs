//! The file digest of fs-verity: the digest of a descriptor that holds the root.

use super::merkle::{End, Merkle};
use crate::block::Leaf;
use crate::{Algorithm, BlockSize, Digest, Digester, Salt};

/// The salt comes before each block, padded with zeros to a block of the hash function.
pub(super) fn leaf(digester: &Digester, block_size: BlockSize, salt: &Salt) -> Leaf {
    let mut prefix = salt.as_bytes().to_vec();
    let unit = number(digester.algorithm()).map_or(1, |(_, unit)| unit);
    prefix.resize(prefix.len().next_multiple_of(unit), 0);
    Leaf::padded(digester, block_size, &prefix)
}

pub(super) fn fold(leaf: &Leaf, block_size: BlockSize, salt: &Salt) -> Merkle<Describe> {
    let end = Describe { digester: leaf.digester().clone(), block_size, salt: *salt };
    Merkle::new(leaf, block_size, end)
}

/// Returns whether fs-verity has this algorithm.
pub(super) fn knows(algorithm: Algorithm) -> bool {
    number(algorithm).is_some()
}

/// Returns the number of an algorithm in the descriptor, and the length of a block of its hash
/// function in bytes.
fn number(algorithm: Algorithm) -> Option<(u8, usize)> {
    match algorithm {
        Algorithm::Sha256 => Some((1, 64)),
        Algorithm::Sha512 => Some((2, 128)),
        _ => None,
    }
}

/// The digest of the descriptor.
#[derive(Clone, Debug)]
pub(super) struct Describe {
    digester: Digester,
    block_size: BlockSize,
    salt: Salt,
}

impl End for Describe {
    fn checksum(self, root: Digest, length: u64) -> Digest {
        let algorithm = self.digester.algorithm();
        let descriptor =
            FsVerityDescriptor::new(algorithm, self.block_size, &self.salt, &root, length);
        let descriptor = descriptor.expect("parameters of fs-verity");
        self.digester.digest(descriptor.as_bytes())
    }
}

/// The descriptor of fs-verity, which says how the tree of a file was made. Its digest is the file
/// digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FsVerityDescriptor([u8; Self::SIZE]);

impl FsVerityDescriptor {
    /// Length in bytes, the same for every file.
    pub const SIZE: usize = 256;

    /// Maximum length of a salt in bytes.
    pub const MAX_SALT: usize = 32;

    /// Creates the descriptor for content of `length` bytes whose tree has this root. The root of
    /// empty content is zeros. Returns `None` if fs-verity has no such algorithm or salt, or the root
    /// belongs to another algorithm.
    pub fn new(
        algorithm: Algorithm,
        block_size: BlockSize,
        salt: &Salt,
        root: &Digest,
        length: u64,
    ) -> Option<Self> {
        let (number, _) = number(algorithm)?;
        let (salt, root) = (salt.as_bytes(), root.as_bytes());
        if salt.len() > Self::MAX_SALT || root.len() != algorithm.digest_size() {
            return None;
        }
        let mut bytes = [0; Self::SIZE];
        bytes[0] = VERSION;
        bytes[1] = number;
        bytes[2] = block_size.get().trailing_zeros() as u8;
        bytes[3] = salt.len() as u8;
        bytes[8..16].copy_from_slice(&length.to_le_bytes());
        bytes[16..][..root.len()].copy_from_slice(root);
        bytes[80..][..salt.len()].copy_from_slice(salt);
        Some(Self(bytes))
    }

    /// Returns the descriptor as fs-verity hashes it.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

const VERSION: u8 = 1;
