//! Comparisons equal a comparison of the bytes for any origins, threads and sizes, and nothing is read that
//! both sides share.

#[path = "../../blkimage/tests/common/mod.rs"]
mod common;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::panic::{catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use blkhash::{BlockSize, Comparison, Sink, SinkError, is_zero};
use blkimage::{
    Error as ImageError, ErrorKind, Extent, ExtentKind, Image, Lent, OpenOptions, Origin,
    OriginKind, Result, Source,
};
use blksum::{ComparedRun, Error, Progress, Tuning, compare, first_nonzero};
use proptest::prelude::*;

use self::common::{make_raw, noise, open, qemu_io, sh};

#[derive(Clone, Copy, Debug)]
enum Fill {
    /// Bytes of this value, reported as data.
    Data(u8),
    /// Bytes that depend on their offset.
    Noise,
    Zeros,
    /// Bytes of the base.
    Base,
}

/// An overlay over an image, or over nothing, with arbitrary extents and faults.
#[derive(Clone, Default)]
struct Overlay {
    name: &'static str,
    base: Option<Arc<Image>>,
    content: Vec<u8>,
    /// End and kind of each extent.
    extents: Vec<(u64, bool, bool)>,
    granularity: u64,
    queue_depth: usize,
    /// Maximum length of an extent.
    longest: Option<u64>,
    bad_byte: Option<u64>,
    lie: Option<(u64, Origin)>,
    changed: bool,
    reads: Arc<Mutex<Vec<(u64, usize)>>>,
}

impl Overlay {
    fn new(name: &'static str, base: Option<Arc<Image>>, runs: &[(usize, Fill)]) -> Self {
        let mut overlay = Self { name, base, granularity: 1, ..Self::default() };
        for &(length, fill) in runs.iter().filter(|run| run.0 > 0) {
            let start = overlay.content.len();
            let content = &mut overlay.content;
            match fill {
                Fill::Data(byte) => content.resize(start + length, byte),
                Fill::Noise => {
                    let bytes = (start..start + length).map(|i| (i * i / 7 % 255) as u8 + 1);
                    content.extend(bytes);
                }
                Fill::Zeros => content.resize(start + length, 0),
                Fill::Base => {
                    content.resize(start + length, 0);
                    let base = overlay.base.as_ref().expect("there is a base");
                    let end = base.size().clamp(start as u64, (start + length) as u64) as usize;
                    if start < end {
                        base.read_exact_at(&mut content[start..end], start as u64).unwrap();
                    }
                }
            }
            let end = overlay.content.len() as u64;
            overlay.extents.push((end, matches!(fill, Fill::Zeros), matches!(fill, Fill::Base)));
        }
        overlay
    }

    /// Returns the origins of all bytes up to `size`, one for each byte.
    fn origins(&self, size: usize) -> Vec<OriginKind> {
        let mut kinds = Vec::with_capacity(size);
        while kinds.len() < size {
            let origin = self.origin(kinds.len() as u64, (size - kinds.len()) as u64).unwrap();
            kinds.extend((0..origin.length).map(|distance| origin.kind.advanced(distance)));
        }
        kinds
    }
}

impl Source for Overlay {
    fn size(&self) -> u64 {
        self.content.len() as u64
    }

    fn extent(&self, offset: u64, limit: u64) -> Result<Extent> {
        let origin = self.origin(offset, limit)?;
        let kind =
            if origin.kind == OriginKind::Zero { ExtentKind::Zero } else { ExtentKind::Data };
        Ok(Extent { offset: origin.offset, length: origin.length, kind })
    }

