//! BLAKE2b without a key, as RFC 7693 has it.

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx2;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx2_x4;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx512_x8;
#[cfg(target_arch = "x86_64")]
mod lanes;
mod soft;

use super::Hash;
use super::kernels::{Choice, Entry, Kernel as _, fill_lanes, kernels};

/// A hash in progress, with the kernels it uses.
#[derive(Clone)]
pub(super) struct Blake2b {
    chain: Chain,
    /// The bytes behind the blocks that went into the chain. A whole block stays here until more
    /// comes: the last block is compressed differently.
    buffer: Block,
    buffered: usize,
    kernels: Choice<Kernel>,
}

impl Blake2b {
    /// A hash that has taken nothing yet, for digests of `digest_size` bytes.
    pub fn new(digest_size: usize, kernels: Choice<Kernel>) -> Self {
        let mut h = IV;
        h[0] ^= 0x0101_0000 ^ digest_size as u64;
        Self { chain: Chain { h, count: 0 }, buffer: [0; BLOCK], buffered: 0, kernels }
    }

    fn compress(&mut self, input: &[u8], blocks: Blocks) {
        let kernel = self.kernels.best_for(1);
        kernel.compress(std::slice::from_mut(&mut self.chain), &[input], blocks);
    }

    /// Takes the buffer, which is full, into the chain: more bytes come.
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
            return super::finish_each(&start, inputs, digests);
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
}

/// Updates as many hashes as the kernel has lanes, or fewer: side by side, as far as all of them
/// have whole blocks with more behind.
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

/// What the compression function hands on from block to block.
#[derive(Clone, Copy)]
struct Chain {
    h: [u64; 8],
    /// Bytes taken.
    count: u64,
}

/// Blocks that go into a chain, one after the other.
#[derive(Clone, Copy)]
struct Blocks {
    number: usize,
    /// Bytes of the message in each.
    bytes: u64,
    /// All ones for the last block of a message.
    last: u64,
}

impl Blocks {
    /// Whole blocks, with more of the message behind them.
    fn whole(number: usize) -> Self {
        Self { number, bytes: BLOCK as u64, last: 0 }
    }

    /// The last block, padded, with `bytes` bytes of the message.
    fn last(bytes: usize) -> Self {
        Self { number: 1, bytes: bytes as u64, last: !0 }
    }
}

/// How many blocks of `length` bytes are followed by more of them.
fn blocks_before_last(length: usize) -> usize {
    length.saturating_sub(1) / BLOCK
}

fn pad(tail: &[u8]) -> Block {
    let mut block = [0; BLOCK];
    block[..tail.len()].copy_from_slice(tail);
    block
}

/// Writes as much of the chaining value as the digest is long.
fn write_digest(chain: &Chain, digest: &mut [u8]) {
    for (bytes, word) in digest.chunks_exact_mut(8).zip(chain.h) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
}

kernels! {
    soft: 4020;
    Avx2(Avx2): "avx2", 1, 3350;
    Avx2X4(Avx2): "avx2-x4", 4, 5810;
    Avx512X8(Avx512): "avx512-x8", 8, 5900;
}

impl Kernel {
    /// Takes the blocks at the start of each input into the chain of the same index: as many as the
    /// kernel has lanes, or fewer.
    fn compress(self, chains: &mut [Chain], inputs: &[&[u8]], blocks: Blocks) {
        debug_assert!(chains.len() == inputs.len() && chains.len() <= self.entry().lanes);
        match self {
            Self::Soft => fill_lanes(chains, inputs, |chains: &mut [Chain; 1], [input]| {
                soft::compress(&mut chains[0], input, blocks);
            }),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(token) => fill_lanes(chains, inputs, |chains: &mut [Chain; 1], [input]| {
                avx2::compress(token, &mut chains[0], input, blocks);
            }),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2X4(token) => fill_lanes(chains, inputs, |chains, inputs| {
                avx2_x4::compress(token, chains, inputs, blocks);
            }),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512X8(token) => fill_lanes(chains, inputs, |chains, inputs| {
                avx512_x8::compress(token, chains, inputs, blocks);
            }),
        }
    }
}

/// What the compression function takes at a time.
type Block = [u8; BLOCK];

const BLOCK: usize = 128;

/// The widest kernel's lanes.
const MAX_LANES: usize = 8;

const IV: [u64; 8] = [
    0x6a09_e667_f3bc_c908,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
    0x9b05_688c_2b3e_6c1f,
    0x1f83_d9ab_fb41_bd6b,
    0x5be0_cd19_137e_2179,
];

/// The order in which each round takes the words of the message; the last two repeat the first two.
#[rustfmt::skip]
const SIGMA: [[usize; 16]; 12] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
    [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
    [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
    [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
    [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
    [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
    [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
    [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
];
