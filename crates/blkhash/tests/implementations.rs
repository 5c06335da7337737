//! Every implementation that runs on this CPU computes the same digests.

use blkhash::{Algorithm, Digester, Status, implementations};
use proptest::prelude::*;

/// Returns all implementations of an algorithm that are usable here, the portable one first.
fn usable(algorithm: Algorithm) -> Vec<(String, Digester)> {
    let usable = implementations(algorithm).iter().filter(|it| it.status == Status::Ready);
    usable
        .map(|it| (it.name(), Digester::with_implementation(algorithm, &it.name()).unwrap()))
        .chain([(format!("{algorithm}, as chosen"), Digester::new(algorithm))])
        .collect()
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 20_000)
}

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![0..300_usize, (0..40_usize).prop_map(|blocks| blocks * 64), 300..9000_usize]
}

/// Returns `count` inputs of `length` bytes that overlap and start anywhere.
fn inputs(content: &[u8], count: usize, length: usize, step: usize) -> Vec<&[u8]> {
    (0..count).map(|index| &content[index * step..][..length]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn many_inputs_equal_one_by_one(
        content in content(),
        taken in length(),
        length in length(),
        count in 1..40_usize,
        step in 1..250_usize,
    ) {
        let inputs = inputs(&content, count, length, step);
        for &algorithm in Algorithm::ALL {
            let size = algorithm.digest_size();
            let expected: Vec<u8> = inputs
                .iter()
                .flat_map(|input| {
                    let whole = [&content[..taken], input].concat();
                    usable(algorithm)[0].1.digest(&whole).as_bytes().to_vec()
                })
                .collect();
            for (name, digester) in usable(algorithm) {
                let mut start = digester.start();
                start.update(&content[..taken]);
                let mut digests = vec![0; count * size];
                digester.finish_many(&start, &inputs, &mut digests);
                prop_assert_eq!(&digests, &expected, "{}", name);
            }
        }
    }

    #[test]
    fn any_split_gives_the_same_digest(
        content in content(),
        cuts in prop::collection::vec(0..2000_usize, 0..12),
        taken in prop::collection::vec(0..600_usize, 1..20),
    ) {
        for &algorithm in Algorithm::ALL {
            for (name, digester) in usable(algorithm) {
                // Hashes that have taken different numbers of bytes are updated side by side.
                let mut states: Vec<_> = taken.iter().map(|_| digester.start()).collect();
                for (state, taken) in states.iter_mut().zip(&taken) {
                    state.update(&content[..*taken]);
                }
                let mut offset = 600;
                for cut in &cuts {
                    let piece = &content[offset.min(18_000)..][..*cut];
                    digester.update_many(&mut states, &vec![piece; taken.len()]);
                    offset += cut;
                }
                for (state, taken) in states.into_iter().zip(&taken) {
                    let mut whole = content[..*taken].to_vec();
                    let mut offset = 600;
                    for cut in &cuts {
                        whole.extend_from_slice(&content[offset.min(18_000)..][..*cut]);
                        offset += cut;
                    }
                    prop_assert_eq!(state.finalize(), usable(algorithm)[0].1.digest(&whole), "{}", name);
                }
            }
        }
    }
}
