//! The pipeline returns the value of the definition for any extents, threads and sizes, and returns
//! no value if the image cannot be read.

#[path = "../../blkhash/tests/common/definition.rs"]
mod definition;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::panic::{catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;

use blkhash::engine::Accumulator;
use blkhash::{Algorithm, BlockDigests, BlockSize, Parameters, Run, Sink, SinkError};
use blkimage::{
    Error as ImageError, ErrorKind, Extent, ExtentKind, Image, Lent, OpenOptions, Result, Source,
};
use blksum::{Error, Pass, Progress, Tuning, block_digests, checksum, checksums};
use proptest::prelude::*;

use self::definition::definition;

/// Content in memory with arbitrary extents and faults.
#[derive(Clone, Debug, Default)]
struct Memory {
    content: Vec<u8>,
    /// End of each extent, and whether it is reported as zeros.
    extents: Vec<(u64, bool)>,
    granularity: u64,
    queue_depth: usize,
    /// Reading this byte fails.
    bad_byte: Option<u64>,
    /// Queries at or after this offset return this extent.
    lie: Option<(u64, Extent)>,
    changed: bool,
}

impl Memory {
    /// Creates content from runs. A run is a length, a byte and whether zeros are reported as
    /// zeros.
    fn new(runs: &[(usize, u8, bool)], granularity: u64) -> Self {
        let mut memory = Self { granularity, ..Self::default() };
        for &(length, fill, known) in runs.iter().filter(|run| run.0 > 0) {
            memory.content.resize(memory.content.len() + length, fill);
            memory.extents.push((memory.content.len() as u64, fill == 0 && known));
        }
        memory
    }
}

impl Source for Memory {
    fn size(&self) -> u64 {
        self.content.len() as u64
    }

    fn extent(&self, offset: u64, limit: u64) -> Result<Extent> {
        assert!(offset < self.size() && limit > 0, "asked for what the contract excludes");
        if let Some((at, extent)) = self.lie
            && offset >= at
        {
            return Ok(extent);
        }
        let &(end, zero) = self.extents.iter().find(|(end, _)| offset < *end).unwrap();
        let kind = if zero { ExtentKind::Zero } else { ExtentKind::Data };
        Ok(Extent { offset, length: limit.min(end - offset), kind })
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        let range = offset as usize..offset as usize + buffer.len();
        if self.bad_byte.is_some_and(|byte| range.contains(&(byte as usize))) {
            return Err(ImageError::new(ErrorKind::Io, "memory", "bad sector").at(offset));
        }
        buffer.copy_from_slice(&self.content[range]);
        Ok(())
    }

    fn granularity(&self) -> u64 {
        self.granularity
    }

    fn queue_depth(&self) -> usize {
        self.queue_depth
    }

