//! A checksum depends only on the content and the parameters.

#[path = "common/definition.rs"]
mod definition;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use blkhash::engine::{Accumulator, Batch, Ordered, Stopped};
use blkhash::{
    Algorithm, BlockDigests, BlockSize, Construction, Digester, Hasher, Leaf, Parameters, Run,
    Salt, Sink, SinkError,
};
use proptest::prelude::*;

use self::definition::definition;

/// A part of the content. If `counted`, its bytes are zeros that are passed as a count.
#[derive(Clone, Debug)]
struct Part {
    bytes: Vec<u8>,
    counted: bool,
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let length = prop_oneof![0..200usize, 400..1200usize, Just(4096), 20_000..70_000usize];
    let part = (any::<Option<u8>>(), length).prop_map(|(fill, length)| match fill {
        Some(fill) => Part { bytes: vec![fill; length], counted: fill == 0 },
        None => Part { bytes: vec![0; length], counted: true },
    });
    prop::collection::vec(part, 0..12)
}

fn parameters() -> impl Strategy<Value = Parameters> {
    let algorithm = prop::sample::select(vec![
        Algorithm::Null,
        Algorithm::Crc32c,
        Algorithm::Xxh3,
        Algorithm::Sha1,
        Algorithm::Sha256,
        Algorithm::Sha512,
        Algorithm::Blake2b256,
        Algorithm::Blake3,
    ]);
    let construction = prop::sample::select(vec![
        "streams:1",
        "streams:3",
        "streams:4",
        "streams:128",
        "flat",
        "concat",
        "linear",
        "fs-verity",
        "dm-verity",
    ]);
    let block_size = prop::sample::select(vec![512_u64, 1024, 4096, 65_536]);
    let salt = prop::sample::select(vec![0_usize, 1, 8, 32, 64, 101, 256]);
    (algorithm, construction, block_size, salt).prop_map(
        |(algorithm, construction, block_size, salt)| {
            let construction: Construction = construction.parse().unwrap();
            let algorithm =
                if construction.accepts(algorithm) { algorithm } else { Algorithm::Sha256 };
            let salt: Vec<_> = (0..salt.min(construction.max_salt())).map(|it| it as u8).collect();
            let parameters = Parameters::new(algorithm, construction, size(block_size)).unwrap();
            parameters.with_salt(Salt::try_from(&salt[..]).unwrap()).unwrap()
        },
    )
}

fn leaf(parameters: &Parameters) -> Leaf {
    parameters.leaf(&Digester::new(parameters.algorithm()))
}

