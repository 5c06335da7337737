//! BLAKE2b without a key, as in RFC 7693.

mod avx2;
mod avx2_x4;
mod avx512_x8;
mod chain;
mod lanes;
mod soft;

use self::chain::{BLOCK, Block, Blocks, Chain, IV};
use super::hash::{Hash, finish_each};
use super::kernels::{Choice, Entry, Kernel as _, kernels};
use super::tuner::Timing;

/// A hash in progress, with the kernels it uses.
#[derive(Clone)]
pub(super) struct Blake2b {
    chain: Chain,
    /// The bytes after the blocks that went into the chain. A whole block stays here until more
    /// bytes come, because the last block is compressed differently.
    buffer: Block,
    buffered: usize,
    kernels: Choice<Kernel>,
}

impl Blake2b {
    /// Creates an empty hash, for digests of `DIGEST` bytes.
    pub fn new<const DIGEST: u64>(kernels: Choice<Kernel>) -> Self {
        let mut h = IV;
        h[0] ^= 0x0101_0000 ^ DIGEST;
        Self { chain: Chain { h, count: 0 }, buffer: [0; BLOCK], buffered: 0, kernels }
    }

    fn compress(&mut self, input: &[u8], blocks: Blocks) {
        let chains = std::slice::from_mut(&mut self.chain);
        self.kernels.with_one(input.len(), |kernel| kernel.compress(chains, &[input], blocks));
    }

    /// Compresses the full buffer into the chain when more bytes come.
    fn compress_buffer(&mut self) {
        let block = self.buffer;
        self.compress(&block, Blocks::whole(1));
        self.buffered = 0;
    }
}

impl Hash for Blake2b {
    fn update(&mut self, mut input: &[u8]) {
        let missing = BLOCK - self.buffered;
        if self.buffered > 0 && input.len() > missing {
            let (head, rest) = input.split_at(missing);
            self.buffer[self.buffered..].copy_from_slice(head);
            self.compress_buffer();
            input = rest;
        }
        if self.buffered == 0 {
            let blocks = blocks_before_last(input.len());
            self.compress(input, Blocks::whole(blocks));
            input = &input[blocks * BLOCK..];
        }
        self.buffer[self.buffered..][..input.len()].copy_from_slice(input);
        self.buffered += input.len();
    }

    fn finalize_into(mut self, digest: &mut [u8]) {
        let block = pad(&self.buffer[..self.buffered]);
        self.compress(&block, Blocks::last(self.buffered));
        write_digest(&self.chain, digest);
    }

    fn finish_many(&self, inputs: &[&[u8]], digests: &mut [u8]) {
        let Some(length) = inputs.first().map(|input| input.len()) else { return };
        let mut start = self.clone();
        if start.buffered == BLOCK && length > 0 {
            start.compress_buffer();
        }
        if start.buffered > 0 {
            return finish_each(&start, inputs, digests);
        }
        let size = digests.len() / inputs.len();
        let whole = blocks_before_last(length);
        self.kernels.for_each_batch(inputs, digests, size, |kernel, inputs, digests| {
            let mut chains = [start.chain; MAX_LANES];
            let chains = &mut chains[..inputs.len()];
            kernel.compress(chains, inputs, Blocks::whole(whole));
            let mut lasts = [[0; BLOCK]; MAX_LANES];
            for (last, input) in lasts.iter_mut().zip(inputs) {
                *last = pad(&input[whole * BLOCK..]);
            }
            let lasts: [&[u8]; MAX_LANES] = std::array::from_fn(|lane| &lasts[lane][..]);
            kernel.compress(chains, &lasts[..inputs.len()], Blocks::last(length - whole * BLOCK));
            for (chain, digest) in chains.iter().zip(digests.chunks_exact_mut(size)) {
                write_digest(chain, digest);
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
/// them have whole blocks with more bytes after them.
fn update_lanes(kernel: Kernel, hashes: &mut [&mut Blake2b], inputs: &[&[u8]]) {
    let mut bodies: [&[u8]; MAX_LANES] = [&[]; MAX_LANES];
    let mut chains = [Chain { h: [0; 8], count: 0 }; MAX_LANES];
    for (lane, (hash, input)) in hashes.iter_mut().zip(inputs).enumerate() {
        let missing = if hash.buffered == 0 { 0 } else { BLOCK - hash.buffered };
        let (head, body) = input.split_at(missing.min(input.len()));
        hash.update(head);
        if hash.buffered == BLOCK && !body.is_empty() {
            hash.compress_buffer();
        }
        (chains[lane], bodies[lane]) = (hash.chain, body);
    }
    let (chains, bodies) = (&mut chains[..hashes.len()], &bodies[..hashes.len()]);
    let blocks = bodies.iter().map(|body| blocks_before_last(body.len())).min().unwrap_or(0);
    kernel.compress(chains, bodies, Blocks::whole(blocks));
    for ((hash, chain), body) in hashes.iter_mut().zip(chains).zip(bodies) {
        hash.chain = *chain;
        hash.update(&body[blocks * BLOCK..]);
    }
}

/// Returns how many blocks of `length` bytes are followed by more bytes.
fn blocks_before_last(length: usize) -> usize {
    length.saturating_sub(1) / BLOCK
}

fn pad(tail: &[u8]) -> Block {
    let mut block = [0; BLOCK];
    block[..tail.len()].copy_from_slice(tail);
    block
}

/// Writes the chaining value, cut to the length of the digest.
fn write_digest(chain: &Chain, digest: &mut [u8]) {
    for (bytes, word) in digest.chunks_exact_mut(8).zip(chain.h) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
}

kernels! {
    family "blake2b";

    /// Compresses the blocks at the start of each input into the chain of the same index.
    fn compress(chains: &mut [Chain], inputs: &[&[u8]], blocks: Blocks);

    Soft(Portable): soft, "soft", 1, 4020;
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2): avx2, "avx2", 1, 3350;
    #[cfg(target_arch = "x86_64")]
    Avx2X4(Avx2): avx2_x4, "avx2-x4", 4, 5810;
    #[cfg(target_arch = "x86_64")]
    Avx512X8(Avx512): avx512_x8, "avx512-x8", 8, 5900;
}
