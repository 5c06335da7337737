//! The hash of a content joined from those of its segments.

use crate::algo::Hash;
use crate::algo::blake3::Tree;
use crate::algo::crc::{Crc, Shift};
use crate::engine::{BlockDigests, Run};
use crate::{Algorithm, Digest};

/// Takes the hashes of segments in order. All but the last are of one size.
#[derive(Clone, Debug)]
pub(crate) struct Join {
    kind: Kind,
    segment_size: u64,
}

#[derive(Clone, Debug)]
enum Kind {
    Crc { algorithm: Algorithm, crc: Box<Crc>, segment: Shift },
    Blake3(Tree),
}

impl Join {
    /// Joins CRCs; `start` has taken nothing yet.
    pub(crate) fn crc(algorithm: Algorithm, start: &Crc, segment_size: u64) -> Self {
        let segment = start.shift(segment_size);
        let crc = Box::new(start.clone());
        Self { kind: Kind::Crc { algorithm, crc, segment }, segment_size }
    }

    /// Joins the chaining values of BLAKE3's subtrees.
    pub(crate) fn blake3(segment_size: u64) -> Self {
        Self { kind: Kind::Blake3(Tree::default()), segment_size }
    }

    /// Takes the next segments. Only the last one of all may be short.
    pub(crate) fn segments(&mut self, segments: &BlockDigests) {
        let last = segments.length() % self.segment_size;
        let whole = segments.length() / self.segment_size;
        let mut taken = 0;
        for run in segments.runs() {
            match (run, &mut self.kind) {
                (Run::ZeroBlocks(count), Kind::Crc { crc, .. }) => {
                    crc.update_zeros(count * self.segment_size);
                    taken += count;
                }
                (Run::Digests(digests), Kind::Crc { algorithm, crc, segment }) => {
                    for digest in digests.chunks_exact(algorithm.digest_size()) {
                        let shift = if taken < whole { *segment } else { crc.shift(last) };
                        crc.append(digest, shift);
                        taken += 1;
                    }
                }
                (Run::Digests(values), Kind::Blake3(tree)) => tree.push(values),
                (Run::ZeroBlocks(_), Kind::Blake3(_)) => {
                    panic!("a subtree of zeros depends on where it stands")
                }
            }
        }
    }

    /// The hash of everything taken, more than one segment.
    pub(crate) fn finalize(self) -> Digest {
        match self.kind {
            Kind::Crc { algorithm, crc, .. } => {
                let mut digest = Digest::zeroed(algorithm.digest_size());
                crc.finalize_into(digest.as_mut_bytes());
                digest
            }
            Kind::Blake3(tree) => tree.root(),
        }
    }
}