    fn origin(&self, offset: u64, limit: u64) -> Result<Origin> {
        assert!(offset < self.size() && limit > 0, "asked for what the contract excludes");
        if let Some((at, origin)) = self.lie
            && offset >= at
        {
            return Ok(origin);
        }
        let &(end, zero, base) = self.extents.iter().find(|(end, ..)| offset < *end).unwrap();
        let length = limit.min(end - offset).min(self.longest.unwrap_or(u64::MAX));
        match &self.base {
            Some(image) if base && offset < image.size() => image.origin(offset, length),
            _ if zero || base => Ok(Origin { offset, length, kind: OriginKind::Zero }),
            _ => Ok(Origin { offset, length, kind: OriginKind::Other }),
        }
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        let range = offset as usize..offset as usize + buffer.len();
        if self.bad_byte.is_some_and(|byte| range.contains(&(byte as usize))) {
            return Err(ImageError::new(ErrorKind::Io, self.name, "bad sector").at(offset));
        }
        self.reads.lock().unwrap().push((offset, buffer.len()));
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
            true => Err(ImageError::new(ErrorKind::Changed, self.name, "changed")),
            false => Ok(()),
        }
    }
}

/// Collects runs, and fails after a number of them.
#[derive(Default)]
struct Collect {
    runs: Vec<ComparedRun>,
    most: Option<usize>,
}

impl Sink<ComparedRun> for Collect {
    fn take(&mut self, run: &ComparedRun) -> std::result::Result<(), SinkError> {
        if self.most.is_some_and(|most| self.runs.len() >= most) {
            return Err("the disk is full".into());
        }
        self.runs.push(*run);
        Ok(())
    }
}

fn tuning(threads: usize, read_size: usize, queue_depth: usize) -> Tuning {
    Tuning::default().with_threads(threads).with_read_size(read_size).with_queue_depth(queue_depth)
}

fn compared(
    left: &dyn Source,
    right: &dyn Source,
    block_size: u64,
    tuning: &Tuning,
) -> std::result::Result<Vec<ComparedRun>, Error> {
    let mut sink = Collect::default();
    let progress = Progress::new();
    let block_size = BlockSize::try_from(block_size).unwrap();
    compare(left, right, block_size, &mut sink, tuning, &progress)?;
    assert_eq!(progress.done(), left.size().min(right.size()));
    assert_eq!(progress.total(), progress.done());
    assert!(progress.data() <= progress.done());
    Ok(sink.runs)
}

/// Joins the results of single blocks.
fn joined(blocks: impl Iterator<Item = Comparison>) -> Vec<ComparedRun> {
    let mut runs: Vec<ComparedRun> = Vec::new();
    for (first_block, comparison) in (0..).zip(blocks) {
        match runs.last_mut() {
            Some(last) if last.comparison == comparison => last.count += 1,
            _ => runs.push(ComparedRun::new(first_block, 1, comparison)),
        }
    }
    runs
}

/// Compares the bytes, block by block.
fn expected(left: &[u8], right: &[u8], block_size: u64) -> Vec<ComparedRun> {
    let size = left.len().min(right.len());
    let blocks = |content: &[u8]| blocks(content, size, block_size);
    joined(
        blocks(left)
            .iter()
            .zip(&blocks(right))
            .map(|(one, other)| Comparison::new(is_zero(one), is_zero(other), one == other)),
    )
}

/// Returns the blocks of which the first `size` bytes are a part. The last one is padded with zeros.
fn blocks(content: &[u8], size: usize, block_size: u64) -> Vec<Vec<u8>> {
    let end = size.next_multiple_of(block_size as usize);
    let mut content = content[..content.len().min(end)].to_vec();
    content.resize(end, 0);
    content.chunks(block_size as usize).map(<[u8]>::to_vec).collect()
}