    fn check_unchanged(&self) -> Result<()> {
        match self.changed {
            true => Err(ImageError::new(ErrorKind::Changed, "memory", "changed")),
            false => Ok(()),
        }
    }
}

fn tuning(threads: usize, read_size: usize, queue_depth: usize) -> Tuning {
    Tuning::default().with_threads(threads).with_read_size(read_size).with_queue_depth(queue_depth)
}

fn parameters(algorithm: Algorithm, construction: &str, block_size: u64) -> Parameters {
    Parameters::new(algorithm, construction.parse().unwrap(), block_size.try_into().unwrap())
        .unwrap()
}

/// Runs of any length. Some are zeros, which are reported as zeros or as data.
fn runs() -> impl Strategy<Value = Vec<(usize, u8, bool)>> {
    prop::collection::vec(
        (
            prop_oneof![1..40usize, 500..530usize, Just(4096), 1..150_000usize],
            prop::sample::select(vec![0_u8, 0, 0, 1, 255]),
            any::<bool>(),
        ),
        0..24,
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn extents_threads_and_sizes_do_not_matter(
        runs in runs(),
        construction in prop::sample::select(vec!["streams:4", "streams:3", "flat", "concat", "linear"]),
        algorithm in prop::sample::select(vec![
            Algorithm::Sha256,
            Algorithm::Blake3,
            Algorithm::Crc32,
            Algorithm::Crc32c,
            Algorithm::Crc64,
            Algorithm::Crc64Nvme,
        ]),
        block_size in prop::sample::select(vec![512, 4096, 65_536, 1 << 20]),
        granularity in prop::sample::select(vec![0, 1, 3, 512, 65_536, 1 << 18, 1_000_000, 1 << 20]),
        threads in 1..6usize,
        read_size in prop::sample::select(vec![1, 4096, 10_000, 65_536, 1 << 20]),
        queue_depth in 0..20usize,
        reads_in_flight in 0..8usize,
    ) {
        let mut memory = Memory::new(&runs, granularity);
        memory.queue_depth = reads_in_flight;
        let parameters = parameters(algorithm, construction, block_size);
        let progress = Progress::new();
        let tuning = tuning(threads, read_size, queue_depth);
        let digest = checksum(&memory, &parameters, &tuning, &progress).unwrap();
        prop_assert_eq!(digest, definition(&parameters, &memory.content));
        prop_assert_eq!(progress.done(), memory.size());
        prop_assert_eq!(progress.total(), memory.size());
        prop_assert!(progress.data() <= memory.size());
    }

    #[test]
    fn several_checksums_of_one_pass(
        runs in runs(),
        lanes in prop::collection::vec(
            (
                prop::sample::select(vec![Algorithm::Sha256, Algorithm::Blake3, Algorithm::Crc32c]),
                prop::sample::select(vec!["streams:4", "flat", "concat", "linear"]),
                prop::sample::select(vec![512, 65_536, 1 << 20]),
            ),
            0..5,
        ),
        granularity in prop::sample::select(vec![1, 65_536, 1 << 20]),
        threads in 1..6usize,
        read_size in prop::sample::select(vec![4096, 65_536, 1 << 20]),
        reads_in_flight in 0..8usize,
    ) {
        let mut memory = Memory::new(&runs, granularity);
        memory.queue_depth = reads_in_flight;
        let lanes: Vec<_> = lanes.into_iter().map(|(a, c, size)| parameters(a, c, size)).collect();
        let tuning = tuning(threads, read_size, 3);
        let progress = Progress::new();
        let digests = checksums(&memory, &lanes, &tuning, &progress).unwrap();
        let expected: Vec<_> = lanes.iter().map(|lane| definition(lane, &memory.content)).collect();
        prop_assert_eq!(digests, expected);
        prop_assert_eq!(progress.done(), memory.size());
    }

    #[test]
    fn a_bad_byte_is_an_error_wherever_it_is(
        place in 0..3_000_000usize,
        construction in prop::sample::select(vec!["streams:4", "linear"]),
        threads in 1..5usize,
        reads_in_flight in 0..8usize,
    ) {
        let mut memory = Memory::new(&[(3_000_000, 5, false)], 1);
        memory.queue_depth = reads_in_flight;
        memory.bad_byte = Some(place as u64);
        let parameters = parameters(Algorithm::Crc32c, construction, 65_536);
        let tuning = tuning(threads, 65_536, 4);
        let error = checksum(&memory, &parameters, &tuning, &Progress::new()).unwrap_err();
        prop_assert_eq!(error.to_string(), format!("memory: bad sector (offset {})", place / 65_536 * 65_536));
    }
}

#[test]
fn blocks_longer_than_the_buffer() {
    let runs = [
        (5 << 20, 0, true),
        (100, 7, false),
        (20 << 20, 0, true),
        (9 << 20, 0, false),
        (3 << 20, 9, false),
        (1000, 0, true),
    ];
    let memory = Memory::new(&runs, 65_536);
    for construction in ["streams:4", "flat"] {
        let parameters = parameters(Algorithm::Sha256, construction, 8 << 20);
        for threads in [1, 2, 5] {
            let tuning = tuning(threads, 1 << 16, 4);
            let digest = checksum(&memory, &parameters, &tuning, &Progress::new()).unwrap();
            assert_eq!(digest, definition(&parameters, &memory.content), "{threads} threads");
        }
    }
}

#[test]
fn long_blocks_in_one_of_several_lanes() {
    let runs = [(5 << 20, 0, true), (100, 7, false), (30 << 20, 0, true), (17 << 20, 9, false)];
    let memory = Memory::new(&runs, 65_536);
    let lanes = [
        parameters(Algorithm::Sha256, "flat", 16 << 20),
        parameters(Algorithm::Crc32c, "streams:4", 4096),
        parameters(Algorithm::Blake3, "linear", 4096),
        parameters(Algorithm::Sha1, "linear", 4096),
        parameters(Algorithm::Crc64, "concat", 8 << 20),
    ];
    for threads in [1, 4] {
        let tuning = tuning(threads, 1 << 16, 4);
        let digests = checksums(&memory, &lanes, &tuning, &Progress::new()).unwrap();
        let expected = lanes.map(|lane| definition(&lane, &memory.content));
        assert_eq!(digests, expected, "{threads} threads");
    }
}

/// Collects digests, and fails after a number of bytes.
#[derive(Default)]
struct Blocks {
    digests: Vec<u8>,
    zeros: u64,
    most: Option<usize>,
}

impl Sink<BlockDigests> for Blocks {
    fn take(&mut self, digests: &BlockDigests) -> std::result::Result<(), SinkError> {
        for run in digests.runs() {
            match run {
                Run::Digests { digests, .. } => self.digests.extend(digests),
                Run::Zeros { count } => self.zeros += count,
            }
        }
        match self.most {
            Some(most) if self.digests.len() > most => Err("the disk is full".into()),
            _ => Ok(()),
        }
    }
}

#[test]
fn block_digests_go_to_any_sink() {
    let runs =
        [(9 << 20, 9, false), (5 << 20, 0, true), (1 << 20, 0, false), (3_000_001, 7, false)];
    let memory = Memory::new(&runs, 1);
    let parameters = parameters(Algorithm::Sha256, "flat", 65_536);
    let leaf = parameters.leaf(&blkhash::Digester::new(Algorithm::Sha256));
    for threads in [1, 3] {
        let tuning = tuning(threads, 1 << 18, 4);
        let mut sink = (Accumulator::new(&parameters, 1), Blocks::default());
        block_digests(&memory, &leaf, &mut sink, &tuning, &Progress::new()).unwrap();
        assert_eq!(sink.0.finalize(), definition(&parameters, &memory.content));
        assert_eq!(sink.1.zeros, 6 << 4);
        assert_eq!(sink.1.digests.len(), 32 * ((9 << 4) + 3_000_001_usize.div_ceil(65_536)));

        let mut full = Blocks { most: Some(1000), ..Blocks::default() };
        let error = block_digests(&memory, &leaf, &mut full, &tuning, &Progress::new());
        assert_eq!(error.unwrap_err().to_string(), "the disk is full");
    }
}

/// The same digests come with and without checksums, whether or not a checksum is made of them.
#[test]
fn checksums_and_blocks_come_from_one_pass() {
    let memory = Memory::new(&[(2 << 20, 9, false), (5 << 20, 0, true), (300_001, 7, false)], 1);
    let of = |algorithm, construction, size| parameters(algorithm, construction, size);
    let all = [
        of(Algorithm::Sha256, "linear", 65_536),
        of(Algorithm::Sha256, "flat", 65_536),
        of(Algorithm::Sha256, "streams:4", 65_536),
        of(Algorithm::Blake3, "linear", 65_536),
        of(Algorithm::Sha256, "fs-verity", 4096),
    ];
    let leaves = [
        of(Algorithm::Sha256, "streams:4", 65_536),
        of(Algorithm::Sha256, "streams:4", 4096),
        of(Algorithm::Crc32c, "flat", 65_536),
    ];
    let expected = all.each_ref().map(|it| definition(it, &memory.content));
    for (threads, leaf) in [(1, leaves[0]), (3, leaves[0]), (3, leaves[1]), (1, leaves[2])] {
        let leaf = leaf.leaf(&blkhash::Digester::new(leaf.algorithm()));
        let tuning = tuning(threads, 1 << 18, 4);
        let mut alone = Blocks::default();
        block_digests(&memory, &leaf, &mut alone, &tuning, &Progress::new()).unwrap();
        for count in 0..=all.len() {
            let mut sink = Blocks::default();
            let (some, progress) = (&all[..count], Progress::new());
            let pass = Pass::new(some).blocks(&leaf, &mut sink);
            let found = pass.run(&memory, &tuning, &progress).unwrap();
            assert_eq!(found, expected[..count]);
            assert_eq!((&sink.digests, sink.zeros), (&alone.digests, alone.zeros));
        }
        let mut full = Blocks { most: Some(100), ..Blocks::default() };
        let progress = Progress::new();
        let error = Pass::new(&all).blocks(&leaf, &mut full).run(&memory, &tuning, &progress);
        assert_eq!(error.unwrap_err().to_string(), "the disk is full");
    }
}

#[test]
fn cancelled_pass_has_no_checksum() {
    let memory = Memory::new(&[(9 << 20, 9, false)], 1);
    let progress = Progress::new();
    progress.cancel();
    let error = checksum(&memory, &Parameters::default(), &tuning(3, 1 << 18, 4), &progress);
    assert!(matches!(error, Err(Error::Cancelled)));
    assert_eq!(progress.done(), 0);
}

#[test]
fn a_pass_is_cancelled_in_a_long_run_of_zeros() {
    struct Hole;
    impl Source for Hole {
        fn size(&self) -> u64 {
            1 << 60
        }
        fn extent(&self, offset: u64, limit: u64) -> Result<Extent> {
            Ok(Extent { offset, length: limit, kind: ExtentKind::Zero })
        }
        fn read_exact_at(&self, _: &mut [u8], _: u64) -> Result<()> {
            unreachable!("there are only zeros")
        }
    }
    let tuning = tuning(2, 1 << 20, 4).with_max_zeros(Some(u64::MAX));
    for construction in ["streams:4", "linear"] {
        let construction = construction.parse().unwrap();
        let parameters = Parameters::new(Algorithm::Sha256, construction, BlockSize::PAGE).unwrap();
        let progress = Progress::new();
        let result = thread::scope(|scope| {
            let pass = scope.spawn(|| checksum(&Hole, &parameters, &tuning, &progress));
            while progress.done() == 0 {
                thread::sleep(Duration::from_millis(10));
            }
            progress.cancel();
            pass.join().unwrap()
        });
        assert!(matches!(result, Err(Error::Cancelled)));
    }
}

/// Threads read while another thread queries extents.
#[test]
fn planning_does_not_block_other_threads() {
    struct Slow {
        memory: Memory,
        /// Number of reads that have begun.
        reads: Mutex<usize>,
        another: Condvar,
    }
    impl Source for Slow {
        fn size(&self) -> u64 {
            self.memory.size()
        }
        fn extent(&self, offset: u64, limit: u64) -> Result<Extent> {
            if offset == 4 << 20 {
                // Waits until other threads have read the content before this offset.
                let reads = self.reads.lock().unwrap();
                let (reads, timeout) = self
                    .another
                    .wait_timeout_while(reads, Duration::from_secs(20), |reads| *reads < 2)
                    .unwrap();
                drop(reads);
                assert!(!timeout.timed_out(), "no thread reads");
            }
            let length = limit.min((1 << 20) - offset % (1 << 20));
            Ok(Extent { offset, length, kind: ExtentKind::Data })
        }
        fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
            *self.reads.lock().unwrap() += 1;
            self.another.notify_all();
            self.memory.read_exact_at(buffer, offset)
        }
        fn check_unchanged(&self) -> Result<()> {
            Ok(())
        }
    }
    let memory = Memory::new(&[(8 << 20, 9, false)], 1);
    let source = Slow { memory, reads: Mutex::new(0), another: Condvar::new() };
    let parameters = parameters(Algorithm::Crc32c, "flat", 65_536);
    let digest = checksum(&source, &parameters, &tuning(4, 1 << 20, 4), &Progress::new()).unwrap();
    assert_eq!(digest, definition(&parameters, &source.memory.content));
}

#[test]
fn a_granularity_larger_than_the_buffer_or_no_power_of_two() {
    let memory = Memory::new(&[(9 << 20, 9, false), (5 << 20, 0, true), (3_000_001, 7, false)], 1);
    for construction in ["streams:4", "flat", "concat", "linear"] {
        for algorithm in [Algorithm::Sha256, Algorithm::Blake3] {
            let parameters = parameters(algorithm, construction, 65_536);
            let expected = definition(&parameters, &memory.content);
            for granularity in [8 << 20, 1 << 40, 1 << 63, 3 << 20, 100_000, u64::MAX, 0] {
                let memory = Memory { granularity, ..memory.clone() };
                let tuning = tuning(2, 1 << 20, 4);
                let digest = checksum(&memory, &parameters, &tuning, &Progress::new()).unwrap();
                assert_eq!(digest, expected, "{algorithm} {construction} {granularity}");
            }
        }
    }
}

/// A hole of any size, followed by a byte of data.
struct Hole(u64);

impl Source for Hole {
    fn size(&self) -> u64 {
        self.0 + 1
    }