/// A buffer that counts drops.
struct Lent {
    bytes: Vec<u8>,
    dropped: Arc<AtomicUsize>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

fn size(bytes: u64) -> BlockSize {
    bytes.try_into().unwrap()
}

proptest! {
    #[test]
    fn any_split_gives_the_same_value(
        parameters in parameters(),
        parts in parts(),
        threads in 1..6usize,
        cut in 1..100_000usize,
    ) {
        let content = parts.iter().flat_map(|part| part.bytes.clone()).collect::<Vec<_>>();
        let expected = definition(&parameters, &content);

        let mut by_parts = Hasher::new(parameters, threads);
        let mut serial = Accumulator::new(&parameters, threads);
        for part in &parts {
            if part.counted {
                by_parts.zero(part.bytes.len() as u64);
                serial.zero(part.bytes.len() as u64);
            } else {
                by_parts.update(&part.bytes);
                serial.update(&part.bytes);
            }
        }
        prop_assert_eq!(by_parts.finalize(), expected);
        prop_assert_eq!(serial.finalize(), expected);

        let mut by_bytes = Hasher::new(parameters, threads);
        let mut taken = 0;
        for (index, piece) in content.chunks(cut).enumerate() {
            by_bytes.update(piece);
            taken += piece.len();
            if index < 4 {
                let copy = by_bytes.clone().finalize();
                prop_assert_eq!(copy, definition(&parameters, &content[..taken]));
            }
            if index % 3 == 1 {
                by_bytes = by_bytes.clone();
            }
        }
        prop_assert_eq!(by_bytes.finalize(), expected);

        let mut owned = Hasher::new(parameters, threads);
        let dropped = Arc::new(AtomicUsize::new(0));
        for (index, piece) in content.chunks(cut).enumerate() {
            match index % 5 {
                3 => owned.update_in_place(piece),
                4 => owned.update(piece),
                _ => {
                    owned.update_owned(Lent { bytes: piece.to_vec(), dropped: Arc::clone(&dropped) });
                    continue;
                }
            }
            dropped.fetch_add(1, Ordering::Relaxed);
        }
        prop_assert_eq!(owned.length(), content.len() as u64);
        prop_assert_eq!(owned.finalize(), expected);
        prop_assert_eq!(dropped.load(Ordering::Relaxed), content.chunks(cut).len());

        let mut by_reader = Hasher::new(parameters, threads);
        prop_assert_eq!(by_reader.update_reader(&*content).unwrap(), content.len() as u64);
        prop_assert_eq!(by_reader.finalize(), expected);
    }

    #[test]
    #[ignore = "slow"]
    fn zero_runs_fold_like_their_blocks(
        construction in
            prop::sample::select(vec!["streams:2", "streams:5", "flat", "fs-verity", "dm-verity"]),
        before in 0..9usize,
        blocks in 0..80_000u64,
        tail in 0..512u64,
        threads in 1..5usize,
    ) {
        let parameters =
            Parameters::new(Algorithm::Sha256, construction.parse().unwrap(), size(512)).unwrap();
        let mut hasher = Hasher::new(parameters, threads);
        let mut data = vec![7; before * 512];
        hasher.update(&data);
        hasher.zero(blocks * 512 + tail);
        hasher.update(b"end");
        data.resize(data.len() + (blocks * 512 + tail) as usize, 0);
        data.extend_from_slice(b"end");
        prop_assert_eq!(hasher.finalize(), definition(&parameters, &data));
    }
}

#[test]
fn a_long_block_is_hashed_in_pieces() {
    let parameters =
        Parameters::new(Algorithm::Sha256, "streams:4".parse().unwrap(), size(8 << 20)).unwrap();
    let mut content = vec![0; 20 << 20];
    content[(8 << 20) + 5_000_000] = 1;
    content[(16 << 20) + 1] = 2;
    let mut hasher = Hasher::new(parameters, 3);
    hasher.zero(3 << 20);
    hasher.update(&content[3 << 20..]);
    assert_eq!(hasher.finalize(), definition(&parameters, &content));
}

#[test]
fn a_hundred_tebibytes_of_zeros_are_not_hashed() {
    let parameters =
        Parameters::new(Algorithm::Crc32c, "streams:4".parse().unwrap(), size(64 << 20)).unwrap();
    let mut hasher = Hasher::new(parameters, 2);
    hasher.zero(100 << 40);
    assert_eq!(hasher.length(), 100 << 40);
    let mut blocks = Accumulator::new(&parameters, 1);
    for _ in 0..100 << 14 {
        blocks.zero(64 << 20);
    }
    assert_eq!(hasher.finalize(), blocks.finalize());
}

#[test]
fn chunks_come_in_any_order() {
    let parameters = Parameters::new(Algorithm::Sha256, Construction::Flat, size(512)).unwrap();
    let content: Vec<u8> = (0..512 * 1000).map(|i| (i / 700 % 251) as u8).collect();
    let leaf = leaf(&parameters);
    let ordered = Ordered::new((Accumulator::new(&parameters, 1), ZeroBlocks::default()), 3);
    let next = Mutex::new(content.chunks(512 * 7).enumerate());
    thread::scope(|scope| {
        for worker in 0..4 {
            let (ordered, leaf, next) = (&ordered, &leaf, &next);
            scope.spawn(move || {
                loop {
                    let Some((number, chunk)) = next.lock().unwrap().next() else { break };
                    if number % 5 == worker {
                        thread::yield_now();
                    }
                    let mut digests = ordered.empty();
                    let mut batch = Batch::new(leaf, &mut digests);
                    batch.update(chunk);
                    batch.finish();
                    if number % 11 == 3 {
                        let mut turn = ordered.turn(number as u64).unwrap();
                        turn.take(&digests).unwrap();
                        turn.end().unwrap();
                        continue;
                    }
                    ordered.hand_in(number as u64, digests).unwrap();
                }
            });
        }
    });
    let (accumulator, zeros) = ordered.finish().unwrap();
    assert_eq!(accumulator.length(), content.len() as u64);
    assert_eq!(accumulator.finalize(), definition(&parameters, &content));
    assert_eq!(zeros.blocks, 1000);
    let expected = content.chunks(512).filter(|block| block.iter().all(|&byte| byte == 0));
    assert_eq!(zeros.zeros, expected.count() as u64);
    assert!(matches!(ordered.finish(), Err(Stopped::Abandoned)), "a sink is taken once");
}

/// Counts blocks and zero blocks. Fails after more than `most` blocks.
struct ZeroBlocks {
    blocks: u64,
    zeros: u64,
    most: u64,
}

impl Default for ZeroBlocks {
    fn default() -> Self {
        Self { blocks: 0, zeros: 0, most: u64::MAX }
    }
}

impl Sink<BlockDigests> for ZeroBlocks {
    fn take(&mut self, digests: &BlockDigests) -> Result<(), SinkError> {
        for run in digests.runs() {
            match run {
                Run::Digests { count, .. } => self.blocks += count,
                Run::Zeros { count } => {
                    self.blocks += count;
                    self.zeros += count;
                }
            }
        }
        if self.blocks > self.most { Err("enough".into()) } else { Ok(()) }
    }
}

#[test]
fn blocks_without_digests_are_counted() {
    let parameters = Parameters::new(Algorithm::Null, Construction::Flat, size(512)).unwrap();
    let leaf = leaf(&parameters);
    let mut digests = BlockDigests::default();
    let mut batch = Batch::new(&leaf, &mut digests);
    batch.update(&[1; 512 * 100 + 5]);
    batch.zero_blocks(7);
    batch.finish();
    let runs: Vec<_> = digests.runs().collect();
    assert_eq!(runs, [Run::Digests { count: 101, digests: &[] }, Run::Zeros { count: 7 }]);
}

#[test]
fn a_failing_sink_abandons_the_run() {
    let leaf = leaf(&Parameters::default());
    let full = || ZeroBlocks { most: 2, ..ZeroBlocks::default() };
    let part = || {
        let mut digests = BlockDigests::default();
        digests.push_zero_blocks(1, leaf.block_size());
        digests
    };
    let ordered = Ordered::new((ZeroBlocks::default(), full()), 8);
    for number in [0, 3, 1] {
        ordered.hand_in(number, part()).unwrap();
    }
    // The third block is one too many for the sink.
    let stopped = ordered.hand_in(2, part()).unwrap_err();
    assert!(matches!(stopped, Stopped::Sink { number: 2, .. }), "{stopped:?}");
    assert_eq!(stopped.to_string(), "enough");
    assert!(matches!(ordered.hand_in(4, part()), Err(Stopped::Abandoned)));
    assert!(matches!(ordered.finish(), Err(Stopped::Abandoned)));
}

#[test]
fn abandoning_wakes_waiting_threads() {
    let ordered = Ordered::new(Accumulator::new(&Parameters::default(), 1), 2);
    thread::scope(|scope| {
        let ahead = scope.spawn(|| ordered.hand_in(5, ordered.empty()));
        let turn = scope.spawn(|| ordered.turn(1).map(drop));
        ordered.abandon();
        assert!(matches!(ahead.join().unwrap(), Err(Stopped::Abandoned)));
        assert!(matches!(turn.join().unwrap(), Err(Stopped::Abandoned)));
    });
    assert!(matches!(ordered.finish(), Err(Stopped::Abandoned)));
}

#[test]
fn a_turn_without_an_end_abandons_everything() {
    let ordered = Ordered::new(Accumulator::new(&Parameters::default(), 1), 2);
    drop(ordered.turn(0).unwrap());
    assert!(matches!(ordered.hand_in(1, ordered.empty()), Err(Stopped::Abandoned)));
}

#[test]
fn finish_fails_if_a_chunk_is_missing() {
    let ordered = Ordered::new(Accumulator::new(&Parameters::default(), 1), 4);
    ordered.hand_in(0, ordered.empty()).unwrap();
    ordered.hand_in(2, ordered.empty()).unwrap();
    assert!(matches!(ordered.finish(), Err(Stopped::Abandoned)));
}

#[test]
fn many_batches_are_brought_into_order() {
    let parameters =
        Parameters::new(Algorithm::Blake3, "streams:4".parse().unwrap(), size(4096)).unwrap();
    let mut content: Vec<u8> = (0..11_000_000).map(|i| (i / 700 % 251) as u8).collect();
    content[3_000_000..6_000_000].fill(0);
    let expected = definition(&parameters, &content);
    for threads in [1, 2, 5] {
        for cut in [20_000, 100_000, 1 << 18, 3 << 20] {
            let mut hasher = Hasher::new(parameters, threads);
            for (index, piece) in content.chunks(cut).enumerate() {
                if piece.iter().all(|&byte| byte == 0) {
                    hasher.zero(piece.len() as u64);
                } else {
                    match index / 4 % 3 {
                        0 => hasher.update(piece),
                        1 => hasher.update_owned(piece.to_vec()),
                        _ => hasher.update_in_place(piece),
                    }
                }
            }
            assert_eq!(hasher.finalize(), expected, "{threads} threads, {cut} bytes at a time");
        }
    }
}

#[test]
fn buffers_are_dropped_before_later_ones_arrive() {
    for construction in ["streams:4", "linear"] {
        let construction = construction.parse().unwrap();
        let parameters = Parameters::new(Algorithm::Sha256, construction, size(65_536)).unwrap();
        for threads in [1, 2] {
            let dropped = Arc::new(AtomicUsize::new(0));
            let mut hasher = Hasher::new(parameters, threads);
            hasher.update(&[1; 1000]);
            for count in 1..=3 {
                let bytes = vec![count as u8; 100_000];
                hasher.update_owned(Lent { bytes, dropped: Arc::clone(&dropped) });
                while dropped.load(Ordering::Relaxed) < count {
                    thread::yield_now();
                }
            }
            let content = [vec![1; 101_000], vec![2; 100_000], vec![3; 100_000]].concat();
            assert_eq!(hasher.finalize(), definition(&parameters, &content));
        }
    }
}

/// A buffer that panics when it is read for the second time.
struct Broken(AtomicUsize);

impl AsRef<[u8]> for Broken {
    fn as_ref(&self) -> &[u8] {
        // The first call is the caller's, for the length. The second call is the hashing thread's.
        assert_eq!(self.0.fetch_add(1, Ordering::Relaxed), 0, "broken");
        &[1; 2 << 20]
    }
}

#[test]
fn a_panic_of_a_thread_reaches_the_caller() {
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let mut hasher = Hasher::new(Parameters::default(), 3);
        hasher.update_owned(Broken(AtomicUsize::new(0)));
        for _ in 0..100 {
            hasher.update_owned(vec![1; 1 << 20]);
        }
        hasher.finalize()
    }));
    assert!(caught.is_err());
}

#[test]
fn dropping_a_hasher_drops_waiting_buffers() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let mut hasher = Hasher::new(Parameters::default(), 2);
    for _ in 0..50 {
        hasher.update_owned(Lent { bytes: vec![1; 1 << 20], dropped: Arc::clone(&dropped) });
    }
    drop(hasher);
    assert_eq!(dropped.load(Ordering::Relaxed), 50);
}

#[test]
fn dropping_a_hasher_ends_its_threads() {
    let mut hasher = Hasher::new(Parameters::default(), 4);
    hasher.update(&vec![1; 8 << 20]);
    drop(hasher);
}

#[test]
fn keyed_digests_are_refused() {
    let refusal = Parameters::new(Algorithm::SipHash, Construction::Flat, size(4096)).unwrap_err();
    assert!(refusal.to_string().contains("secret key"));
}