/// Compares the bytes and the origins. Returns the runs, and for each byte whether it may be read.
fn expected_with_origins(
    left: &Overlay,
    right: &Overlay,
    block_size: u64,
) -> (Vec<ComparedRun>, Vec<bool>) {
    let size = left.content.len().min(right.content.len());
    let whole = [left, right].map(|side| blocks(&side.content, size, block_size));
    let (one, other) = (left.origins(size), right.origins(size));
    let is_shared = |at: usize| matches!(one[at], OriginKind::Stored(_)) && one[at] == other[at];
    let mut results = Vec::new();
    let mut may_read = Vec::with_capacity(size);
    for start in (0..size).step_by(block_size as usize) {
        let range = start..size.min(start + block_size as usize);
        let own: Vec<usize> = range.clone().filter(|at| !is_shared(*at)).collect();
        let zero = |content: &[u8]| own.iter().all(|at| content[*at] == 0);
        let (a, b) = (&left.content[range.clone()], &right.content[range.clone()]);
        let has_shared = own.len() < range.len();
        let [c, d] = [0, 1].map(|side| &whole[side][start / block_size as usize]);
        results.push(match Comparison::new(is_zero(c), is_zero(d), c == d) {
            Comparison::Zeros if has_shared => Comparison::Equal,
            // That the common bytes are zeros is not known, because they are not read.
            Comparison::Zeroed | Comparison::Written if has_shared && a == b => Comparison::Changed,
            comparison => comparison,
        });
        let is_looked_at = a != b && (zero(&left.content) || zero(&right.content));
        may_read.extend(range.map(|at| is_looked_at || !is_shared(at)));
    }
    // The rest of the block in which the shorter one ends.
    may_read.resize(size.next_multiple_of(block_size as usize), true);
    (joined(results.into_iter()), may_read)
}

fn runs(fills: Vec<Fill>) -> impl Strategy<Value = Vec<(usize, Fill)>> {
    let length = prop_oneof![
        1..40usize,
        500..530usize,
        Just(4096usize),
        (0..9usize).prop_map(|n| n << 12),
        1..90_000usize
    ];
    prop::collection::vec((length, prop::sample::select(fills)), 0..24)
}

/// A base with data, stored zeros and holes.
fn base(folder: &Path) -> Arc<Image> {
    make_raw(folder, "base.raw", "64k:R 32k:0 96k:- 4k:0 4k:A 60k:- 100k:R 8k:0 50001:R");
    Arc::new(open(folder, "base.raw"))
}

#[test]
#[ignore = "slow"]
fn origins_threads_and_sizes_do_not_matter() {
    let folder = tempfile::tempdir().unwrap();
    let base = base(folder.path());
    // Another open file is the same file.
    let bases = [base, Arc::new(open(folder.path(), "base.raw"))];
    let fills = vec![
        Fill::Base,
        Fill::Base,
        Fill::Base,
        Fill::Zeros,
        Fill::Zeros,
        Fill::Data(0),
        Fill::Data(0),
        Fill::Data(1),
        Fill::Noise,
        Fill::Noise,
    ];
    let case = (
        runs(fills.clone()),
        runs(fills),
        prop::sample::select(vec![512, 4096, 65_536, 1 << 20]),
        prop::sample::select(vec![0, 1, 3, 512, 65_536, 1 << 18, 1_000_000, 1 << 23]),
        1..6usize,
        prop::sample::select(vec![1, 4096, 10_000, 65_536, 1 << 20]),
        (0..20usize, 0..8usize),
        prop::option::of(1..9000u64),
    );
    let config =
        ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(
        (left, right, block_size, granularity, threads, read_size, depths, longest) in case
    )| {
        let (queue_depth, reads_in_flight) = depths;
        let mut left = Overlay::new("left", Some(bases[0].clone()), &left);
        let mut right = Overlay::new("right", Some(bases[1].clone()), &right);
        left.granularity = granularity;
        right.queue_depth = reads_in_flight;
        left.longest = longest;
        let (expected, may_read) = expected_with_origins(&left, &right, block_size);
        let tuning = tuning(threads, read_size, queue_depth);
        let runs = compared(&left, &right, block_size, &tuning).unwrap();
        prop_assert_eq!(runs, expected);
        for side in [&left, &right] {
            for &(offset, length) in side.reads.lock().unwrap().iter() {
                let range = offset as usize..offset as usize + length;
                prop_assert!(may_read[range].iter().all(|it| *it), "{} {} {}", side.name, offset, length);
            }
        }
        // Both ways round.
        let turned = compared(&right, &left, block_size, &tuning).unwrap();
        let turn = |comparison| match comparison {
            Comparison::Written => Comparison::Zeroed,
            Comparison::Zeroed => Comparison::Written,
            other => other,
        };
        let turned: Vec<_> = turned
            .into_iter()
            .map(|run| ComparedRun::new(run.first_block, run.count, turn(run.comparison)))
            .collect();
        prop_assert_eq!(turned, expected_with_origins(&left, &right, block_size).0);
        // The rest of the longer one.
        let (short, long) = if left.size() < right.size() { (&left, &right) } else { (&right, &left) };
        let first = first_nonzero(long, short.size(), &tuning, &Progress::new()).unwrap();
        let rest = &long.content[short.content.len()..];
        let expected = rest.iter().position(|byte| *byte != 0);
        prop_assert_eq!(first, expected.map(|at| (short.content.len() + at) as u64));
    });
}

