//! The golden vectors of `test-vectors/`, which `reference/blkhash.py` computes.

use std::ops::RangeBounds;

use blkhash::engine::Accumulator;
use blkhash::{Algorithm, Construction, Digester, Hasher, Parameters};
use serde::Deserialize;

/// Larger images are long lists of digests of zeros.
const LARGE: u64 = 1 << 32;

#[derive(Deserialize)]
struct Digests {
    count: usize,
    vectors: Vec<DigestVector>,
    published: Vec<DigestVector>,
}

#[derive(Deserialize)]
struct DigestVector {
    digest: String,
    pattern: String,
    text: Option<String>,
    length: usize,
    hex: String,
}

#[derive(Deserialize)]
struct Constructions {
    count: usize,
    vectors: Vec<ConstructionVector>,
}

#[derive(Deserialize)]
struct ConstructionVector {
    image: String,
    size: u64,
    digest: String,
    construction: String,
    block_size: u64,
    #[serde(default)]
    salt: String,
    hex: String,
}

#[test]
fn digests() {
    let file: Digests = read("digests.json");
    let mut seen = std::collections::HashSet::new();
    for vector in file.vectors.iter().chain(&file.published) {
        let algorithm: Algorithm = vector.digest.parse().unwrap();
        let digester = Digester::new(algorithm);
        let input = pattern(vector);
        let name = format!("{} of {} bytes of {}", vector.digest, vector.length, vector.pattern);
        assert_eq!(digester.digest(&input).to_string(), vector.hex, "{name}");

        // The same in two pieces, from an unaligned address, and side by side with others.
        let mut shifted = vec![0];
        shifted.extend_from_slice(&input);
        let (head, tail) = shifted[1..].split_at(input.len() / 3);
        let mut state = digester.start();
        state.update(head);
        let mut digests = vec![0; 9 * algorithm.digest_size()];
        digester.finish_many(&state, &[tail; 9], &mut digests);
        assert_eq!(hex(&digests), vector.hex.repeat(9), "{name}, nine at a time");
        let mut states = vec![state; 5];
        digester.update_many(&mut states, &[tail; 5]);
        for state in states {
            assert_eq!(state.finalize().to_string(), vector.hex, "{name}, resumed");
        }
        seen.insert(algorithm);
    }
    assert_eq!(file.vectors.len() + file.published.len(), file.count);
    assert_eq!(seen.len(), Algorithm::ALL.len(), "an algorithm has no vector");
}

#[test]
fn constructions() {
    compare("constructions.json", ..LARGE);
}

#[test]
#[ignore = "slow"]
fn constructions_of_large_disks() {
    compare("constructions.json", LARGE..);
}

#[test]
fn verity() {
    compare("verity.json", ..);
}

/// Compares the vectors of images whose size is in the range.
fn compare(name: &str, sizes: impl RangeBounds<u64>) {
    let file: Constructions = read(name);
    // Emulators of other CPUs need minutes for all of them.
    let step = std::env::var("BLKHASH_TEST_EVERY").map_or(1, |step| step.parse().unwrap());
    let vectors = file.vectors.iter().filter(|vector| sizes.contains(&vector.size));
    for vector in vectors.step_by(step) {
        let construction: Construction = vector.construction.parse().unwrap();
        let block_size = if vector.block_size == 0 { 4096 } else { vector.block_size };
        let parameters = Parameters::new(
            vector.digest.parse().unwrap(),
            construction,
            block_size.try_into().unwrap(),
        )
        .and_then(|parameters| parameters.with_salt(vector.salt.parse()?))
        .unwrap();
        for threads in [1, 3] {
            let mut hasher = Hasher::new(parameters, threads);
            for_each_run(&vector.image, |run| match run {
                Run::Zeros(length) => hasher.zero(length),
                Run::Data(data) => hasher.update(&data),
            });
            assert_eq!(hasher.length(), vector.size);
            assert_eq!(hasher.finalize().to_string(), vector.hex, "{}", describe(vector, threads));
        }
        let mut accumulator = Accumulator::new(&parameters, 2);
        for_each_run(&vector.image, |run| match run {
            Run::Zeros(length) => accumulator.zero(length),
            Run::Data(data) => accumulator.update(&data),
        });
        assert_eq!(accumulator.finalize().to_string(), vector.hex, "{}", describe(vector, 0));
    }
    assert_eq!(file.vectors.len(), file.count);
}

fn describe(vector: &ConstructionVector, threads: usize) -> String {
    format!(
        "'{}' with {} {} {} {}, {threads} threads",
        vector.image, vector.digest, vector.construction, vector.block_size, vector.salt
    )
}

fn read<T: for<'de> Deserialize<'de>>(name: &str) -> T {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../test-vectors/").to_owned() + name;
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn pattern(vector: &DigestVector) -> Vec<u8> {
    match vector.pattern.as_str() {
        "counter251" => (0..vector.length).map(|i| (i % 251) as u8).collect(),
        "zeros" => vec![0; vector.length],
        "text" => {
            let text = vector.text.as_deref().unwrap().as_bytes();
            text.iter().copied().cycle().take(vector.length).collect()
        }
        other => panic!("unknown pattern {other}"),
    }
}

enum Run {
    Zeros(u64),
    Data(Vec<u8>),
}

/// Reads an image spec: `"32k:A 64k:- 32k:0"`.
fn for_each_run(spec: &str, mut take: impl FnMut(Run)) {
    let mut offset = 0;
    for item in spec.split_whitespace() {
        let (length, kind) = item.split_once(':').unwrap();
        let digits = length.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let shift = match &length[digits.len()..] {
            "" => 0,
            "k" => 10,
            "m" => 20,
            "g" => 30,
            "t" => 40,
            other => panic!("unknown suffix {other}"),
        };
        let length = digits.parse::<u64>().unwrap() << shift;
        take(match kind.as_bytes() {
            b"-" | b"0" => Run::Zeros(length),
            b"#" => Run::Data((offset..offset + length).map(|i| (i % 251) as u8).collect()),
            &[letter] if letter.is_ascii_uppercase() => Run::Data(vec![letter; length as usize]),
            _ => panic!("unknown kind {kind}"),
        });
        offset += length;
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
