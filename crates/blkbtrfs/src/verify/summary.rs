//! What was looked at, and the counters that threads share for it.

use std::sync::atomic::{AtomicU64, Ordering};

use super::finding::Category;
use crate::filesystem::FileSystem;
use crate::used::Used;

/// What was looked at and what was wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// What was read and compared.
    pub verified: Verified,
    /// Blocks that are wrong, by [`Category::ALL`].
    pub findings: [u64; Category::ALL.len()],
    /// Devices that are not there.
    pub missing_devices: usize,
    /// Bytes on missing devices that could not be looked at: mirrors of data and tree blocks that
    /// parity does not give, either.
    pub missing_bytes: u64,
    /// References to tree blocks that lead to no good one: it has no good mirror, or is another
    /// one.
    pub lost_blocks: u64,
    /// Bytes in use by what protects them; `None` if the trees that tell are damaged, which is a
    /// finding, or on missing devices.
    pub used: Option<Used>,
    /// Whether trees were compared with each other: not if a part of one is lost or makes no sense.
    pub compared: bool,
}

/// What was read and compared, every mirror of it counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Superblocks.
    pub superblocks: u64,
    /// Tree blocks.
    pub tree_blocks: u64,
    /// Bytes of tree blocks.
    pub tree_bytes: u64,
    /// Bytes of data with checksums.
    pub data_bytes: u64,
    /// Bytes of data without checksums that were read, and compared with other mirrors.
    pub unchecked_bytes: u64,
    /// Checksums, those in the heads of tree blocks and superblocks included.
    pub checksums: u64,
    /// Bytes of these, of data and tree blocks, that are on missing devices: computed from parity.
    pub rebuilt_bytes: u64,
    /// Bytes of data in rows whose parity was computed.
    pub parity_bytes: u64,
}

impl Summary {
    /// Whether nothing wrong was found.
    pub fn is_clean(&self) -> bool {
        self.findings.iter().all(|count| *count == 0)
    }

    /// Whether everything was there to be looked at.
    pub fn is_complete(&self) -> bool {
        self.lacks_nothing() && self.used.is_some()
    }

    /// Whether all devices, and all tree blocks that something leads to, are there.
    fn lacks_nothing(&self) -> bool {
        self.missing_devices == 0 && self.missing_bytes == 0 && self.lost_blocks == 0
    }

    /// Blocks of one category that are wrong.
    pub fn count(&self, category: Category) -> u64 {
        self.findings[category as usize]
    }
}

/// The counts behind a summary, which all threads add to.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) superblocks: AtomicU64,
    pub(super) tree_blocks: AtomicU64,
    pub(super) tree_bytes: AtomicU64,
    pub(super) data_bytes: AtomicU64,
    pub(super) unchecked_bytes: AtomicU64,
    pub(super) checksums: AtomicU64,
    pub(super) rebuilt_bytes: AtomicU64,
    pub(super) parity_bytes: AtomicU64,
    pub(super) findings: [AtomicU64; Category::ALL.len()],
    pub(super) missing_bytes: AtomicU64,
    pub(super) lost_blocks: AtomicU64,
}

impl Counters {
    /// The summary so far, without what trees were compared for.
    pub(super) fn summary(&self, filesystem: &FileSystem) -> Summary {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Summary {
            verified: Verified {
                superblocks: value(&self.superblocks),
                tree_blocks: value(&self.tree_blocks),
                tree_bytes: value(&self.tree_bytes),
                data_bytes: value(&self.data_bytes),
                unchecked_bytes: value(&self.unchecked_bytes),
                checksums: value(&self.checksums),
                rebuilt_bytes: value(&self.rebuilt_bytes),
                parity_bytes: value(&self.parity_bytes),
            },
            findings: self.findings.each_ref().map(value),
            missing_devices: filesystem.missing_devices().len(),
            missing_bytes: value(&self.missing_bytes),
            lost_blocks: value(&self.lost_blocks),
            used: None,
            compared: false,
        }
    }
}

pub(super) fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}
