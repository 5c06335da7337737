//! Passes announce what they read, once, before they read it, and as far ahead as the source wants.

use std::sync::{Mutex, PoisonError};

use blkhash::{Algorithm, BlockSize, Digester, Parameters, Sink, SinkError};
use blkimage::{Extent, ExtentKind, Result, Slice, Source};
use blksum::{Progress, Tuning, block_digests, checksum, compare, first_nonzero};
use proptest::prelude::*;

/// Content in memory that records what is announced and read.
struct Recorder {
    content: Vec<u8>,
    /// End of each extent, and whether it is zeros.
    extents: Vec<(u64, bool)>,
    read_ahead: u64,
    log: Mutex<Log>,
}

#[derive(Clone, Default)]
struct Log {
    /// Number of times that each byte was announced, and read.
    announced: Vec<u8>,
    read: Vec<u8>,
    calls: u64,
    /// Bytes that were announced and not read yet, and the most at a time.
    ahead: i64,
    max_ahead: i64,
    missed: Option<u64>,
}

impl Recorder {
    /// Creates content from runs: a length, and the byte of which it is made.
    fn new(runs: &[(usize, u8)], read_ahead: u64) -> Self {
        let (mut content, mut extents) = (Vec::new(), Vec::new());
        for &(length, fill) in runs.iter().filter(|run| run.0 > 0) {
            content.resize(content.len() + length, fill);
            extents.push((content.len() as u64, fill == 0));
        }
        let times = vec![0; content.len()];
        let log = Log { announced: times.clone(), read: times, ..Log::default() };
        Self { content, extents, read_ahead, log: Mutex::new(log) }
    }

    fn log(&self) -> Log {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Fails unless all that was read was announced before, once, and little else was. Gaps of less than a page are read or
    /// left out.
    #[track_caller]
    fn check(&self, gaps: usize) {
        let log = self.log();
        if self.read_ahead == 0 {
            assert_eq!(log.calls, 0, "announced without effect");
            return;
        }
        assert_eq!(log.missed, None, "was read and not announced");
        assert!(log.announced.iter().all(|times| *times <= 1), "was announced again");
        let count = |times: &[u8]| times.iter().filter(|it| **it > 0).count();
        let (announced, read) = (count(&log.announced), count(&log.read));
        assert!(announced <= read + gaps * 4096, "{announced} bytes for {read}");
    }
}

impl Source for Recorder {
    fn size(&self) -> u64 {
        self.content.len() as u64
    }

    fn extent(&self, offset: u64, limit: u64) -> Result<Extent> {
        let (end, zero) = *self.extents.iter().find(|(end, _)| offset < *end).unwrap();
        let kind = if zero { ExtentKind::Zero } else { ExtentKind::Data };
        Ok(Extent { offset, length: limit.min(end - offset), kind })
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        let range = offset as usize..offset as usize + buf.len();
        buf.copy_from_slice(&self.content[range.clone()]);
        let mut log = self.log.lock().unwrap();
        if log.announced[range.clone()].contains(&0) {
            log.missed.get_or_insert(offset);
        }
        log.read[range].iter_mut().for_each(|times| *times = 1);
        log.ahead -= buf.len() as i64;
        Ok(())
    }

    fn will_need(&self, offset: u64, length: u64) {
        let mut log = self.log.lock().unwrap();
        let range = offset as usize..(offset + length) as usize;
        log.announced[range].iter_mut().for_each(|times| *times = times.saturating_add(1));
        log.calls += 1;
        log.ahead += length as i64;
        log.max_ahead = log.max_ahead.max(log.ahead);
    }

