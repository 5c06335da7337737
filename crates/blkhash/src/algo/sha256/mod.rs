//! SHA-256 and SHA-224.

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx2_x8;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx512_x16;
#[cfg(target_arch = "x86_64")]
mod lanes;
mod soft;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86_sha;

use super::Hash;
use super::kernels::{Choice, Entry, Kernel as _, fill_lanes, kernels, take_blocks};

/// A hash in progress, with the kernels it uses.
#[derive(Clone)]
pub(super) struct Sha256 {
    state: Words,
    /// Bytes taken.
    length: u64,
    /// The bytes behind the last whole block.
    buffer: Block,
    kernels: Choice<Kernel>,
}

impl Sha256 {
    /// A hash that has taken nothing yet: `state` is [`SHA256`] or [`SHA224`].
    pub fn new(state: Words, kernels: Choice<Kernel>) -> Self {
        Self { state, length: 0, buffer: [0; BLOCK], kernels }
    }

    /// Bytes in the buffer.
    fn buffered(&self) -> usize {
        (self.length % BLOCK as u64) as usize
    }
}

impl Hash for Sha256 {
    fn update(&mut self, input: &[u8]) {
        let Self { state, length, buffer, kernels } = self;
        let kernel = kernels.best_for(1);
        take_blocks(buffer, length, input, |blocks| kernel.compress_one(state, blocks));
    }

    fn finalize_into(mut self, digest: &mut [u8]) {
        let (padding, blocks) = padding(&self.buffer[..self.buffered()], self.length);
        self.kernels.best_for(1).compress_one(&mut self.state, &padding[..blocks * BLOCK]);
        write_digest(&self.state, digest);
    }