#[test]
fn blocks_longer_than_the_buffer() {
    const MIB: usize = 1 << 20;
    let common = [(5 * MIB, Fill::Zeros), (100, Fill::Data(7)), (75 * MIB, Fill::Noise)];
    let left = [&common[..], &[(60 * MIB, Fill::Data(0)), (9, Fill::Data(1))]].concat();
    let right = [&common[..], &[(61 * MIB, Fill::Zeros)]].concat();
    let [left, right] =
        [("left", left), ("right", right)].map(|(name, runs)| Overlay::new(name, None, &runs));
    for block_size in [8 << 20, 64 << 20] {
        let expected = expected(&left.content, &right.content, block_size);
        for threads in [1, 3] {
            let runs = compared(&left, &right, block_size, &tuning(threads, 1 << 16, 4)).unwrap();
            assert_eq!(runs, expected);
        }
    }
    // Only the side with data is read, in parts.
    let reads = right.reads.lock().unwrap();
    assert!(reads.iter().all(|(offset, length)| *length <= 4 * MIB && *offset < 81 << 20));
}

#[test]
fn the_first_error_names_its_image() {
    for (bad_left, bad_right, name) in [
        (Some(2_000_000), Some(2_000_000), "left"),
        (Some(2_000_000), Some(1_000_000), "right"),
        (None, Some(0), "right"),
        (Some(2_999_999), None, "left"),
    ] {
        for threads in [1, 3] {
            let runs = [(3_000_000, Fill::Noise)];
            let mut left = Overlay::new("left", None, &runs);
            let mut right = Overlay::new("right", None, &runs);
            (left.bad_byte, right.bad_byte) = (bad_left, bad_right);
            let error = compared(&left, &right, 65_536, &tuning(threads, 65_536, 4)).unwrap_err();
            let at = bad_left.unwrap_or(u64::MAX).min(bad_right.unwrap_or(u64::MAX));
            let expected = format!("{name}: bad sector (offset {})", at / 65_536 * 65_536);
            assert_eq!(error.to_string(), expected);
        }
    }
}

#[test]
fn changed_images_cancelled_passes_and_failed_sinks_are_errors() {
    let runs = [(300_000, Fill::Noise), (300_000, Fill::Zeros)];
    let [left, right] = ["left", "right"].map(|name| Overlay::new(name, None, &runs));
    for side in 0..2 {
        let mut sides = [left.clone(), right.clone()];
        sides[side].changed = true;
        let error = compared(&sides[0], &sides[1], 4096, &Tuning::default()).unwrap_err();
        assert_eq!(error.to_string(), format!("{}: changed", sides[side].name));
    }
    let changed = Overlay { changed: true, ..left.clone() };
    assert!(first_nonzero(&changed, 0, &Tuning::default(), &Progress::new()).is_err());

    let block_size = BlockSize::DEFAULT;
    let progress = Progress::new();
    progress.cancel();
    let mut sink = Collect::default();
    let error = compare(&left, &right, block_size, &mut sink, &Tuning::default(), &progress);
    assert!(matches!(error, Err(Error::Cancelled)));
    assert!(sink.runs.is_empty());
    let error = first_nonzero(&left, 0, &Tuning::default(), &progress);
    assert!(matches!(error, Err(Error::Cancelled)));

    for most in 0..2 {
        let mut sink = Collect { most: Some(most), ..Collect::default() };
        let progress = Progress::new();
        let error = compare(&left, &right, block_size, &mut sink, &Tuning::default(), &progress);
        assert_eq!(error.unwrap_err().to_string(), "the disk is full");
    }
}

