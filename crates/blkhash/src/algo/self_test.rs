//! Known answers that every implementation must give before it is used.
//!
//! Sixteen inputs of each length are hashed side by side. The hash of their digests is the answer,
//! so that it covers lanes, padding and buffers. `test-vectors/generate.py` writes the answers,
//! which `reference/` computes.

use super::kernels;
use super::state::State;
use crate::Algorithm;

/// Returns whether the implementations of the initial state `start` compute its algorithm.
pub(super) fn passes(start: &State) -> bool {
    known_answer(start.algorithm()) == Some(answer(start, |_| ()).as_str())
}

/// Returns the result of the test. `disturb` may change the digests of each length.
fn answer(start: &State, mut disturb: impl FnMut(&mut [u8])) -> String {
    let size = start.algorithm().digest_size();
    let mut all = start.clone();
    for length in LENGTHS {
        let inputs: [&[u8]; INPUTS] =
            std::array::from_fn(|input| &PATTERN[SHIFT * input..][..length]);
        let mut digests = [0; INPUTS * crate::MAX_DIGEST_SIZE];
        let digests = &mut digests[..INPUTS * size];
        start.finish_many(&inputs, digests);
        disturb(digests);
        all.update(digests);
    }
    all.finalize().to_string()
}

fn known_answer(algorithm: Algorithm) -> Option<&'static str> {
    let answers = include_str!("known_answers.txt").lines();
    let mut answers = answers.filter_map(|line| line.split_once(':'));
    answers.find(|(name, _)| *name == algorithm.name()).map(|(_, answer)| answer.trim())
}

/// Lengths around the blocks of the algorithms.
const LENGTHS: [usize; 5] = [0, 1, 64, 200, MAX_LENGTH];

const MAX_LENGTH: usize = 512;

/// Enough to fill the lanes of every kernel.
const INPUTS: usize = kernels::MAX_LANES;

/// Distance between the starts of the inputs in bytes.
const SHIFT: usize = 31;

/// The bytes of which the inputs are parts. Built at compile time, because the test runs at every
/// start.
static PATTERN: [u8; SHIFT * INPUTS + MAX_LENGTH] = {
    let mut pattern = [0; SHIFT * INPUTS + MAX_LENGTH];
    let mut i = 0;
    while i < pattern.len() {
        pattern[i] = (i % 251) as u8;
        i += 1;
    }
    pattern
};

#[cfg(test)]
mod tests {
    use super::super::kernels::{Choice, Policy};
    use super::super::state::{Inner, entries};
    use super::super::{blake2b, sha256};
    use super::*;

    #[test]
    fn every_algorithm_has_an_answer() {
        for &algorithm in Algorithm::ALL {
            assert!(known_answer(algorithm).is_some(), "{algorithm}");
        }
        assert_eq!(include_str!("known_answers.txt").lines().count(), Algorithm::ALL.len());
    }

    #[test]
    fn a_wrong_bit_in_any_lane_and_length_fails() {
        for &algorithm in Algorithm::ALL {
            let size = algorithm.digest_size();
            let start = State::only(algorithm, entries(algorithm)[0].name);
            for (nth, lane) in (0..LENGTHS.len()).flat_map(|n| (0..INPUTS).map(move |l| (n, l))) {
                let mut calls = 0;
                let broken = answer(&start, |digests| {
                    if let Some(byte) = digests.get_mut(lane * size).filter(|_| calls == nth) {
                        *byte ^= 1;
                    }
                    calls += 1;
                });
                let passes = known_answer(algorithm) == Some(broken.as_str());
                assert_eq!(passes, algorithm == Algorithm::Null, "{algorithm}, lane {lane}");
            }
        }
    }

    #[test]
    fn a_wrong_bit_of_the_start_fails() {
        let choice = || Choice::detect(|_| true, Policy::Guess);
        let broken = [
            Inner::Sha256(sha256::Sha256::new_256(choice()).flip_bit(7, 31)),
            Inner::Sha224(sha256::Sha256::new_224(choice()).flip_bit(0, 0)),
            Inner::Blake2b256(blake2b::Blake2b::new::<33>(Choice::detect(|_| true, Policy::Guess))),
            Inner::Blake2b512(blake2b::Blake2b::new::<63>(Choice::detect(|_| true, Policy::Guess))),
        ];
        for broken in broken {
            let broken = State(broken);
            assert!(!passes(&broken), "{}", broken.algorithm());
        }
    }

    #[test]
    fn extra_bytes_before_the_start_fail() {
        for &algorithm in &Algorithm::ALL[1..] {
            for entry in entries(algorithm).iter().filter(|entry| entry.feature.is_none()) {
                let start = State::only(algorithm, entry.name);
                assert!(passes(&start), "{algorithm}");
                for bytes in [1, 32, 128] {
                    let mut broken = start.clone();
                    broken.update(&vec![1; bytes]);
                    assert!(!passes(&broken), "{algorithm} after {bytes} bytes");
                }
            }
        }
    }
}
