//! The interface of every implementation, with defaults for algorithms that have nothing faster.

use super::kernels::Entry;
use super::tuner::Timing;

/// A hash in progress.
pub(crate) trait Hash: Clone {
    /// Hashes the next bytes.
    fn update(&mut self, input: &[u8]);

    /// Writes the digest of all bytes to `digest`, which has the length of a digest.
    fn finalize_into(self, digest: &mut [u8]);

    /// Hashes `count` zero bytes.
    fn update_zeros(&mut self, count: u64) {
        update_zeros(self, count);
    }

    /// Hashes `inputs`, which all have the same length, side by side from this state.
    fn finish_many(&self, inputs: &[&[u8]], digests: &mut [u8]) {
        finish_each(self, inputs, digests);
    }

    /// Appends each of `inputs`, which all have the same length, to the hash of the same index.
    fn update_many(hashes: &mut [&mut Self], inputs: &[&[u8]]) {
        for (hash, input) in hashes.iter_mut().zip(inputs) {
            hash.update(input);
        }
    }

    /// Returns the kernel that hashes `count` inputs, or `None` if the algorithm has no kernels.
    fn kernel_for(&self, _count: usize) -> Option<&'static Entry> {
        None
    }

    /// Returns what this process has measured of the kernels that it may use.
    fn timings(&self) -> Vec<(&'static Entry, Timing)> {
        Vec::new()
    }
}

/// Implements [`Hash::update_zeros`] by hashing one buffer of zeros after the other.
pub(super) fn update_zeros<H: Hash>(hash: &mut H, mut count: u64) {
    static ZEROS: [u8; 16 << 10] = [0; 16 << 10];
    while count > 0 {
        let length = count.min(ZEROS.len() as u64);
        hash.update(&ZEROS[..length as usize]);
        count -= length;
    }
}

/// Implements [`Hash::finish_many`] by hashing one input after the other.
pub(super) fn finish_each<H: Hash>(start: &H, inputs: &[&[u8]], digests: &mut [u8]) {
    if inputs.is_empty() {
        return;
    }
    let size = digests.len() / inputs.len();
    for (index, input) in inputs.iter().enumerate() {
        let mut state = start.clone();
        state.update(input);
        state.finalize_into(&mut digests[index * size..][..size]);
    }
}
