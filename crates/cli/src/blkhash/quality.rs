//! `blkhash bench --quality`: measures which errors the non-cryptographic checksums detect.

use blkbench::quality::{Checksum, Forger, Quality};
use blkbench::report;
use blkhash::{Algorithm, BitOrder, Digester, State, Strength};

use super::args;
use super::bench::Filter;
use super::suggest::instead_of;
use crate::json;
use crate::problem::{Failure, Outcome};

/// Measures and prints.
pub fn run(args: &args::Bench) -> Result<Outcome, Failure> {
    let filter = Filter::new(&args.filter).map_err(Failure::usage)?;
    let all: Vec<Algorithm> = Algorithm::ALL.iter().copied().filter(only_detects_errors).collect();
    let names = |algorithm: Algorithm| {
        let all = blkhash::implementations(algorithm).iter();
        all.map(move |known| (algorithm.name().to_owned(), known.name()))
    };
    let known: Vec<_> = all.iter().copied().flat_map(names).collect();
    if let Some(wanted) = filter.unmatched(&known).first() {
        let algorithms: Vec<_> = all.iter().map(|algorithm| algorithm.name()).collect();
        let reason = format!("--filter '{wanted}' matches nothing that --quality measures");
        return Err(Failure::usage(format!("{reason}: {}", instead_of(wanted, &algorithms))));
    }
    let is_wanted = |algorithm: &Algorithm| {
        names(*algorithm).any(|(algorithm, name)| filter.accepts(&algorithm, &name))
    };
    let wanted: Vec<Algorithm> = all.into_iter().filter(is_wanted).collect();
    super::warn(wanted.iter().copied());
    let found: Vec<Quality> =
        wanted.into_iter().map(|algorithm| Quality::of(&Hash::new(algorithm))).collect();
    super::print(&match args.json {
        true => found.iter().map(json::line).collect(),
        false => report::quality(&found),
    })
}

fn only_detects_errors(algorithm: &Algorithm) -> bool {
    algorithm.properties().strength == Strength::ErrorDetection
}

/// An algorithm with a digest of up to 128 bits.
struct Hash {
    algorithm: Algorithm,
    digester: Digester,
    start: State,
}

impl Hash {
    fn new(algorithm: Algorithm) -> Self {
        let digester = Digester::new(algorithm);
        let start = digester.start();
        Self { algorithm, digester, start }
    }
}

impl Checksum for Hash {
    fn name(&self) -> &'static str {
        self.algorithm.name()
    }

    fn bits(&self) -> usize {
        8 * self.algorithm.digest_size()
    }

    fn of(&self, block: &[u8]) -> u128 {
        number(self.digester.digest(block).as_bytes())
    }

    fn of_many(&self, blocks: &[&[u8]]) -> Vec<u128> {
        let size = self.algorithm.digest_size();
        let mut digests = vec![0; blocks.len() * size];
        self.digester.finish_many(&self.start, blocks, &mut digests);
        digests.chunks_exact(size).map(number).collect()
    }

    fn is_highest_bit_first(&self) -> bool {
        self.algorithm.properties().bit_order == Some(BitOrder::HighestFirst)
    }

    fn forger(&self) -> Option<Forger> {
        let how = "the lane's next word undoes it";
        (self.algorithm == Algorithm::Xxh64).then_some(Forger { how, bytes: 8, forge: compensate })
    }
}

fn number(digest: &[u8]) -> u128 {
    digest.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// Changes the word of XXH64's first lane that follows the tampered one. XXH64 mixes in the words of a lane one after the
/// other, in steps that can be undone, so the lane continues with the state that it has in the original.
fn compensate(original: &[u8], block: &mut [u8]) {
    let word = |bytes: &[u8], at: usize| {
        u64::from_le_bytes(bytes[at..at + 8].try_into().expect("a word has 8 bytes"))
    };
    let round = |lane: u64, word: u64| {
        lane.wrapping_add(word.wrapping_mul(PRIME_2)).rotate_left(31).wrapping_mul(PRIME_1)
    };
    let start = PRIME_1.wrapping_add(PRIME_2);
    let words = (0..Forger::TAMPERED).step_by(STRIPE);
    let before = words.fold(start, |lane, at| round(lane, word(block, at)));
    let [lane, tampered] =
        [original, &*block].map(|bytes| round(before, word(bytes, Forger::TAMPERED)));
    // Newton's iteration doubles the number of correct bits of the inverse: 3, 6, 12, 24, 48, 96.
    let step =
        |inverse: u64, _| inverse.wrapping_mul(2u64.wrapping_sub(PRIME_2.wrapping_mul(inverse)));
    let inverse = (0..5).fold(PRIME_2, step);
    let next = Forger::TAMPERED + STRIPE;
    let compensated =
        word(original, next).wrapping_add(lane.wrapping_sub(tampered).wrapping_mul(inverse));
    block[next..next + 8].copy_from_slice(&compensated.to_le_bytes());
}

/// Number of bytes that XXH64 processes at a time, a word for each of its four lanes.
const STRIPE: usize = 32;

/// The multipliers of XXH64's lanes.
const PRIME_1: u64 = 0x9e37_79b1_85eb_ca87;
const PRIME_2: u64 = 0xc2b2_ae3d_27d4_eb4f;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crcs_keep_their_promises_and_xxhash_is_like_a_random_function() {
        for &algorithm in Algorithm::ALL.iter().filter(|it| only_detects_errors(it)) {
            let quality = Quality::of(&Hash::new(algorithm));
            let is_crc = algorithm.name().starts_with("crc");
            assert_eq!(quality.linear, is_crc, "{algorithm}");
            assert!(quality.errors.iter().all(|errors| errors.undetected == 0), "{quality:?}");
            let burst = is_crc.then_some(quality.bits + 1);
            assert_eq!(quality.shortest_undetected_burst, burst, "{algorithm}");
            let avalanche = quality.avalanche;
            let is_random = avalanche.worst_pair < 1.5 * avalanche.expected_pair;
            assert_eq!(is_random, !is_crc, "{algorithm}: {avalanche:?}");
            // Forging panics if the hash of a forged block differs.
            let is_forged = is_crc || algorithm == Algorithm::Xxh64;
            let bytes = quality.forgery.map(|forgery| forgery.bytes);
            assert_eq!(bytes, is_forged.then_some(quality.bits / 8), "{algorithm}");
        }
    }

    #[test]
    fn batches_have_the_digests_of_single_blocks() {
        let hash = Hash::new(Algorithm::Xxh128);
        let blocks: [&[u8]; 3] = [&[1; 4096], &[0; 4096], &[2; 4096]];
        assert_eq!(hash.of_many(&blocks), blocks.map(|block| hash.of(block)));
    }
}
