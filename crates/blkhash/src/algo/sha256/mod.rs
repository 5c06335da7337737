//! SHA-256 and SHA-224.

mod arm_sha;
mod avx2_x8;
mod avx512_x16;
mod constants;
mod lanes;
mod rustcrypto;
pub(super) mod soft;
mod x86_sha;
mod x86_sha_x4;

use self::constants::{BLOCK, Block, SHA224, SHA256, Words};
use super::hash::{Hash, finish_each};
use super::kernels::{Choice, Entry, Kernel as _, kernels, take_blocks};
use super::tuner::Timing;

/// A hash in progress, with the kernels it uses.
#[derive(Clone)]
pub(super) struct Sha256 {
    state: Words,
    /// Length of the message so far in bytes.
    length: u64,
    /// The bytes after the last whole block.
    buffer: Block,
    kernels: Choice<Kernel>,
}

impl Sha256 {
    /// Creates an empty SHA-256 hash.
    pub fn new_256(kernels: Choice<Kernel>) -> Self {
        Self::new(SHA256, kernels)
    }

    /// Creates an empty SHA-224 hash.
    pub fn new_224(kernels: Choice<Kernel>) -> Self {
        Self::new(SHA224, kernels)
    }

    fn new(state: Words, kernels: Choice<Kernel>) -> Self {
        Self { state, length: 0, buffer: [0; BLOCK], kernels }
    }

    /// Returns the number of bytes in the buffer.
    fn buffered(&self) -> usize {
        (self.length % BLOCK as u64) as usize
    }
}

impl Hash for Sha256 {
    fn update(&mut self, input: &[u8]) {
        let Self { state, length, buffer, kernels } = self;
        kernels.with_one(input.len(), |kernel| {
            take_blocks(buffer, length, input, |blocks| kernel.compress_one(state, blocks));
        });
    }

    fn finalize_into(mut self, digest: &mut [u8]) {
        let (padding, blocks) = padding(&self.buffer[..self.buffered()], self.length);
        let padding = &padding[..blocks * BLOCK];
        let state = &mut self.state;
        self.kernels.with_one(padding.len(), |kernel| kernel.compress_one(state, padding));
        write_digest(&self.state, digest);
    }

    fn finish_many(&self, inputs: &[&[u8]], digests: &mut [u8]) {
        let Some(length) = inputs.first().map(|input| input.len()) else { return };
        // Completes the block in the buffer.
        let head = (BLOCK - self.buffered()) % BLOCK;
        if length < head {
            return finish_each(self, inputs, digests);
        }
        let size = digests.len() / inputs.len();
        let total = self.length + length as u64;
        let whole = (length - head) / BLOCK;
        self.kernels.for_each_batch(inputs, digests, size, |kernel, inputs, digests| {
            let mut states = [self.state; MAX_LANES];
            let states = &mut states[..inputs.len()];
            if head > 0 {
                let mut heads = [self.buffer; MAX_LANES];
                for (block, input) in heads.iter_mut().zip(inputs) {
                    block[BLOCK - head..].copy_from_slice(&input[..head]);
                }
                let heads: [&[u8]; MAX_LANES] = std::array::from_fn(|lane| &heads[lane][..]);
                kernel.compress(states, &heads[..inputs.len()], 1);
            }
            let mut bodies: [&[u8]; MAX_LANES] = [&[]; MAX_LANES];
            for (body, input) in bodies.iter_mut().zip(inputs) {
                *body = &input[head..];
            }
            kernel.compress(states, &bodies[..inputs.len()], whole);
            let mut tails = [[0; 2 * BLOCK]; MAX_LANES];
            let mut blocks = 0;
            for (tail, body) in tails.iter_mut().zip(&bodies[..inputs.len()]) {
                (*tail, blocks) = padding(&body[whole * BLOCK..], total);
            }
            let tails: [&[u8]; MAX_LANES] = std::array::from_fn(|lane| &tails[lane][..]);
            kernel.compress(states, &tails[..inputs.len()], blocks);
            for (state, digest) in states.iter().zip(digests.chunks_exact_mut(size)) {
                write_digest(state, digest);
            }
        });
    }

    fn update_many(hashes: &mut [&mut Self], inputs: &[&[u8]]) {
        let Some(kernels) = hashes.first().map(|hash| hash.kernels) else { return };
        kernels.for_each_batch(inputs, hashes, 1, |kernel, inputs, hashes| {
            update_lanes(kernel, hashes, inputs);
        });
    }

