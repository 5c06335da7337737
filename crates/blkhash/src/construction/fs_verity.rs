//! The file digest of fs-verity: the digest of a descriptor that holds the root.

use super::merkle::{End, Merkle};
use crate::block::Leaf;
use crate::{Algorithm, BlockSize, Digest, Digester, Error, Parameters, Salt};

/// The salt comes before each block, padded with zeros to a block of the hash function.
pub(super) fn leaf(digester: &Digester, block_size: BlockSize, salt: &Salt) -> Leaf {
    let mut prefix = salt.as_bytes().to_vec();
    let unit = number(digester.algorithm()).map_or(1, |(_, unit)| unit);
    prefix.resize(prefix.len().next_multiple_of(unit), 0);
    Leaf::padded(digester, block_size, &prefix)
}

pub(super) fn fold(leaf: &Leaf, parameters: &Parameters) -> Merkle<Describe> {
    let end = Describe { parameters: *parameters, digester: leaf.digester().clone() };
    Merkle::new(leaf, parameters.block_size, end)
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
    parameters: Parameters,
    digester: Digester,
}

impl End for Describe {
    fn checksum(self, root: Digest, length: u64) -> Digest {
        let descriptor = FsVerityDescriptor::new(&self.parameters, &root, length);
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
    /// empty content is zeros.
    ///
    /// # Errors
    ///
    /// Returns [`Error::UnsuitableAlgorithm`] if the parameters are not those of
    /// [`Construction::FsVerity`](crate::Construction).
    ///
    /// # Panics
    ///
    /// Panics if the root belongs to another algorithm.
    pub fn new(parameters: &Parameters, root: &Digest, length: u64) -> Result<Self, Error> {
        let (algorithm, construction) = (parameters.algorithm(), parameters.construction());
        let unsuitable = || Error::UnsuitableAlgorithm { algorithm, construction };
        let (number, _) = number(algorithm).ok_or_else(unsuitable)?;
        assert_eq!(root.as_bytes().len(), algorithm.digest_size());
        let salt = parameters.salt().as_bytes();
        let mut bytes = [0; Self::SIZE];
        bytes[0] = VERSION;
        bytes[1] = number;
        bytes[2] = parameters.block_size().trailing_zeros() as u8;
        bytes[3] = salt.len() as u8;
        bytes[8..16].copy_from_slice(&length.to_le_bytes());
        bytes[16..][..root.as_bytes().len()].copy_from_slice(root.as_bytes());
        bytes[80..][..salt.len()].copy_from_slice(salt);
        Ok(Self(bytes))
    }

    /// Returns the descriptor as fs-verity hashes it.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

const VERSION: u8 = 1;
