//! XXH64 with seed 0. Digests are in the canonical big endian.

mod avx2_x4;
mod avx512_x8;
mod soft;
mod stripe;

use self::stripe::{
    Accumulators, PRIME_1, PRIME_2, PRIME_3, PRIME_4, PRIME_5, START, STRIPE, Stripe, round,
};
use super::hash::{Hash, finish_each};
use super::kernels::{Choice, Entry, Kernel as _, kernels, take_blocks};
use super::tuner::Timing;

/// A hash in progress, with the kernels it uses.
#[derive(Clone)]
pub(super) struct Xxh64 {
    accumulators: Accumulators,
    /// Length of the content so far in bytes.
    length: u64,
    /// The bytes after the last whole stripe.
    buffer: Stripe,
    kernels: Choice<Kernel>,
}

impl Xxh64 {
    /// Creates an empty hash.
    pub fn new(kernels: Choice<Kernel>) -> Self {
        Self { accumulators: START, length: 0, buffer: [0; STRIPE], kernels }
    }

    /// Returns the number of bytes in the buffer.
    fn buffered(&self) -> usize {
        (self.length % STRIPE as u64) as usize
    }
}

impl Hash for Xxh64 {
    fn update(&mut self, input: &[u8]) {
        let Self { accumulators, length, buffer, kernels } = self;
        let accumulators = std::slice::from_mut(accumulators);
        kernels.with_one(input.len(), |kernel| {
            take_blocks(buffer, length, input, |stripes| {
                kernel.consume(accumulators, &[stripes], stripes.len() / STRIPE);
            });
        });
    }

    fn finalize_into(self, digest: &mut [u8]) {
        let tail = &self.buffer[..self.buffered()];
        digest.copy_from_slice(&finish(&self.accumulators, self.length, tail).to_be_bytes());
    }

    fn finish_many(&self, inputs: &[&[u8]], digests: &mut [u8]) {
        if self.buffered() > 0 {
            return finish_each(self, inputs, digests);
        }
        let Some(length) = inputs.first().map(|input| input.len()) else { return };
        let total = self.length + length as u64;
        let stripes = length / STRIPE;
        self.kernels.for_each_batch(inputs, digests, DIGEST, |kernel, inputs, digests| {
            let mut accumulators = [self.accumulators; MAX_LANES];
            let accumulators = &mut accumulators[..inputs.len()];
            kernel.consume(accumulators, inputs, stripes);
            let digests = digests.as_chunks_mut::<DIGEST>().0;
            for ((digest, accumulators), input) in digests.iter_mut().zip(accumulators).zip(inputs)
            {
                *digest = finish(accumulators, total, &input[stripes * STRIPE..]).to_be_bytes();
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
/// them have whole stripes.
fn update_lanes(kernel: Kernel, hashes: &mut [&mut Xxh64], inputs: &[&[u8]]) {
    let mut bodies: [&[u8]; MAX_LANES] = [&[]; MAX_LANES];
    let mut accumulators = [START; MAX_LANES];
    for (lane, (hash, input)) in hashes.iter_mut().zip(inputs).enumerate() {
        let missing = (STRIPE - hash.buffered()) % STRIPE;
        let (head, body) = input.split_at(missing.min(input.len()));
        hash.update(head);
        (accumulators[lane], bodies[lane]) = (hash.accumulators, body);
    }
    let (accumulators, bodies) = (&mut accumulators[..hashes.len()], &bodies[..hashes.len()]);
    let stripes = bodies.iter().map(|body| body.len() / STRIPE).min().unwrap_or(0);
    kernel.consume(accumulators, bodies, stripes);
    for ((hash, accumulators), body) in hashes.iter_mut().zip(accumulators).zip(bodies) {
        hash.accumulators = *accumulators;
        hash.length += (stripes * STRIPE) as u64;
        hash.update(&body[stripes * STRIPE..]);
    }
}

/// Returns the hash of `length` bytes. `tail` has the bytes after the last whole stripe.
fn finish(accumulators: &Accumulators, length: u64, tail: &[u8]) -> u64 {
    let mut hash = if length < STRIPE as u64 { PRIME_5 } else { converge(accumulators) };
    hash = hash.wrapping_add(length);
    let (words, tail) = tail.as_chunks();
    for word in words {
        hash ^= round(0, u64::from_le_bytes(*word));
        hash = hash.rotate_left(27).wrapping_mul(PRIME_1).wrapping_add(PRIME_4);
    }
    let (halves, tail) = tail.as_chunks();
    for half in halves {
        hash ^= u64::from(u32::from_le_bytes(*half)).wrapping_mul(PRIME_1);
        hash = hash.rotate_left(23).wrapping_mul(PRIME_2).wrapping_add(PRIME_3);
    }
    for byte in tail {
        hash ^= u64::from(*byte).wrapping_mul(PRIME_5);
        hash = hash.rotate_left(11).wrapping_mul(PRIME_1);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(PRIME_2);
    hash = (hash ^ (hash >> 29)).wrapping_mul(PRIME_3);
    hash ^ (hash >> 32)
}

/// Merges the four accumulators into one word.
fn converge(accumulators: &Accumulators) -> u64 {
    let [a, b, c, d] = *accumulators;
    let sum = a
        .rotate_left(1)
        .wrapping_add(b.rotate_left(7))
        .wrapping_add(c.rotate_left(12))
        .wrapping_add(d.rotate_left(18));
    accumulators.iter().fold(sum, |hash, accumulator| {
        (hash ^ round(0, *accumulator)).wrapping_mul(PRIME_1).wrapping_add(PRIME_4)
    })
}

kernels! {
    family "xxh64";

    /// Takes `stripes` stripes at the start of each input into the accumulators of the same index.
    fn consume(accumulators: &mut [Accumulators], inputs: &[&[u8]], stripes: usize);

    Soft(Portable): soft, "soft", 1, 255;
    #[cfg(target_arch = "x86_64")]
    Avx2X4(Avx2): avx2_x4, "avx2-x4", 4, 815;
    #[cfg(target_arch = "x86_64")]
    Avx512X8(Avx512): avx512_x8, "avx512-x8", 8, 720;
}

const DIGEST: usize = 8;
