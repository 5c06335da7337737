//! The state of a hash, and the list of kernels.

#![cfg(target_arch = "aarch64")]

use super::constants::{BLOCK, Block, SHA384, SHA512, SHA512_224, SHA512_256, Words};
use super::{arm_sha, rustcrypto, soft};
use crate::algo::hash::Hash;
use crate::algo::kernels::{Choice, Entry, Kernel as _, Policy, kernels, take_blocks};
use crate::algo::tuner::Timing;

/// A hash in progress, with the kernels it uses.
#[derive(Clone)]
pub struct Sha512 {
    state: Words,
    /// Length of the message so far in bytes.
    length: u64,
    /// The bytes after the last whole block.
    buffer: Block,
    kernels: Choice<Kernel>,
}

pub type Sha384 = Sha512;
pub type Sha512_224 = Sha512;
pub type Sha512_256 = Sha512;

/// The implementations.
pub const ENTRIES: &[Entry] = Kernel::ENTRIES;

/// The name of the family of kernels.
pub const FAMILY: &str = Kernel::FAMILY;

/// Creates an empty hash with the kernels that `accept` allows.
pub fn sha384(accept: &dyn Fn(&Entry) -> bool, policy: Policy) -> Sha384 {
    Sha512::new(SHA384, Choice::detect(accept, policy))
}

/// Creates an empty hash with the kernels that `accept` allows.
pub fn sha512(accept: &dyn Fn(&Entry) -> bool, policy: Policy) -> Sha512 {
    Sha512::new(SHA512, Choice::detect(accept, policy))
}

/// Creates an empty hash with the kernels that `accept` allows.
pub fn sha512_224(accept: &dyn Fn(&Entry) -> bool, policy: Policy) -> Sha512_224 {
    Sha512::new(SHA512_224, Choice::detect(accept, policy))
}

/// Creates an empty hash with the kernels that `accept` allows.
pub fn sha512_256(accept: &dyn Fn(&Entry) -> bool, policy: Policy) -> Sha512_256 {
    Sha512::new(SHA512_256, Choice::detect(accept, policy))
}

impl Sha512 {
    fn new(state: Words, kernels: Choice<Kernel>) -> Self {
        Self { state, length: 0, buffer: [0; BLOCK], kernels }
    }

    /// Returns the number of bytes in the buffer.
    fn buffered(&self) -> usize {
        (self.length % BLOCK as u64) as usize
    }

    /// Returns the bytes after the last whole block, padded, and the number of blocks that they make.
    fn padding(&self) -> ([u8; 2 * BLOCK], usize) {
        let mut padding = [0; 2 * BLOCK];
        let tail = &self.buffer[..self.buffered()];
        padding[..tail.len()].copy_from_slice(tail);
        padding[tail.len()] = 0x80;
        let blocks = if tail.len() < BLOCK - 16 { 1 } else { 2 };
        let bits = u128::from(self.length) * 8;
        padding[blocks * BLOCK - 16..blocks * BLOCK].copy_from_slice(&bits.to_be_bytes());
        (padding, blocks)
    }
}

impl Hash for Sha512 {
    fn update(&mut self, input: &[u8]) {
        let Self { state, length, buffer, kernels } = self;
        kernels.with_one(input.len(), |kernel| {
            take_blocks(buffer, length, input, |blocks| kernel.compress_one(state, blocks));
        });
    }

    fn finalize_into(mut self, digest: &mut [u8]) {
        let (padding, blocks) = self.padding();
        let padding = &padding[..blocks * BLOCK];
        let state = &mut self.state;
        self.kernels.with_one(padding.len(), |kernel| kernel.compress_one(state, padding));
        write_digest(&self.state, digest);
    }

    fn finish_many(&self, inputs: &[&[u8]], digests: &mut [u8]) {
        if inputs.is_empty() {
            return;
        }
        let size = digests.len() / inputs.len();
        self.kernels.for_each_batch(inputs, digests, size, |kernel, inputs, digests| {
            let mut hashes: [Self; MAX_LANES] = std::array::from_fn(|_| self.clone());
            update_lanes(kernel, &mut hashes.each_mut()[..inputs.len()], inputs);
            let mut states = hashes.each_ref().map(|hash| hash.state);
            let states = &mut states[..inputs.len()];
            let tails = hashes.each_ref().map(Self::padding);
            // All inputs have the same length.
            let blocks = tails[0].1;
            let tails = tails.each_ref().map(|(tail, _)| &tail[..]);
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
fn update_lanes(kernel: Kernel, hashes: &mut [&mut Sha512], inputs: &[&[u8]]) {
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
    family "sha512";

    /// Compresses `blocks` blocks at the start of each input into the state of the same index.
    fn compress(states: &mut [Words], inputs: &[&[u8]], blocks: usize);

    Soft(Portable): soft, "soft", 1, 6700;
    RustCrypto(Portable): rustcrypto, "sha2", 1, 2100;
    ArmSha(Sha512): arm_sha, "arm_sha", 1, 1921;
    ArmShaX2(Sha512): arm_sha, "arm_sha-x2", 2, 2361;
}

impl Kernel {
    /// Compresses all of `input`, which consists of whole blocks.
    fn compress_one(self, state: &mut Words, input: &[u8]) {
        self.compress(std::slice::from_mut(state), &[input], input.len() / BLOCK);
    }
}

/// Writes the state, cut to the length of the digest.
fn write_digest(state: &Words, digest: &mut [u8]) {
    for (bytes, word) in digest.chunks_mut(8).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes()[..bytes.len()]);
    }
}
