//! Checks that bytes have the checksums that a container states of them.
//!
//! A disk may be read in any order and in parts, and a checksum is of all bytes in order. A thread of its own computes it,
//! in parallel with the pass that reads the disk and mostly from the same page cache. The end of each pass waits for
//! it.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use crate::storage::ahead::Ahead;
use crate::storage::{DigestMismatch, ReadMethod, ServedObject, Storage};
use crate::{Extent, Lent};

/// Bytes whose checksum is stated.
pub(super) struct Stated {
    pub storage: Arc<dyn Storage>,
    pub sum: Box<dyn Sum>,
}

/// A checksum that is stated.
pub(super) trait Sum: Send + Sync {
    /// Returns the bytes of which it is in words.
    fn subject(&self) -> String;

    /// Returns the name of the checksum.
    fn noun(&self) -> &'static str;

    /// Begins to compute it.
    fn begin(&self) -> Box<dyn Running + '_>;
}

/// A checksum that is being computed.
pub(super) trait Running {
    /// Takes the next bytes.
    fn update(&mut self, bytes: &[u8]);

    /// Returns whether it is the one that is stated.
    fn is_stated(self: Box<Self>) -> bool;
}

/// A storage whose bytes come from others that are hashed meanwhile.
pub(super) struct Checked {
    content: Arc<dyn Storage>,
    hashed: Arc<Hashed>,
}

/// The reason why blobs are not what is stated.
#[derive(Clone)]
enum Failure {
    Mismatch(String),
    Unreadable(String),
}

impl From<Failure> for io::Error {
    fn from(failure: Failure) -> Self {
        let kind = io::ErrorKind::InvalidData;
        match failure {
            Failure::Mismatch(reason) => Self::new(kind, DigestMismatch(reason)),
            Failure::Unreadable(reason) => Self::new(kind, reason),
        }
    }
}

/// Blobs that are being hashed.
struct Hashed {
    blobs: Vec<Stated>,
    /// Held while the blobs are hashed.
    work: Mutex<()>,
    verdict: OnceLock<Option<Failure>>,
    /// Whether the verdict is not needed any more.
    is_abandoned: AtomicBool,
}

impl Checked {
    /// Starts to hash `blobs`, on which the bytes of `content` depend.
    pub fn new(content: Arc<dyn Storage>, blobs: Vec<Stated>) -> Self {
        let hashed = Arc::new(Hashed {
            blobs,
            work: Mutex::new(()),
            verdict: OnceLock::new(),
            is_abandoned: AtomicBool::new(false),
        });
        let own = hashed.clone();
        // Without a thread, the end of the pass hashes.
        let _ = thread::Builder::new().name("digests".into()).spawn(move || {
            own.verdict();
        });
        Self { content, hashed }
    }
}

impl Drop for Checked {
    fn drop(&mut self) {
        self.hashed.is_abandoned.store(true, Relaxed);
    }
}

impl Hashed {
    /// Returns the reason if a blob does not match its digest. Hashes the blobs unless another thread does or did.
    fn verdict(&self) -> Option<Failure> {
        let _working = self.work.lock();
        self.verdict.get_or_init(|| self.blobs.iter().find_map(|blob| self.check(blob))).clone()
    }

    fn check(&self, blob: &Stated) -> Option<Failure> {
        let Stated { storage, sum } = blob;
        let mut running = sum.begin();
        let mut buf = vec![0; PIECE];
        let (mut offset, size) = (0, storage.size());
        let mut ahead = Ahead::default();
        while offset < size {
            if self.is_abandoned.load(Relaxed) {
                return Some(Failure::Unreadable("was closed while it was read".into()));
            }
            ahead.announce(storage, offset, size);
            let length = (size - offset).min(PIECE as u64) as usize;
            if let Err(error) = storage.read_exact_at(&mut buf[..length], offset) {
                let subject = sum.subject();
                let reason = format!("{subject} cannot be read at offset {offset}: {error}");
                return Some(Failure::Unreadable(reason));
            }
            running.update(&buf[..length]);
            offset += length as u64;
        }
        match running.is_stated() {
            true => None,
            false => {
                let reason = format!("{} does not match its {}", sum.subject(), sum.noun());
                Some(Failure::Mismatch(reason))
            }
        }
    }
}

impl Storage for Checked {
    fn size(&self) -> u64 {
        self.content.size()
    }

    fn read_at_most(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.content.read_at_most(buf, offset)
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.content.read_exact_at(buf, offset)
    }

    fn lend(&self, offset: u64, length: usize) -> Option<Lent> {
        self.content.lend(offset, length)
    }

    fn extent(&self, offset: u64, limit: u64) -> io::Result<Extent> {
        self.content.extent(offset, limit)
    }

    fn reads_forward(&self) -> bool {
        self.content.reads_forward()
    }

    fn changed(&self) -> Option<String> {
        let blobs = || self.hashed.blobs.iter().find_map(|blob| blob.storage.changed());
        self.content.changed().or_else(blobs)
    }

    fn verify(&self) -> io::Result<()> {
        let hashed = self.hashed.verdict();
        self.content.verify()?;
        hashed.map_or(Ok(()), |failure| Err(failure.into()))
    }

    fn granularity(&self) -> u64 {
        self.content.granularity()
    }

    fn queue_depth(&self) -> usize {
        self.content.queue_depth()
    }

    fn will_need(&self, offset: u64, length: u64) {
        self.content.will_need(offset, length);
    }

    fn read_ahead(&self) -> u64 {
        self.content.read_ahead()
    }

    fn stored(&self) -> Option<u64> {
        self.content.stored()
    }

    fn read_method(&self) -> ReadMethod {
        self.content.read_method()
    }

    fn object(&self) -> Option<ServedObject> {
        self.content.object()
    }
}

/// Bytes that are read and hashed at a time.
const PIECE: usize = 1 << 20;