    fn read_ahead(&self) -> u64 {
        self.read_ahead
    }
}

fn parameters(block_size: u64) -> Parameters {
    let block_size = BlockSize::try_from(block_size).unwrap();
    Parameters::new(Algorithm::Crc32c, "flat".parse().unwrap(), block_size).unwrap()
}

fn tuning(threads: usize) -> Tuning {
    Tuning::default().with_threads(threads).with_read_size(64 << 10)
}

/// Ignores what it gets.
struct Nothing;

impl<T> Sink<T> for Nothing {
    fn take(&mut self, _: &T) -> std::result::Result<(), SinkError> {
        Ok(())
    }
}

fn runs() -> impl Strategy<Value = Vec<(usize, u8)>> {
    let length = prop_oneof![1..40_usize, 500..530_usize, Just(4096), 1..300_000_usize];
    prop::collection::vec((length, prop::sample::select(vec![0_u8, 0, 1, 2])), 0..24)
}

fn read_aheads() -> impl Strategy<Value = u64> {
    prop::sample::select(vec![0, 1, 100_000, 1 << 20, 32 << 20])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn checksums(
        runs in runs(),
        read_ahead in read_aheads(),
        threads in 1..4_usize,
        block_size in prop::sample::select(vec![512, 4096, 65_536, 1 << 20]),
    ) {
        let value = |source: &dyn Source| {
            checksum(source, &parameters(block_size), &tuning(threads), &Progress::new()).unwrap()
        };
        let (local, far) = (Recorder::new(&runs, 0), Recorder::new(&runs, read_ahead));
        prop_assert_eq!(value(&local), value(&far));
        local.check(0);
        far.check(runs.len());
    }

    #[test]
    fn comparisons(
        left in runs(),
        right in runs(),
        read_ahead in read_aheads(),
        threads in 1..4_usize,
    ) {
        // The block in which the shorter side ends is read on its own.
        let mut sides = [left, right];
        let length = |runs: &[(usize, u8)]| runs.iter().map(|run| run.0).sum::<usize>();
        let [one, other] = [length(&sides[0]), length(&sides[1])];
        sides[0].push((one.max(other).next_multiple_of(4096) - one, 3));
        sides[1].push((one.max(other).next_multiple_of(4096) - other, 4));
        let gaps = sides[0].len() + sides[1].len();
        let block_size = BlockSize::try_from(4096).unwrap();
        let [left, right] = sides.map(|runs| Recorder::new(&runs, read_ahead));
        let (tuning, progress) = (tuning(threads), Progress::new());
        compare(&left, &right, block_size, &mut Nothing, &tuning, &progress).unwrap();
        left.check(gaps * 16);
        right.check(gaps * 16);
    }

    #[test]
    fn some_blocks(
        runs in runs(),
        read_ahead in read_aheads(),
        starts in prop::collection::btree_set(0..64_u64, 0..10),
    ) {
        let far = Recorder::new(&runs, read_ahead);
        let size = far.size();
        let ranges = starts.iter().map(|start| start * 65_536..(start + 1) * 65_536);
        let ranges = ranges.map(|it| it.start..it.end.min(size)).filter(|it| it.start < it.end);
        let some = Slice::of_ranges(&far, ranges).unwrap();
        let leaf = parameters(4096).leaf(&Digester::new(Algorithm::Crc32c));
        let (tuning, progress) = (tuning(2), Progress::new());
        block_digests(&some, &leaf, &mut Nothing, &tuning, &progress).unwrap();
        far.check(runs.len() + starts.len());
    }
}

/// A source far away always knows of as many bytes as it wants, and of not many more.
#[test]
fn as_far_ahead_as_wanted() {
    for (read_ahead, least, most) in [(1 << 20, 1 << 20, 1 << 20), (100, 1, 0)] {
        let far = Recorder::new(&[(8 << 20, 1), (1 << 20, 0), (8 << 20, 2)], read_ahead);
        let (tuning, progress) = (tuning(1), Progress::new());
        checksum(&far, &parameters(4096), &tuning, &progress).unwrap();
        let max_ahead = far.log().max_ahead;
        assert!((least..=most + (128 << 10)).contains(&max_ahead), "{max_ahead}");
        far.check(0);
    }
}

#[test]
fn search_for_a_byte() {
    let far = Recorder::new(&[(1 << 20, 7), (6 << 20, 0), (1 << 20, 1)], 1 << 20);
    let progress = Progress::new();
    assert_eq!(first_nonzero(&far, 0, &tuning(1), &progress).unwrap(), Some(0));
    assert_eq!(far.log().calls, 0);
    let mut far = Recorder::new(&[(6 << 20, 0), (1 << 20, 1)], 1 << 20);
    // Zeros that are stored.
    far.extents = vec![(7 << 20, false)];
    assert_eq!(first_nonzero(&far, 0, &tuning(1), &progress).unwrap(), Some(6 << 20));
    let log = far.log();
    assert!(log.announced[64 << 10..6 << 20].iter().all(|times| *times == 1));
    assert!(log.missed == Some(0) && log.max_ahead <= (1 << 20) + (64 << 10));
}
