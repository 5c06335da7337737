//! The stripes of XXH64, written as in the specification.

use super::stripe::{Accumulators, STRIPE, round};
use crate::cpu::Portable;

/// Takes the stripes at the start of the input into the accumulators.
pub(super) fn consume(
    _token: Portable,
    [accumulators]: &mut [Accumulators; 1],
    [input]: [&[u8]; 1],
    stripes: usize,
) {
    let (input, _) = input.as_chunks::<STRIPE>();
    let mut values = *accumulators;
    for stripe in &input[..stripes] {
        for (value, word) in values.iter_mut().zip(stripe.as_chunks().0) {
            *value = round(*value, u64::from_le_bytes(*word));
        }
    }
    *accumulators = values;
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh64::xxh64;

    use crate::Algorithm::Xxh64;
    use crate::algo::kernel_tests::soft_equals;

    #[test]
    fn equals_xxhash_rust() {
        soft_equals(Xxh64, |input| xxh64(input, 0).to_be_bytes().to_vec());
    }
}
