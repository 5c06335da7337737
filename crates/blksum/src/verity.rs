//! Trees of dm-verity and fs-verity: writes the tree of an image, and verifies an image against a stored tree.
//!
//! Where a tree is stored, and how its blocks are compared, is in [`blkverity`].

use blkhash::{BlockDigests, Digest, Run, Sink, SinkError, Tree, TreeBlocks};
use blkimage::{Slice, Source};
use blkverity::{StoredTree, Summary, TreeFile, Verifier};

use crate::unreadable::{Places, ReadAround, Unreadable};
use crate::{Error, Progress, Tuning, block_digests};

/// Writes the tree of `source` to a file, with the superblock if it has one. Returns the root.
///
/// What the source has after the data that the tree covers is not read. Zeros that the image does not store take space
/// in the tree. By default, [`Tuning::max_zeros`] is 2^28 blocks, whose tree has 8 GiB with SHA-256 and blocks of 4 KiB.
///
/// # Errors
///
/// Fails like [`block_digests`](crate::block_digests()), and with [`Error::Verity`] if the source is shorter than the data
/// of the tree, or the file cannot be written.
pub fn write(
    source: &dyn Source,
    output: TreeFile<'_>,
    tuning: &Tuning,
    progress: &Progress,
) -> Result<Digest, Error> {
    let stored = output.stored().clone();
    let (root, output) = build(source, &stored, output, tuning, progress)?;
    output.finish().map_err(blkverity::Error::Write)?;
    Ok(root)
}

/// Returns the root of a tree like [`write()`], without writing the tree.
///
/// # Errors
///
/// Fails like [`write()`].
pub fn root(
    source: &dyn Source,
    stored: &StoredTree,
    tuning: &Tuning,
    progress: &Progress,
) -> Result<Digest, Error> {
    Ok(build(source, stored, (), tuning, progress)?.0)
}

/// Verifies `source` against a stored tree. The findings go to the report of the verifier.
///
/// What the source has after the data that the tree covers is not read. By default, [`Tuning::max_zeros`] is 2^28
/// blocks, because the tree of zeros has to be read.
///
/// Blocks that cannot be read are findings, and the verification continues after them. Returns the first place for each
/// of some reasons. Reads that fail may take ten minutes, or as long as all others if that is more.
///
/// # Errors
///
/// Fails like [`block_digests`](crate::block_digests()), and with [`Error::Verity`] if the source is shorter than the data
/// of the tree, or the file of the tree cannot be read or changed meanwhile. Blocks that do not match are no error.
pub fn verify(
    source: &dyn Source,
    mut verifier: Verifier<'_>,
    tuning: &Tuning,
    progress: &Progress,
) -> Result<(Summary, Vec<Unreadable>), Error> {
    let stored = verifier.stored().clone();
    let block_size = stored.parameters().block_size().into();
    let places = Places::new(block_size, 0..stored.data_length(), progress);
    let mut sink = Marking { verifier: &mut verifier, places: &places };
    let around = ReadAround::new(source, &places, true);
    pass(&around, &stored, &mut sink, tuning, progress).map_err(|error| places.of_pass(error))?;
    Ok((verifier.finish()?, places.into_reasons()))
}

/// A sink that tells a verifier which blocks could not be read.
struct Marking<'a, 'v> {
    verifier: &'a mut Verifier<'v>,
    places: &'a Places<'a>,
}

impl Sink<BlockDigests> for Marking<'_, '_> {
    fn take(&mut self, digests: &BlockDigests) -> Result<(), SinkError> {
        let counts = digests.runs().map(|run| {
            let (Run::Digests { count, .. } | Run::Zeros { count }) = run;
            count
        });
        let first = self.verifier.next_block();
        let end = first + counts.sum::<u64>();
        while let Some(blocks) = self.places.take(first..end) {
            self.verifier.push_unreadable(blocks);
        }
        self.verifier.take(digests)
    }
}

fn build<B>(
    source: &dyn Source,
    stored: &StoredTree,
    blocks: B,
    tuning: &Tuning,
    progress: &Progress,
) -> Result<(Digest, B), Error>
where
    B: TreeBlocks<Error: Into<SinkError>> + Send,
{
    let mut tree = Tree::with_blocks(&stored.leaf(), stored.block_size(), blocks);
    pass(source, stored, &mut tree, tuning, progress)?;
    tree.finish().map_err(|error| of_tree(error.into()))
}

/// Passes the digests of the data to `sink`.
fn pass(
    source: &dyn Source,
    stored: &StoredTree,
    sink: &mut (dyn Sink<BlockDigests> + Send),
    tuning: &Tuning,
    progress: &Progress,
) -> Result<(), Error> {
    let (size, length) = (source.size(), stored.data_length());
    let data = Slice::new(source, 0, length).expect("a part of the source");
    if data.size() < length {
        return Err(blkverity::Error::Short { size, length }.into());
    }
    let limit = MAX_ZERO_BLOCKS.saturating_mul(stored.parameters().block_size().into());
    let passed =
        block_digests(&data, &stored.leaf(), sink, &tuning.with_default_limit(limit), progress);
    passed.map_err(|error| match error {
        Error::Sink(error) => of_tree(error),
        error => error,
    })
}

/// Tells errors of the file of a tree from errors of other sinks.
fn of_tree(error: SinkError) -> Error {
    let error = match error.downcast::<blkimage::Error>() {
        Ok(error) => return blkverity::Error::Stored(*error).into(),
        Err(error) => error,
    };
    match error.downcast::<std::io::Error>() {
        Ok(error) => blkverity::Error::Write(*error).into(),
        Err(error) => Error::Sink(error),
    }
}

/// Default maximum number of zero blocks of a tree that an image does not store. That is 1 TiB with blocks of 4 KiB,
/// for which the tree takes 8 GiB.
/// Limit in blocks.
const MAX_ZERO_BLOCKS: u64 = 1 << 28;