#[test]
fn invalid_origins_are_errors() {
    let size = 300_000;
    let lie = |offset, length| Origin { offset, length, kind: OriginKind::Zero };
    for origin in [lie(100_000, 0), lie(100_000, size), lie(0, 1), lie(100_000, u64::MAX)] {
        let runs = [(100_000, Fill::Data(1)), (200_000, Fill::Data(2))];
        let sound = Overlay::new("sound", None, &runs);
        let lying = Overlay { lie: Some((100_000, origin)), ..sound.clone() };
        for (left, right) in [(&sound, &lying), (&lying, &sound)] {
            let error = compared(left, right, 65_536, &tuning(2, 65_536, 4));
            assert!(matches!(error, Err(Error::Extent { .. })), "{origin:?}: {error:?}");
        }
        let error = first_nonzero(&lying, 100_000, &Tuning::default(), &Progress::new());
        assert!(matches!(error, Err(Error::Extent { .. })), "{origin:?}: {error:?}");
    }
}

#[test]
fn huge_zeros_and_empty_images_cost_nothing() {
    struct Hole(u64, AtomicUsize);
    impl Source for Hole {
        fn size(&self) -> u64 {
            self.0
        }
        fn extent(&self, offset: u64, limit: u64) -> Result<Extent> {
            self.1.fetch_add(1, Ordering::Relaxed);
            Ok(Extent { offset, length: limit, kind: ExtentKind::Zero })
        }
        fn read_exact_at(&self, _: &mut [u8], _: u64) -> Result<()> {
            panic!("nothing is to be read");
        }
    }
    let hole = |size| Hole(size, AtomicUsize::new(0));
    let (left, right) = (hole(u64::MAX), hole(u64::MAX - 5));
    let runs = compared(&left, &right, 512, &Tuning::default()).unwrap();
    let run = ComparedRun::new(0, 1 << 55, Comparison::Zeros);
    assert_eq!(runs, [run]);
    assert!(left.1.into_inner() + right.1.into_inner() < 6);
    assert_eq!(compared(&hole(0), &hole(9), 512, &Tuning::default()).unwrap(), []);
    let first = first_nonzero(&hole(1 << 62), 7, &Tuning::default(), &Progress::new());
    assert_eq!(first.unwrap(), None);
}

/// Extents of one byte take neither memory nor time without end.
#[test]
fn tiny_extents_of_long_blocks() {
    let runs = [(3 << 20, Fill::Data(0)), (9, Fill::Data(1)), (1 << 20, Fill::Zeros)];
    let left = Overlay { longest: Some(1), ..Overlay::new("left", None, &runs) };
    let right = Overlay::new("right", None, &[(5 << 20, Fill::Zeros)]);
    for block_size in [512, 8 << 20] {
        let runs = compared(&left, &right, block_size, &tuning(2, 1 << 16, 4)).unwrap();
        assert_eq!(runs, expected(&left.content, &right.content, block_size));
    }
}

/// The other threads must not wait for a chunk that never comes.
#[test]
fn panic_of_a_source_ends_the_pass() {
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
    }
    let run = || compared(&Panics, &Panics, 65_536, &tuning(4, 65_536, 4));
    assert!(catch_unwind(run).is_err());
}

/// An image whose content is lent in parts, and whose file may be truncated while it is lent.
struct Lending {
    image: Image,
    most: usize,
    /// Offsets at multiples of this are not lent.
    refused: u64,
    /// The file, and the content to restore before a read.
    cut: Option<(File, Vec<u8>)>,
    lent: AtomicUsize,
}

impl Source for Lending {
    fn size(&self) -> u64 {
        self.image.size()
    }
    fn extent(&self, offset: u64, limit: u64) -> Result<Extent> {
        self.image.extent(offset, limit)
    }
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        if let Some((file, content)) = &self.cut {
            file.write_all_at(content, 0).unwrap();
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
        if let Some((file, _)) = &self.cut {
            file.set_len(0).unwrap();
        }
        Some(lent)
    }
}

