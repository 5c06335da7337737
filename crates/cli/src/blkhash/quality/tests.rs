//! Tests of the guarantees that each kind of checksum gives.

use blkhash::BitOrder;

use super::hash::{BITS, BLOCK, Noise, bit_order, flip};
use super::*;

fn syndromes(algorithm: Algorithm) -> (Hash, Option<Syndromes>) {
    let hash = Hash::new(algorithm);
    let syndromes = Syndromes::of(&hash, bit_order(algorithm));
    (hash, syndromes)
}

const CRCS: [Algorithm; 4] =
    [Algorithm::Crc32, Algorithm::Crc32c, Algorithm::Crc64, Algorithm::Crc64Nvme];

#[test]
fn only_crcs_are_linear() {
    for algorithm in measurable() {
        assert_eq!(syndromes(algorithm).1.is_some(), CRCS.contains(&algorithm), "{algorithm}");
    }
}

#[test]
fn a_crc_detects_bursts_up_to_its_length_and_misses_one_that_is_a_bit_longer() {
    for algorithm in CRCS {
        let (hash, syndromes) = syndromes(algorithm);
        let syndromes = syndromes.unwrap();
        let order = bit_order(algorithm);
        for errors in detection(&hash, order, Some(&syndromes)) {
            assert_eq!(errors.undetected, 0, "{algorithm}: {}", errors.what);
        }
        let (length, pattern) = shortest_undetected(&hash, &syndromes).unwrap();
        assert_eq!(length, hash.bits + 1, "{algorithm}");
        // The pattern is the generator polynomial, which goes undetected at any position.
        for position in [0, 777, BITS - length] {
            let mut block = Noise(9).block();
            let before = hash.of(&block);
            for bit in (0..length).filter(|bit| pattern >> bit & 1 == 1) {
                flip(order, &mut block, position + bit);
            }
            assert_eq!(hash.of(&block), before, "{algorithm} at {position}");
        }
    }
}

#[test]
fn the_undetected_burst_of_crc32c_is_its_polynomial() {
    let (hash, syndromes) = syndromes(Algorithm::Crc32c);
    let (_, pattern) = shortest_undetected(&hash, &syndromes.unwrap()).unwrap();
    // x^32 is the first bit; the reflected polynomial has x^31 as its lowest.
    assert_eq!(pattern, 1 | 0x82f6_3b78 << 1);
}

#[test]
fn forged_blocks_collide() {
    for algorithm in CRCS.into_iter().chain([Algorithm::Xxh64]) {
        let (hash, syndromes) = syndromes(algorithm);
        let forgery = forge(&hash, bit_order(algorithm), syndromes.as_ref()).unwrap();
        // Forging panics if the library's hash of a forged block differs.
        assert!(forgery.forged > 0);
        assert_eq!(forgery.bytes, hash.bits / 8);
    }
    assert!(forge(&Hash::new(Algorithm::Xxh3), BitOrder::LowestFirst, None).is_none());
}

#[test]
fn nonlinear_hashes_behave_like_random_functions() {
    for algorithm in [Algorithm::Xxh64, Algorithm::Xxh3, Algorithm::Xxh128] {
        let measured = avalanche(&Hash::new(algorithm));
        assert!((measured.mean - 0.5).abs() < 0.01, "{algorithm}: {measured:?}");
        assert!(measured.worst_pair < 1.5 * measured.expected_pair, "{algorithm}: {measured:?}");
    }
    let measured = avalanche(&Hash::new(Algorithm::Crc32c));
    assert_eq!(measured.worst_pair, 1.0, "a linear hash has pairs that always flip");
}

#[test]
fn batches_give_the_digests_of_single_blocks() {
    let hash = Hash::new(Algorithm::Xxh128);
    let blocks = [Noise(1).block(), [0; BLOCK], Noise(2).block()];
    let blocks: Vec<&[u8]> = blocks.iter().map(|block| &block[..]).collect();
    let each: Vec<u128> = blocks.iter().map(|block| hash.of(block)).collect();
    assert_eq!(hash.of_many(&blocks), each);
}
