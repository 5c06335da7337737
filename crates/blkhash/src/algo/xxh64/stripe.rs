//! The types, constants and round of XXH64's stripes, which the kernels share.

/// Returns an accumulator after one word.
#[inline(always)]
pub(super) fn round(accumulator: u64, word: u64) -> u64 {
    let sum = accumulator.wrapping_add(word.wrapping_mul(PRIME_2));
    sum.rotate_left(31).wrapping_mul(PRIME_1)
}

/// Four independent chains, each of which takes one word of every stripe.
pub(super) type Accumulators = [u64; 4];

/// The input that the accumulators take at a time.
pub(super) type Stripe = [u8; STRIPE];

pub(super) const STRIPE: usize = 32;

pub(super) const PRIME_1: u64 = 0x9e37_79b1_85eb_ca87;
pub(super) const PRIME_2: u64 = 0xc2b2_ae3d_27d4_eb4f;
pub(super) const PRIME_3: u64 = 0x1656_67b1_9e37_79f9;
pub(super) const PRIME_4: u64 = 0x85eb_ca77_c2b2_ae63;
pub(super) const PRIME_5: u64 = 0x27d4_eb2f_1656_67c5;

/// The initial accumulators.
pub(super) const START: Accumulators =
    [PRIME_1.wrapping_add(PRIME_2), PRIME_2, 0, PRIME_1.wrapping_neg()];