    fn extent(&self, offset: u64, limit: u64) -> Result<Extent> {
        let kind = if offset < self.0 { ExtentKind::Zero } else { ExtentKind::Data };
        let end = if offset < self.0 { self.0 } else { self.0 + 1 };
        // In several extents, because the limit is on their sum.
        Ok(Extent { offset, length: limit.min(end - offset).min(1 << 44), kind })
    }

    fn read_exact_at(&self, buffer: &mut [u8], _: u64) -> Result<()> {
        buffer.fill(1);
        Ok(())
    }
}

#[test]
fn too_many_zeros_fail_at_once() {
    for (algorithm, construction, block_size, size) in [
        (Algorithm::Sha256, "streams:4", 65_536, 1 << 61),
        (Algorithm::Sha256, "streams:4", 65_536, (1 << 48) + 65_536),
        (Algorithm::Sha256, "flat", 512, (1 << 41) + 512),
        (Algorithm::Sha3_512, "concat", 1 << 20, i64::MAX as u64 - 1),
        (Algorithm::Sha256, "linear", 65_536, (1 << 42) + 1),
        (Algorithm::Blake3, "linear", 65_536, (1 << 42) + (1 << 20)),
    ] {
        let parameters = parameters(algorithm, construction, block_size);
        let progress = Progress::new();
        let error = checksum(&Hole(size), &parameters, &Tuning::default(), &progress);
        assert!(matches!(error, Err(Error::Zeros { .. })), "{algorithm} {construction}: {error:?}");
        assert_eq!(progress.done(), 0, "{algorithm} {construction}");
    }
}

#[test]
fn zeros_of_a_large_disk_are_hashed() {
    for (construction, size) in [("streams:4", 1 << 40), ("flat", 1 << 38)] {
        let parameters = parameters(Algorithm::Sha256, construction, 65_536);
        checksum(&Hole(size), &parameters, &Tuning::default(), &Progress::new()).unwrap();
    }
    // Zeros cost a CRC nothing.
    let parameters = parameters(Algorithm::Crc64, "linear", 65_536);
    checksum(&Hole(1 << 61), &parameters, &Tuning::default(), &Progress::new()).unwrap();
}

#[test]
fn the_limit_of_zeros_is_in_bytes() {
    let parameters = Parameters::default();
    let run = |max_zeros| {
        let tuning = Tuning::default().with_max_zeros(Some(max_zeros));
        checksum(&Hole(1 << 30), &parameters, &tuning, &Progress::new())
    };
    assert!(matches!(run((1 << 30) - 1), Err(Error::Zeros { .. })));
    assert!(matches!(run(0), Err(Error::Zeros { .. })));
    assert_eq!(run(1 << 30).unwrap(), run(u64::MAX).unwrap());
}

#[test]
fn invalid_extents_are_errors() {
    let data = |offset, length| Extent { offset, length, kind: ExtentKind::Data };
    let size = 300_000;
    for extent in [data(100_000, 0), data(100_000, size), data(0, 1), data(100_000, u64::MAX)] {
        let mut memory = Memory::new(&[(100_000, 1, false), (200_000, 2, false)], 1);
        memory.lie = Some((100_000, extent));
        let error =
            checksum(&memory, &Parameters::default(), &tuning(2, 65_536, 4), &Progress::new());
        assert!(matches!(error, Err(Error::Extent { .. })), "{extent:?}: {error:?}");
    }
}

/// The other threads must not wait for a chunk that never comes.
#[test]
fn panic_of_the_source_ends_the_pass() {
    struct Panics;

    impl Source for Panics {
        fn size(&self) -> u64 {
            1 << 30
        }

        fn extent(&self, offset: u64, limit: u64) -> Result<Extent> {
            Ok(Extent { offset, length: limit, kind: ExtentKind::Data })
        }

        fn read_exact_at(&self, _: &mut [u8], offset: u64) -> Result<()> {
            if offset == 3 << 20 {
                // Skips the panic hook, which would print the panic.
                resume_unwind(Box::new("on purpose"));
            }
            Ok(())
        }

        fn queue_depth(&self) -> usize {
            6
        }

        fn check_unchanged(&self) -> Result<()> {
            Ok(())
        }
    }

    for construction in ["streams:4", "linear"] {
        let parameters = parameters(Algorithm::Crc32c, construction, 65_536);
        let compute = || checksum(&Panics, &parameters, &tuning(4, 65_536, 4), &Progress::new());
        assert!(catch_unwind(compute).is_err(), "{construction}");
    }
}

#[test]
fn a_changed_image_has_no_checksum() {
    let mut memory = Memory::new(&[(100_000, 1, false)], 1);
    memory.changed = true;
    let error = checksum(&memory, &Parameters::default(), &Tuning::default(), &Progress::new());
    assert!(error.unwrap_err().to_string().contains("changed"));
}

#[test]
fn an_empty_image_starts_no_thread_and_reads_nothing() {
    struct Empty(AtomicUsize);
    impl Source for Empty {
        fn size(&self) -> u64 {
            64 << 40
        }
        fn extent(&self, offset: u64, limit: u64) -> Result<Extent> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(Extent { offset, length: limit, kind: ExtentKind::Zero })
        }
        fn read_exact_at(&self, _: &mut [u8], _: u64) -> Result<()> {
            panic!("nothing is to be read");
        }
    }
    let source = Empty(AtomicUsize::new(0));
    let parameters = parameters(Algorithm::Crc32c, "streams:4", 64 << 20);
    let digest = checksum(&source, &parameters, &Tuning::default(), &Progress::new()).unwrap();
    let mut zeros = Accumulator::new(&parameters, 1);
    zeros.zero(64 << 40);
    assert_eq!(digest, zeros.finalize());
    assert!(source.0.into_inner() < 4);
}

