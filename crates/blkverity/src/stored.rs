//! A tree in a file: how it is made, its place, and the data that it covers.

use blkhash::{
    BlockSize, Construction, Digest, Digester, FsVerityDescriptor, Leaf, Parameters, TreeShape,
};
use blkimage::Source;

use crate::{Error, Layout, Superblock, SuperblockError};

/// A tree of dm-verity or fs-verity in a file.
#[derive(Clone, Debug)]
pub struct StoredTree {
    parameters: Parameters,
    layout: Layout,
    data_length: u64,
    superblock: Option<(Superblock, u64)>,
}

impl StoredTree {
    /// Reads the superblock that a file of dm-verity has at `offset`.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or has no superblock that is supported at this offset.
    pub fn open(stored: &dyn Source, offset: u64) -> Result<Self, Error> {
        let size = stored.size();
        if offset.checked_add(Superblock::SIZE as u64).is_none_or(|end| end > size) {
            return Err(Error::NoSuperblock { offset, size });
        }
        let mut bytes = [0; Superblock::SIZE];
        stored.read_exact_at(&mut bytes, offset)?;
        let superblock = Superblock::parse(&bytes);
        let superblock = superblock.map_err(|reason| Error::Superblock { offset, reason })?;
        Self::behind(&superblock, offset)
    }

    /// Returns the tree of dm-verity after a superblock at `offset`.
    ///
    /// # Errors
    ///
    /// Fails if dm-verity does not support a field, the tree would be too large, or the offset is no multiple of 512.
    pub fn dm(superblock: &Superblock, offset: u64) -> Result<Self, Error> {
        check(superblock)?;
        if !offset.is_multiple_of(Superblock::SIZE as u64) {
            return Err(Error::UnalignedSuperblock(offset));
        }
        Self::behind(superblock, offset)
    }

    /// Returns the tree of dm-verity that begins at `offset` of a file without a superblock. The UUID has no effect.
    ///
    /// # Errors
    ///
    /// Fails if dm-verity does not support a field, the tree would be too large, or the offset is no multiple of
    /// the size of a hash block.
    pub fn bare(superblock: &Superblock, offset: u64) -> Result<Self, Error> {
        check(superblock)?;
        let Superblock { algorithm, hash_block_size, data_blocks, .. } = *superblock;
        if !offset.is_multiple_of(hash_block_size.into()) {
            return Err(Error::UnalignedTree(offset));
        }
        let layout = Layout::new(algorithm, hash_block_size, offset, data_blocks);
        Self::new(superblock, layout, None)
    }

    /// Returns the tree of fs-verity of `size` bytes of data. It begins at the start of its file.
    ///
    /// # Errors
    ///
    /// Fails if the parameters are not defined for fs-verity, or the tree would be too large.
    pub fn fs(parameters: &Parameters, size: u64) -> Result<Self, Error> {
        let block_size = parameters.block_size();
        let (algorithm, salt) = (parameters.algorithm(), *parameters.salt());
        let parameters = Parameters::new(algorithm, Construction::FsVerity, block_size)?;
        let layout = Layout::new(algorithm, block_size, 0, size.div_ceil(block_size.into()));
        Ok(Self {
            parameters: parameters.with_salt(salt)?,
            layout: layout.ok_or(Error::TooLarge)?,
            data_length: size,
            superblock: None,
        })
    }

    fn behind(superblock: &Superblock, offset: u64) -> Result<Self, Error> {
        Self::new(superblock, superblock.layout(offset), Some((*superblock, offset)))
    }

    fn new(
        described: &Superblock,
        layout: Option<Layout>,
        superblock: Option<(Superblock, u64)>,
    ) -> Result<Self, Error> {
        let Superblock { algorithm, data_block_size, salt, .. } = *described;
        let parameters = Parameters::new(algorithm, Construction::DmVerity, data_block_size)?;
        Ok(Self {
            parameters: parameters.with_salt(salt)?,
            layout: layout.ok_or(Error::TooLarge)?,
            data_length: described.data_length(),
            superblock,
        })
    }

