//! The root directory before the table is read, to find the label.

use super::heap::Heap;
use crate::volume::Volume;

/// Reads the beginning of a chain of clusters, of at most [`MAX_SIZE`] bytes and [`MAX_CLUSTERS`]. Ends early where it
/// is broken.
pub(crate) fn read_root(
    volume: &Volume,
    heap: &Heap,
    first: u32,
    next: impl Fn(u32) -> Option<u32>,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut cluster = first;
    for _ in 0..MAX_CLUSTERS {
        let left = MAX_SIZE - bytes.len() as u64;
        if left == 0 || !heap.contains(cluster) {
            break;
        }
        match volume.read(heap.offset(cluster), heap.cluster_size.min(left) as usize) {
            Ok(content) => bytes.extend(content),
            Err(_) => break,
        }
        match next(cluster) {
            Some(next) => cluster = next,
            None => break,
        }
    }
    bytes
}

/// Maximum number of clusters in which the label is searched for.
/// Limit in clusters.
const MAX_CLUSTERS: usize = 256;

/// Maximum size of the part of a root directory in which the label is searched for.
/// Limit in bytes.
const MAX_SIZE: u64 = 1 << 20;
