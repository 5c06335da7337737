//! The digest of the digests of streams, to which the digests of blocks are dealt in turn.

use super::outer::Outer;
use crate::block::Leaf;

pub(super) fn fold(leaf: &Leaf, count: usize) -> Outer {
    Outer::new(leaf, count, |leaf, streams, _| {
        let mut last = leaf.digester().start();
        for stream in streams {
            last.update(stream.finalize().as_bytes());
        }
        last.finalize()
    })
}