/// Scattered content takes one query for each extent, and few reads.
#[test]
fn each_extent_is_asked_for_once_and_small_gaps_are_read_through() {
    struct Counting {
        memory: Memory,
        questions: AtomicUsize,
        reads: AtomicUsize,
    }

    impl Source for Counting {
        fn size(&self) -> u64 {
            self.memory.size()
        }

        fn extent(&self, offset: u64, limit: u64) -> Result<Extent> {
            self.questions.fetch_add(1, Ordering::Relaxed);
            self.memory.extent(offset, limit)
        }

        fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
            self.reads.fetch_add(1, Ordering::Relaxed);
            self.memory.read_exact_at(buffer, offset)
        }

        fn check_unchanged(&self) -> Result<()> {
            Ok(())
        }
    }

    for (gap, block_size, reads) in [(1024, 65_536, 2), (1024, 512, 500), (4096, 65_536, 500)] {
        let runs: Vec<_> = (0..500).flat_map(|_| [(1024, 7, true), (gap, 0, true)]).collect();
        let memory = Memory::new(&runs, 1);
        let parameters = parameters(Algorithm::Crc32c, "flat", block_size);
        let expected = definition(&parameters, &memory.content);
        let source = Counting { memory, questions: 0.into(), reads: 0.into() };
        let tuning = tuning(1, 1 << 20, 4);
        let digest = checksum(&source, &parameters, &tuning, &Progress::new()).unwrap();
        assert_eq!(digest, expected);
        assert_eq!(source.questions.into_inner(), runs.len(), "{gap}");
        assert!(source.reads.into_inner() <= reads, "{gap} {block_size}");
    }
}