    fn finish_many(&self, inputs: &[&[u8]], digests: &mut [u8]) {
        if self.buffered() > 0 {
            return super::finish_each(self, inputs, digests);
        }
        let Some(length) = inputs.first().map(|input| input.len()) else { return };
        let size = digests.len() / inputs.len();
        let total = self.length + length as u64;
        let whole = length / BLOCK;
        self.kernels.for_each_batch(inputs, digests, size, |kernel, inputs, digests| {
            let mut states = [self.state; MAX_LANES];
            let states = &mut states[..inputs.len()];
            kernel.compress(states, inputs, whole);
            let mut tails = [[0; 2 * BLOCK]; MAX_LANES];
            let mut blocks = 0;
            for (tail, input) in tails.iter_mut().zip(inputs) {
                (*tail, blocks) = padding(&input[whole * BLOCK..], total);
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
}

/// Updates as many hashes as the kernel has lanes, or fewer: side by side, as far as all of them
/// have whole blocks.
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
    soft: 10_900;
    X86Sha(Sha): "x86_sha", 1, 2088;
    X86ShaX2(Sha): "x86_sha-x2", 2, 3190;
    Avx2X8(Avx2): "avx2-x8", 8, 18_900;
    Avx512X16(Avx512): "avx512-x16", 16, 14_020;
}

impl Kernel {
    /// Takes the blocks that make up `input`.
    fn compress_one(self, state: &mut Words, input: &[u8]) {
        self.compress(std::slice::from_mut(state), &[input], input.len() / BLOCK);
    }

    /// Takes `blocks` blocks at the start of each input into the state of the same index: as many
    /// as the kernel has lanes, or fewer.
    fn compress(self, states: &mut [Words], inputs: &[&[u8]], blocks: usize) {
        debug_assert!(states.len() == inputs.len() && states.len() <= self.entry().lanes);
        match self {
            Self::Soft => fill_lanes(states, inputs, |states: &mut [Words; 1], [input]| {
                soft::compress(&mut states[0], input, blocks);
            }),
            #[cfg(target_arch = "x86_64")]
            Self::X86Sha(token) => fill_lanes(states, inputs, |states: &mut [Words; 1], inputs| {
                x86_sha::compress(token, states, inputs, blocks);
            }),
            #[cfg(target_arch = "x86_64")]
            Self::X86ShaX2(token) => {
                fill_lanes(states, inputs, |states: &mut [Words; 2], inputs| {
                    x86_sha::compress(token, states, inputs, blocks);
                });
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx2X8(token) => fill_lanes(states, inputs, |states, inputs| {
                avx2_x8::compress(token, states, inputs, blocks);
            }),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512X16(token) => fill_lanes(states, inputs, |states, inputs| {
                avx512_x16::compress(token, states, inputs, blocks);
            }),
        }
    }
}

/// The bytes behind the last whole block of a message of `length` bytes, padded, and how many
/// blocks that makes.
fn padding(tail: &[u8], length: u64) -> ([u8; 2 * BLOCK], usize) {
    let mut padding = [0; 2 * BLOCK];
    padding[..tail.len()].copy_from_slice(tail);
    padding[tail.len()] = 0x80;
    let blocks = if tail.len() < BLOCK - 8 { 1 } else { 2 };
    padding[blocks * BLOCK - 8..blocks * BLOCK].copy_from_slice(&(length * 8).to_be_bytes());
    (padding, blocks)
}

/// Writes as much of the state as the digest is long: SHA-224 cuts it.
fn write_digest(state: &Words, digest: &mut [u8]) {
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
}

/// The chaining value.
pub(super) type Words = [u32; 8];

/// What the compression function takes at a time.
type Block = [u8; BLOCK];

const BLOCK: usize = 64;

/// The widest kernel's lanes.
const MAX_LANES: usize = 16;

pub(super) const SHA256: Words = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

pub(super) const SHA224: Words = [
    0xc105_9ed8,
    0x367c_d507,
    0x3070_dd17,
    0xf70e_5939,
    0xffc0_0b31,
    0x6858_1511,
    0x64f9_8fa7,
    0xbefa_4fa4,
];

/// The round constants of FIPS 180-4.
const K: [u32; 64] = [
    0x428a_2f98,
    0x7137_4491,
    0xb5c0_fbcf,
    0xe9b5_dba5,
    0x3956_c25b,
    0x59f1_11f1,
    0x923f_82a4,
    0xab1c_5ed5,
    0xd807_aa98,
    0x1283_5b01,
    0x2431_85be,
    0x550c_7dc3,
    0x72be_5d74,
    0x80de_b1fe,
    0x9bdc_06a7,
    0xc19b_f174,
    0xe49b_69c1,
    0xefbe_4786,
    0x0fc1_9dc6,
    0x240c_a1cc,
    0x2de9_2c6f,
    0x4a74_84aa,
    0x5cb0_a9dc,
    0x76f9_88da,
    0x983e_5152,
    0xa831_c66d,
    0xb003_27c8,
    0xbf59_7fc7,
    0xc6e0_0bf3,
    0xd5a7_9147,
    0x06ca_6351,
    0x1429_2967,
    0x27b7_0a85,
    0x2e1b_2138,
    0x4d2c_6dfc,
    0x5338_0d13,
    0x650a_7354,
    0x766a_0abb,
    0x81c2_c92e,
    0x9272_2c85,
    0xa2bf_e8a1,
    0xa81a_664b,
    0xc24b_8b70,
    0xc76c_51a3,
    0xd192_e819,
    0xd699_0624,
    0xf40e_3585,
    0x106a_a070,
    0x19a4_c116,
    0x1e37_6c08,
    0x2748_774c,
    0x34b0_bcb5,
    0x391c_0cb3,
    0x4ed8_aa4a,
    0x5b9c_ca4f,
    0x682e_6ff3,
    0x748f_82ee,
    0x78a5_636f,
    0x84c8_7814,
    0x8cc7_0208,
    0x90be_fffa,
    0xa450_6ceb,
    0xbef9_a3f7,
    0xc671_78f2,
];
