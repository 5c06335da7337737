//! All implementations of an algorithm that this CPU can run must give the same digests, from any
//! state and for any number and length of inputs.

#![no_main]

use blkhash::{Algorithm, Digester, Status, implementations};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, Vec<u8>, u8, Vec<u8>)| {
    let (algorithm, head, count, data) = input;
    let algorithm = Algorithm::ALL[usize::from(algorithm) % Algorithm::ALL.len()];
    let count = usize::from(count % 40) + 1;
    let length = data.len() / count;
    let inputs: Vec<&[u8]> = (0..count).map(|i| &data[i * length..][..length]).collect();
    let mut expected: Option<Vec<u8>> = None;
    let ready = implementations(algorithm).iter().filter(|known| known.status == Status::Ready);
    for known in ready {
        let digester =
            Digester::with_implementation(algorithm, &known.name()).expect("it is ready");
        let mut start = digester.start();
        start.update(&head);
        let mut digests = vec![0; count * algorithm.digest_size()];
        digester.finish_many(&start, &inputs, &mut digests);

        let mut states = vec![start; count];
        digester.update_many(&mut states, &inputs);
        for (state, digest) in
            states.into_iter().zip(digests.chunks(algorithm.digest_size().max(1)))
        {
            assert_eq!(state.finalize().as_bytes(), digest, "{}, resumed", known.name());
        }
        assert_eq!(expected.get_or_insert_with(|| digests.clone()), &digests, "{}", known.name());
    }
});