#[test]
fn distant_sources_are_read_by_more_threads_than_hash() {
    struct Far {
        memory: Memory,
        reads: Mutex<usize>,
        enough: Condvar,
    }
    impl Source for Far {
        fn size(&self) -> u64 {
            self.memory.size()
        }
        fn extent(&self, offset: u64, limit: u64) -> Result<Extent> {
            self.memory.extent(offset, limit)
        }
        fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
            let mut reads = self.reads.lock().unwrap();
            *reads += 1;
            self.enough.notify_all();
            let hang = Duration::from_secs(60);
            let (reads, waited) =
                self.enough.wait_timeout_while(reads, hang, |reads| *reads < 6).unwrap();
            assert!(!waited.timed_out(), "{reads} reads are in flight");
            drop(reads);
            self.memory.read_exact_at(buffer, offset)
        }
        fn queue_depth(&self) -> usize {
            6
        }
    }
    for construction in ["streams:4", "linear"] {
        let memory = Memory::new(&[(1 << 20, 7, false)], 1);
        let source = Far { memory, reads: Mutex::new(0), enough: Condvar::new() };
        let parameters = parameters(Algorithm::Sha256, construction, 4096);
        let tuning = tuning(1, 65_536, 4);
        let digest = checksum(&source, &parameters, &tuning, &Progress::new()).unwrap();
        assert_eq!(digest, definition(&parameters, &source.memory.content));
    }
}

