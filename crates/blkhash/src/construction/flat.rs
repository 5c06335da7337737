//! The digest of the blocks' digests and the length of the content, eight bytes in little endian.

use super::outer::Outer;
use crate::block::Leaf;

pub(super) fn fold(leaf: &Leaf) -> Outer {
    Outer::new(leaf, 1, |_, mut streams, length| {
        let mut stream = streams.swap_remove(0);
        stream.update(&length.to_le_bytes());
        stream.finalize()
    })
}