#[test]
#[ignore = "slow"]
fn lent_content_compares_in_the_same_way() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = |name| folder.path().join(name);
    let mut content = noise(5 << 20, 7);
    content[1 << 20..][..300_000].fill(0);
    std::fs::write(path("left"), &content).unwrap();
    let mut other = content.clone();
    other[..70_000].fill(0);
    other[3 << 20] ^= 1;
    other[(3 << 20) + 700_000] ^= 1;
    std::fs::write(path("right"), &other).unwrap();
    let lending = |name, most, refused, cut: Option<&[u8]>| Lending {
        image: OpenOptions::new().open(path(name)).unwrap(),
        most,
        refused,
        cut: cut.map(|content| {
            (File::options().write(true).open(path(name)).unwrap(), content.to_vec())
        }),
        lent: AtomicUsize::new(0),
    };
    let mut lent = 0;
    for most in [0, 1000, 4096, 70_001, usize::MAX] {
        for (refused, cut) in [(3 << 20, false), (512 << 10, false), (u64::MAX, true)] {
            let left = lending("left", most, refused, None);
            let right = lending("right", usize::MAX, 1 << 20, cut.then_some(&other[..]));
            for block_size in [4096, 65_536, 1 << 20] {
                let threads = if cut { 1 } else { 2 };
                let runs =
                    compared(&left, &right, block_size, &tuning(threads, 1 << 18, 4)).unwrap();
                assert_eq!(runs, expected(&content, &other, block_size), "{most} {refused} {cut}");
            }
            lent += left.lent.into_inner() + right.lent.into_inner();
            std::fs::write(path("right"), &other).unwrap();
        }
    }
    assert!(lent > 0 || !tells_what_is_cached(), "nothing was lent");
}

/// Returns whether this kernel reports the pages in the page cache.
fn tells_what_is_cached() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(6), Some(5))
}

/// Two overlays over one base, which is raw, qcow2 or compressed: only what they hold is read.
#[test]
fn overlays_are_compared_without_their_base() {
    if common::lacks_qemu() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    make_raw(folder, "disk.raw", "8m:R 8m:- 8m:R");
    for (name, options) in [("raw", ""), ("qcow2", "-O qcow2"), ("packed", "-c -O qcow2")] {
        sh(folder, &format!("qemu-img convert {options} disk.raw base.{name}"));
        let format = if name == "raw" { "raw" } else { "qcow2" };
        for overlay in ["a", "b"] {
            let create = "qemu-img create -q -f qcow2 -F";
            sh(folder, &format!("{create} {format} -b base.{name} {overlay}"));
        }
        qemu_io(folder, "a", &["write -P 1 0 128k".into(), "write -z 17m 64k".into()]);
        qemu_io(folder, "b", &["write -P 1 64k 128k".into(), "write -P 5 9m 64k".into()]);
        let views = ["a", "b"].map(|name| common::our_view(&open(folder, name)));
        // Clusters that either holds, from the one or from the base, and the tables of all files.
        let held = 64 << 10;
        for block_size in [4096, 65_536, 1 << 20] {
            let [a, b] = ["a", "b"].map(|name| open(folder, name));
            let before = [a.bytes_read(), b.bytes_read()];
            let runs = compared(&a, &b, block_size, &tuning(2, 1 << 20, 4)).unwrap();
            // No block without data on either side is shared.
            assert_eq!(runs, expected(&views[0], &views[1], block_size), "{name} {block_size}");
            let read = [a.bytes_read() - before[0], b.bytes_read() - before[1]];
            // Zeros of one side and holes are not read. Tables are read in windows.
            let tables = 4 * held;
            assert!(read[0] >= 3 * held && read[0] <= 3 * held + tables, "{name}: {read:?}");
            assert!(read[1] >= 5 * held && read[1] <= 5 * held + tables, "{name}: {read:?}");
        }
    }
}