/// An image in a file. Lends only some of the content, and may truncate the file while it is lent.
struct Lending {
    image: Image,
    file: File,
    /// Offsets at multiples of this are not lent.
    refused: u64,
    /// Maximum number of bytes lent at a time.
    most: usize,
    /// Truncates the file once something is lent.
    cut: bool,
    /// Content that is written back before each read.
    restored: Option<Vec<u8>>,
    lent: AtomicUsize,
}

impl Lending {
    fn new(path: &Path, refused: u64) -> Self {
        let image = OpenOptions::default().open(path).unwrap();
        let file = File::options().write(true).open(path).unwrap();
        Self {
            image,
            file,
            refused,
            most: usize::MAX,
            cut: false,
            restored: None,
            lent: AtomicUsize::new(0),
        }
    }
}

impl Source for Lending {
    fn size(&self) -> u64 {
        self.image.size()
    }

    fn extent(&self, offset: u64, limit: u64) -> Result<Extent> {
        self.image.extent(offset, limit)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        if let Some(content) = &self.restored {
            self.file.write_all_at(content, 0).unwrap();
        }
        self.image.read_exact_at(buffer, offset)
    }

    fn lend(&self, offset: u64, length: usize) -> Option<Lent> {
        if offset.is_multiple_of(self.refused) {
            return None;
        }
        let mut lent = self.image.lend(offset, length)?;
        lent.truncate(self.most);
        self.lent.fetch_add(1, Ordering::Relaxed);
        if self.cut {
            self.file.set_len(0).unwrap();
        }
        Some(lent)
    }
}

