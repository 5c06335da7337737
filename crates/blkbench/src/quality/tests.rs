//! Tests with a CRC and a function that is not linear, both written out here.

use super::detection::{detection, shortest_undetected};
use super::forgery::forge;
use super::linear::Syndromes;
use super::*;
use crate::noise::Noise;

/// CRC-32C of the bits of each byte from the lowest or the highest.
struct Crc {
    is_highest_bit_first: bool,
    /// The CRC of each byte.
    table: [u32; 256],
}

impl Crc {
    fn new(is_highest_bit_first: bool) -> Self {
        let step = |crc: u32, _| crc >> 1 ^ if crc & 1 == 1 { CASTAGNOLI } else { 0 };
        let of = |byte: u8| if is_highest_bit_first { byte.reverse_bits() } else { byte };
        let table = std::array::from_fn(|byte| (0..8).fold(u32::from(of(byte as u8)), step));
        Self { is_highest_bit_first, table }
    }
}

impl Checksum for Crc {
    fn name(&self) -> &'static str {
        "crc"
    }

    fn bits(&self) -> usize {
        32
    }

    fn of(&self, block: &[u8]) -> u128 {
        // The table is for bytes as they are in the block.
        let first = |crc: u32| {
            if self.is_highest_bit_first { (crc as u8).reverse_bits() } else { crc as u8 }
        };
        let byte = |crc: u32, byte: &u8| crc >> 8 ^ self.table[usize::from(first(crc) ^ byte)];
        u128::from(!block.iter().fold(u32::MAX, byte))
    }

    fn is_highest_bit_first(&self) -> bool {
        self.is_highest_bit_first
    }
}

/// Mixes words as SplitMix64 does. The last word can be chosen so that the end stays the same.
struct Mixed;

impl Checksum for Mixed {
    fn name(&self) -> &'static str {
        "mixed"
    }

    fn bits(&self) -> usize {
        64
    }

    fn of(&self, block: &[u8]) -> u128 {
        u128::from(state(block, block.len()))
    }

    fn forger(&self) -> Option<Forger> {
        let forge = |original: &[u8], block: &mut [u8]| {
            let end = block.len() - 8;
            let word = u64::from_le_bytes(original[end..].try_into().unwrap());
            let word = word ^ state(original, end) ^ state(block, end);
            block[end..].copy_from_slice(&word.to_le_bytes());
        };
        Some(Forger { how: "the last word", bytes: 8, forge })
    }
}

fn state(block: &[u8], end: usize) -> u64 {
    let words =
        block[..end].chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
    words.fold(1, |state, word| Noise(state ^ word).next())
}

const CASTAGNOLI: u32 = 0x82f6_3b78;

#[test]
fn a_crc_detects_bursts_up_to_its_length_and_misses_its_polynomial() {
    for is_highest_bit_first in [false, true] {
        let crc = Crc::new(is_highest_bit_first);
        let syndromes = Syndromes::of(&crc).unwrap();
        for errors in detection(&crc, Some(&syndromes)) {
            assert_eq!(errors.undetected, 0, "{}", errors.what);
        }
        // x^32 is the first bit; the reflected polynomial has x^31 as its lowest.
        let (length, pattern) = shortest_undetected(&crc, &syndromes).unwrap();
        assert_eq!((length, pattern), (33, 1 | u128::from(CASTAGNOLI) << 1));
        for position in [0, 777, BITS - length] {
            let mut block = Noise(9).block::<BLOCK>();
            let before = crc.of(&block);
            for bit in (0..length).filter(|bit| pattern >> bit & 1 == 1) {
                flip(&crc, &mut block, position + bit);
            }
            assert_eq!(crc.of(&block), before, "at {position}");
        }
        let forgery = forge(&crc, Some(&syndromes)).unwrap();
        assert!(forgery.forged > 0 && forgery.bytes == 4, "{forgery:?}");
    }
}

#[test]
fn a_mixing_function_behaves_like_a_random_one() {
    assert!(Syndromes::of(&Mixed).is_none());
    let errors = detection(&Mixed, None);
    assert!(errors.iter().all(|errors| errors.undetected == 0), "{errors:?}");
    assert!(forge(&Mixed, None).is_some_and(|forgery| forgery.bytes == 8));
    let avalanche = avalanche::avalanche(&Mixed);
    assert!((avalanche.mean - 0.5).abs() < 0.01, "{avalanche:?}");
    assert!(avalanche.worst_pair < 1.5 * avalanche.expected_pair, "{avalanche:?}");
    let crc = avalanche::avalanche(&Crc::new(false));
    assert_eq!(crc.worst_pair, 1.0, "a linear function has pairs that always flip");
}
