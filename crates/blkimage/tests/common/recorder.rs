//! A storage that records what is announced and read, and a pass over an image of it.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use blkimage::{Extent, ExtentKind, Image, Source, Storage};

/// A file in memory that is announced.
#[derive(Clone)]
pub struct Recorder {
    bytes: Arc<[u8]>,
    read_ahead: u64,
    log: Arc<Mutex<Log>>,
}

/// What was done with a [`Recorder`].
#[derive(Default)]
struct Log {
    phase: Phase,
    /// Ranges that were announced, by [`Phase`].
    announced: [Vec<Range<u64>>; 3],
    read: [Vec<Range<u64>>; 3],
    /// Number of times that each byte was announced.
    times: Vec<u8>,
    /// Bytes that were read as a part of a table.
    tables: Vec<bool>,
    /// The first bytes that were read as data and had not been announced.
    missed: Option<Range<u64>>,
}

/// What the caller of the image does.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Phase {
    /// Opens the image or asks for extents, which reads tables.
    #[default]
    Tables,
    Announces,
    Reads,
}

impl Recorder {
    pub fn new(bytes: Vec<u8>, read_ahead: u64) -> Self {
        let log =
            Log { times: vec![0; bytes.len()], tables: vec![false; bytes.len()], ..Log::default() };
        Self { bytes: bytes.into(), read_ahead, log: Arc::new(Mutex::new(log)) }
    }

    pub fn begin(&self, phase: Phase) {
        self.log.lock().unwrap().phase = phase;
    }

    pub fn is_announced(&self) -> bool {
        self.log.lock().unwrap().announced.iter().any(|ranges| !ranges.is_empty())
    }

    /// Returns the number of bytes of tables that were read without having been announced, and of all that were read.
    #[allow(dead_code, reason = "each test program uses its part")]
    pub fn tables(&self) -> (u64, u64) {
        let log = self.log.lock().unwrap();
        let [read, announced] = [&log.read, &log.announced].map(|it| &it[Phase::Tables as usize]);
        let is_announced =
            |it: &&Range<u64>| announced.iter().any(|by| by.start <= it.start && it.end <= by.end);
        let length = |it: &Range<u64>| it.end - it.start;
        let all = read.iter().map(length).sum();
        (read.iter().filter(|it| !is_announced(it)).map(length).sum(), all)
    }

    /// Fails unless all data was announced before it was read, once unless clusters may share sectors, and nothing else was
    /// announced but for `more` bytes and one in twenty.
    #[track_caller]
    pub fn check(&self, is_shared: bool, more: u64) {
        let log = self.log.lock().unwrap();
        assert_eq!(log.missed, None, "was read and not announced");
        let mut is_read = vec![false; self.bytes.len()];
        let read = log.read[Phase::Reads as usize].iter();
        read.for_each(|it| is_read[it.start as usize..it.end as usize].fill(true));
        let read = is_read.iter().filter(|it| **it).count() as u64;
        let announced = log.announced[1].iter().chain(&log.announced[2]);
        let announced: u64 = announced.map(|it| it.end - it.start).sum();
        assert!(announced <= read + read / 20 + more, "{announced} bytes for {read}");
        if !is_shared {
            let again = log.times.iter().position(|times| *times > 1);
            assert_eq!(again, None, "was announced again");
        }
    }
}

impl Storage for Recorder {
    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at_most(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let start = offset.min(self.size()) as usize;
        let count = buf.len().min(self.bytes.len() - start);
        buf[..count].copy_from_slice(&self.bytes[start..start + count]);
        let mut log = self.log.lock().unwrap();
        let (phase, range) = (log.phase, offset..offset + count as u64);
        let bytes = start..start + count;
        let is_known = |at: usize| log.times[at] > 0 || log.tables[at];
        if phase == Phase::Reads && !bytes.clone().all(is_known) {
            log.missed.get_or_insert(range.clone());
        }
        // Longer reads come from a decoder.
        if phase == Phase::Tables && count <= 4096 {
            log.tables[bytes].fill(true);
        }
        log.read[phase as usize].push(range);
        Ok(count)
    }

    fn will_need(&self, offset: u64, length: u64) {
        assert!(self.read_ahead > 0 && length > 0);
        assert!(offset.checked_add(length).is_some_and(|end| end <= self.size()));
        let mut log = self.log.lock().unwrap();
        let phase = log.phase;
        log.announced[phase as usize].push(offset..offset + length);
        if phase != Phase::Tables {
            let times = &mut log.times[offset as usize..][..length as usize];
            times.iter_mut().for_each(|times| *times = times.saturating_add(1));
        }
    }

    fn read_ahead(&self) -> u64 {
        self.read_ahead
    }
}

/// Returns the content of an image, read from start to end as a pass does: extents are asked for and announced as far ahead as
/// the image wants.
pub fn pass(image: &Image, files: &[Recorder]) -> Vec<u8> {
    let begin = |phase| files.iter().for_each(|file| file.begin(phase));
    let mut content = vec![0; image.size() as usize];
    let mut planned: VecDeque<Extent> = VecDeque::new();
    let (mut at, mut bytes) = (0, 0);
    loop {
        while at < image.size() && (planned.is_empty() || bytes < image.read_ahead()) {
            begin(Phase::Tables);
            let extent = image.extent(at, image.size() - at).unwrap();
            let next = Extent { length: extent.length.min(CHUNK - at % CHUNK), ..extent };
            at += next.length;
            if next.kind == ExtentKind::Zero {
                continue;
            }
            begin(Phase::Announces);
            image.will_need(next.offset, next.length);
            bytes += next.length;
            planned.push_back(next);
        }
        let Some(next) = planned.pop_front() else { break };
        bytes -= next.length;
        begin(Phase::Reads);
        let place = next.offset as usize..next.end() as usize;
        image.read_exact_at(&mut content[place], next.offset).unwrap();
    }
    begin(Phase::Reads);
    image.check_unchanged().unwrap();
    content
}

const CHUNK: u64 = 1 << 20;