/// Creates a file of data and holes in the page cache. Returns its path and content.
fn file_in_memory(folder: &Path) -> (PathBuf, Vec<u8>) {
    let path = folder.join("disk.raw");
    let mut content = vec![0; 9 << 20];
    let file = File::create(&path).unwrap();
    file.set_len(content.len() as u64).unwrap();
    // Extents of several sizes. Some do not fill a block.
    let mut start = 0;
    for (number, length) in
        [1 << 20, 4096, 256 << 10, 96 << 10, 3 << 20, 64 << 10].iter().enumerate()
    {
        let bytes = &mut content[start..start + length];
        bytes.iter_mut().enumerate().for_each(|(i, byte)| *byte = (i * i / 7 + number) as u8 | 1);
        file.write_all_at(bytes, start as u64).unwrap();
        start += length + (256 << 10);
    }
    (path, content)
}

/// Algorithms with single-lane kernels, whose data is read, and others, whose data is lent.
const LENDING: [Algorithm; 5] = [
    Algorithm::Sha256,
    Algorithm::Blake2b256,
    Algorithm::Xxh64,
    Algorithm::Blake3,
    Algorithm::Crc32c,
];

fn lending_parameters() -> impl Iterator<Item = Parameters> {
    LENDING.into_iter().flat_map(|algorithm| {
        ["flat", "streams:4", "linear"].map(|it| parameters(algorithm, it, 64 << 10))
    })
}