    /// Returns the parameters of the blocks of data.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Returns the places of the blocks of the tree.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the length of the data that the tree covers, in bytes.
    pub fn data_length(&self) -> u64 {
        self.data_length
    }

    /// Returns the superblock and its offset, `None` if the file has none.
    pub fn superblock(&self) -> Option<&(Superblock, u64)> {
        self.superblock.as_ref()
    }

    /// Returns the size of a block of the tree.
    pub fn block_size(&self) -> BlockSize {
        BlockSize::try_from(self.layout.shape().block_size() as u64).expect("the size of a block")
    }

    /// Returns the shape of the tree.
    pub fn shape(&self) -> &TreeShape {
        self.layout.shape()
    }

    /// Returns the definition of the digests of blocks.
    pub fn leaf(&self) -> Leaf {
        self.parameters.leaf(&Digester::new(self.parameters.algorithm()))
    }

    /// Returns the descriptor of fs-verity for a root of the tree. `None` for dm-verity, and for a root of another
    /// algorithm.
    pub fn descriptor(&self, root: &Digest) -> Option<FsVerityDescriptor> {
        if self.parameters.construction() != Construction::FsVerity {
            return None;
        }
        let (algorithm, salt) = (self.parameters.algorithm(), self.parameters.salt());
        FsVerityDescriptor::new(algorithm, self.block_size(), salt, root, self.data_length)
    }

    /// Returns the digest that protects the data if the tree has this root: the root hash of dm-verity, or the file
    /// digest of fs-verity, which is the digest of the descriptor.
    pub fn digest(&self, root: &Digest) -> Digest {
        match self.descriptor(root) {
            None => *root,
            Some(descriptor) => {
                Digester::new(self.parameters.algorithm()).digest(descriptor.as_bytes())
            }
        }
    }
}

/// Checks that what is written can be read.
fn check(superblock: &Superblock) -> Result<(), SuperblockError> {
    Superblock::parse(&superblock.to_bytes()).map(|_| ())
}

#[cfg(test)]
mod tests {
    use blkhash::{Algorithm, Salt};

    use super::*;

    #[test]
    fn fields_that_no_superblock_can_have_are_refused() {
        let superblock = Superblock::new(5);
        assert!(StoredTree::dm(&superblock, 512).is_ok());
        assert!(StoredTree::bare(&superblock, 4096).is_ok());
        let large = BlockSize::try_from(1 << 20).unwrap();
        for other in [
            Superblock { data_blocks: 0, ..superblock },
            Superblock { data_blocks: 1 << 52, ..superblock },
            Superblock { data_block_size: large, ..superblock },
            Superblock { hash_block_size: large, ..superblock },
            Superblock { algorithm: Algorithm::Crc32, ..superblock },
        ] {
            assert!(matches!(StoredTree::dm(&other, 0), Err(Error::Fields(_))), "{other:?}");
            assert!(matches!(StoredTree::bare(&other, 0), Err(Error::Fields(_))), "{other:?}");
        }
        assert!(matches!(StoredTree::dm(&superblock, 1), Err(Error::UnalignedSuperblock(1))));
        assert!(matches!(StoredTree::bare(&superblock, 512), Err(Error::UnalignedTree(512))));
        let last = (1 << 63) - 4096;
        assert!(matches!(StoredTree::dm(&superblock, last), Err(Error::TooLarge)));
        assert!(matches!(StoredTree::bare(&superblock, last), Err(Error::TooLarge)));
    }

    #[test]
    fn parameters_of_another_construction_are_refused() {
        let parameters =
            |algorithm| Parameters::new(algorithm, Construction::Flat, BlockSize::PAGE).unwrap();
        assert!(StoredTree::fs(&parameters(Algorithm::Sha256), 5).is_ok());
        assert!(matches!(StoredTree::fs(&parameters(Algorithm::Md5), 5), Err(Error::Hash(_))));
        let salt = Salt::try_from(&[0; 33][..]).unwrap();
        let dm = Parameters::new(Algorithm::Sha256, Construction::DmVerity, BlockSize::PAGE);
        let dm = dm.unwrap().with_salt(salt).unwrap();
        assert!(matches!(StoredTree::fs(&dm, 5), Err(Error::Hash(_))));
    }
}
