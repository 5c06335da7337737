//! Differential tests for every kernel. It must give the same digests as the portable
//! implementation, which must give the same as another crate.

use super::kernels::Entry;
use super::state::{State, entries};
use crate::Algorithm;

/// Checks that the kernel `variant` computes the same as the portable one, for many lengths,
/// numbers, alignments and prefixes of its inputs.
pub(super) fn equals_soft(algorithm: Algorithm, variant: &str) {
    let entry = entries(algorithm).iter().find(|entry| entry.name == variant).unwrap();
    if !can_run(algorithm, entry) {
        return;
    }
    let Shape { block, pool } = shape(algorithm);
    for taken in starts(block) {
        let start = |variant| {
            let mut start = State::only(algorithm, variant);
            start.update(&pool[..taken]);
            start
        };
        let (soft, kernel) = (start("soft"), start(variant));
        for length in lengths(block, entry.lanes) {
            finishes_many(&soft, &kernel, entry, &pool, length);
        }
    }
    finishes_many(
        &State::only(algorithm, "soft"),
        &State::only(algorithm, variant),
        entry,
        &pool,
        LARGE,
    );
    for length in lengths(block, entry.lanes).chain([LARGE]) {
        updates_many(algorithm, entry, &pool, length);
    }
}

/// Checks that the portable implementation computes the same as `third_party`.
pub(super) fn soft_equals(algorithm: Algorithm, third_party: impl Fn(&[u8]) -> Vec<u8>) {
    let Shape { block, pool } = shape(algorithm);
    let start = State::only(algorithm, "soft");
    for length in (0..=4 * block + 1).chain([LARGE - 1, LARGE, LARGE + 1]) {
        let input = &pool[length % 3..][..length];
        let expected = third_party(input);
        for taken in starts(block).filter(|taken| *taken <= length) {
            let (head, rest) = input.split_at(taken);
            let mut start = start.clone();
            start.update(head);
            let mut digest = vec![0; algorithm.digest_size()];
            start.finish_many(&[rest], &mut digest);
            assert_eq!(digest, expected, "{algorithm} of {length} bytes after {taken}");
        }

        let mut state = start.clone();
        for piece in input.chunks(length / 5 + 1) {
            state.update(piece);
        }
        assert_eq!(state.finalize().as_bytes(), expected, "{algorithm} of {length} bytes, updated");
    }
}

/// Compares `finish_many` from both states, for one input up to more than the kernel has lanes.
fn finishes_many(soft: &State, kernel: &State, entry: &Entry, pool: &[u8], length: usize) {
    let size = soft.algorithm().digest_size();
    let inputs = inputs(pool, length, entry.lanes + 1);
    let mut expected = vec![0; inputs.len() * size];
    soft.finish_many(&inputs, &mut expected);
    for count in 1..=inputs.len() {
        let mut digests = vec![GUARD; size + count * size + size];
        let (before, rest) = digests.split_at_mut(size);
        let (digests, after) = rest.split_at_mut(count * size);
        kernel.finish_many(&inputs[..count], digests);
        assert_eq!(
            digests,
            &expected[..count * size],
            "{}-{}: {count} inputs of {length} bytes",
            soft.algorithm(),
            entry.name
        );
        assert!(before.iter().chain(&*after).all(|byte| *byte == GUARD), "wrote elsewhere");
    }
}

/// Compares `update_many` of hashes that have taken different numbers of bytes before.
fn updates_many(algorithm: Algorithm, entry: &Entry, pool: &[u8], length: usize) {
    let block = shape(algorithm).block;
    let inputs = inputs(pool, length, entry.lanes + 1);
    let counts = 1..=inputs.len();
    for count in counts.filter(|count| length < LARGE || *count >= entry.lanes) {
        // With equal and with different numbers of bytes, to fill the buffers of all, some or none.
        for step in [0, 1, block / 2 + 3] {
            let states = |variant| {
                let states = (0..count).map(|lane| {
                    let mut state = State::only(algorithm, variant);
                    state.update(&pool[..(step * lane) % (2 * block + 1)]);
                    state
                });
                states.collect::<Vec<_>>()
            };
            let (mut soft, mut kernel) = (states("soft"), states(entry.name));
            for (state, input) in soft.iter_mut().zip(&inputs) {
                state.update(input);
            }
            State::update_many(&mut kernel, &inputs[..count]);
            for (lane, (soft, kernel)) in soft.into_iter().zip(kernel).enumerate() {
                assert_eq!(
                    kernel.finalize(),
                    soft.finalize(),
                    "{algorithm}-{}: lane {lane} of {count}, {length} bytes",
                    entry.name
                );
            }
        }
    }
}

/// Inputs that differ from each other and start at every alignment.
fn inputs(pool: &[u8], length: usize, count: usize) -> Vec<&[u8]> {
    (0..count).map(|index| &pool[index * 67 + 1..][..length]).collect()
}

/// Numbers of bytes that a hash has taken before.
fn starts(block: usize) -> impl Iterator<Item = usize> {
    [0, 1, block - 1, block, block + 1].into_iter()
}

fn lengths(block: usize, lanes: usize) -> impl Iterator<Item = usize> {
    let around = |length: usize| length - 1..=length + 1;
    let several = [block, 2 * block, lanes * block].map(around);
    (0..=8).chain(several.into_iter().flatten())
}

/// Returns whether this CPU can run the kernel. Reports a kernel that it cannot run, and panics if
/// `BLKHASH_TEST_REQUIRE`, a list of features, demands it.
fn can_run(algorithm: Algorithm, entry: &Entry) -> bool {
    let missing = entry.feature.filter(|it| !it.is_present() || it.is_disabled());
    let Some(feature) = missing else { return true };
    let required = std::env::var("BLKHASH_TEST_REQUIRE").unwrap_or_default();
    let required = required.split(',').any(|name| name.trim() == feature.name());
    assert!(!required, "{algorithm}-{} was not tested: no {feature}", entry.name);
    eprintln!("{algorithm}-{} was not tested: no {feature}", entry.name);
    false
}

/// Block size and input for the tests of an algorithm.
struct Shape {
    /// Bytes that the compression function takes at a time.
    block: usize,
    /// Bytes that do not repeat, enough for all inputs.
    pool: Vec<u8>,
}

fn shape(algorithm: Algorithm) -> Shape {
    let block = match algorithm {
        Algorithm::Xxh64 => 32,
        Algorithm::Sha224 | Algorithm::Sha256 => 64,
        Algorithm::Sha384
        | Algorithm::Sha512
        | Algorithm::Sha512_224
        | Algorithm::Sha512_256
        | Algorithm::Blake2b256
        | Algorithm::Blake2b512 => 128,
        other => unreachable!("{other} has no kernels"),
    };
    let pool = (0..LARGE + 4096).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 16) as u8).collect();
    Shape { block, pool }
}

/// Length of the longest input.
const LARGE: usize = 100 << 10;

/// Value of the bytes around the digests.
const GUARD: u8 = 0xa5;