#[test]
#[cfg_attr(blkhash_portable, should_panic)] // cache
fn lent_content_has_the_same_checksum() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let (path, content) = file_in_memory(folder.path());
    let mut lent = 0;
    for (parameters, refused) in
        lending_parameters().flat_map(|it| [3 << 20, 512 << 10].map(|r| (it, r)))
    {
        let expected = definition(&parameters, &content);
        for threads in [1, 3] {
            let source = Lending::new(&path, refused);
            let tuning = Tuning::default().with_threads(threads);
            let result = checksum(&source, &parameters, &tuning, &Progress::default()).unwrap();
            assert_eq!(result, expected, "{parameters:?}");
            lent += source.lent.into_inner();
        }
    }
    assert!(lent > 0 || !tells_what_is_cached(), "nothing was lent");
}

#[test]
fn content_lent_in_parts_has_the_same_checksum() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let (path, content) = file_in_memory(folder.path());
    for (parameters, block_size) in
        lending_parameters().flat_map(|it| [4096, 64 << 10, 1 << 20].map(|size| (it, size)))
    {
        let name = parameters.construction().to_string();
        let parameters = self::parameters(parameters.algorithm(), &name, block_size);
        let expected = definition(&parameters, &content);
        for most in [1000, 4096, 64 << 10, 100_000, 700_001] {
            let source = Lending { most, ..Lending::new(&path, u64::MAX) };
            let tuning = Tuning::default().with_threads(2);
            let result = checksum(&source, &parameters, &tuning, &Progress::default()).unwrap();
            assert_eq!(result, expected, "{parameters:?} {most}");
        }
    }
}

#[test]
fn content_lost_while_lent_is_read_again() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    for parameters in lending_parameters() {
        // A restored file has no holes, so all of the content is data.
        let path = folder.path().join("disk.raw");
        let content: Vec<u8> = (0..5_u32 << 20).map(|i| (i * 31 / 8) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let mut source = Lending { cut: true, ..Lending::new(&path, u64::MAX) };
        let tuning = Tuning::default();
        let error = checksum(&source, &parameters, &tuning, &Progress::default()).err();
        if source.lent.load(Ordering::Relaxed) > 0 {
            let Some(Error::Image(error)) = error else { panic!("{parameters:?}: {error:?}") };
            assert_eq!(error.kind(), ErrorKind::Truncated, "{parameters:?}");
        }

        std::fs::write(&path, &content).unwrap();
        source = Lending { cut: true, ..Lending::new(&path, u64::MAX) };
        source.restored = Some(content.clone());
        let tuning = Tuning::default().with_threads(1);
        let result = checksum(&source, &parameters, &tuning, &Progress::default()).unwrap();
        assert_eq!(result, definition(&parameters, &content), "{parameters:?}");
    }
}

fn tells_what_is_cached() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(6), Some(5))
}