    fn kernel_for(&self, count: usize) -> Option<&'static Entry> {
        Some(self.kernels.best_for(count).entry())
    }

    fn timings(&self) -> Vec<(&'static Entry, Timing)> {
        self.kernels.timings()
    }
}

/// Updates at most as many hashes as the kernel has lanes. They run side by side as long as all of
/// them have whole blocks.
fn update_lanes(kernel: Kernel, hashes: &mut [&mut Sha256], inputs: &[&[u8]]) {
    let mut bodies: [&[u8]; MAX_LANES] = [&[]; MAX_LANES];
    let mut states = [[0; 8]; MAX_LANES];
    for (lane, (hash, input)) in hashes.iter_mut().zip(inputs).enumerate() {
        let missing = (BLOCK - hash.buffered()) % BLOCK;
        let (head, body) = input.split_at(missing.min(input.len()));
        hash.update(head);
        (states[lane], bodies[lane]) = (hash.state, body);
    }
    let (states, bodies) = (&mut states[..hashes.len()], &bodies[..hashes.len()]);
    let blocks = bodies.iter().map(|body| body.len() / BLOCK).min().unwrap_or(0);
    kernel.compress(states, bodies, blocks);
    for ((hash, state), body) in hashes.iter_mut().zip(states).zip(bodies) {
        hash.state = *state;
        hash.length += (blocks * BLOCK) as u64;
        hash.update(&body[blocks * BLOCK..]);
    }
}

kernels! {
    family "sha256";

    /// Compresses `blocks` blocks at the start of each input into the state of the same index.
    fn compress(states: &mut [Words], inputs: &[&[u8]], blocks: usize);

    Soft(Portable): soft, "soft", 1, 10_900;
    #[cfg(not(target_arch = "x86_64"))]
    RustCrypto(Portable): rustcrypto, "sha2", 1, 2_100;
    #[cfg(target_arch = "aarch64")]
    ArmSha(Sha2): arm_sha, "arm_sha", 1, 1569;
    #[cfg(target_arch = "aarch64")]
    ArmShaX2(Sha2): arm_sha, "arm_sha-x2", 2, 1570;
    #[cfg(target_arch = "aarch64")]
    ArmShaX4(Sha2): arm_sha, "arm_sha-x4", 4, 2817;
    #[cfg(target_arch = "x86_64")]
    X86Sha(Sha): x86_sha, "x86_sha", 1, 2088;
    #[cfg(target_arch = "x86_64")]
    X86ShaX2(Sha): x86_sha, "x86_sha-x2", 2, 3190;
    #[cfg(target_arch = "x86_64")]
    X86ShaX4(ShaAvx512): x86_sha_x4, "x86_sha-x4", 4, 6400;
    #[cfg(target_arch = "x86_64")]
    Avx2X8(Avx2): avx2_x8, "avx2-x8", 8, 18_900;
    #[cfg(target_arch = "x86_64")]
    Avx512X16(Avx512): avx512_x16, "avx512-x16", 16, 14_020;
}

impl Kernel {
    /// Compresses all of `input`, which consists of whole blocks.
    fn compress_one(self, state: &mut Words, input: &[u8]) {
        self.compress(std::slice::from_mut(state), &[input], input.len() / BLOCK);
    }
}

/// Returns the bytes after the last whole block of a message of `length` bytes, padded, and the
/// number of blocks that they make.
fn padding(tail: &[u8], length: u64) -> ([u8; 2 * BLOCK], usize) {
    let mut padding = [0; 2 * BLOCK];
    padding[..tail.len()].copy_from_slice(tail);
    padding[tail.len()] = 0x80;
    let blocks = if tail.len() < BLOCK - 8 { 1 } else { 2 };
    padding[blocks * BLOCK - 8..blocks * BLOCK].copy_from_slice(&(length * 8).to_be_bytes());
    (padding, blocks)
}

/// Writes the state, cut to the length of the digest for SHA-224.
fn write_digest(state: &Words, digest: &mut [u8]) {
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
}

#[cfg(test)]
impl Sha256 {
    /// Returns the hash with a bit of its chaining value flipped.
    pub fn flip_bit(mut self, word: usize, bit: u32) -> Self {
        self.state[word] ^= 1 << bit;
        self
    }
}
