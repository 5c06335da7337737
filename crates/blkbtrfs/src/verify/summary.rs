//! Summary of a verification, and its counters.

use std::sync::atomic::{AtomicU64, Ordering};

use super::finding::Category;
use crate::filesystem::FileSystem;
use crate::used::Used;

/// Summary of what was verified and what was wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Amounts that were read and compared.
    pub verified: Verified,
    /// Number of wrong blocks in each category, in the order of [`Category::ALL`].
    findings: [u64; Category::ALL.len()],
    /// Number of missing devices.
    pub missing_devices: usize,
    /// Bytes on missing devices that could not be verified, because parity cannot rebuild these
    /// mirrors of data and tree blocks either.
    pub missing_bytes: u64,
    /// Number of references without a good tree block, because no mirror is good or because the
    /// block does not match.
    pub lost_blocks: u64,
    /// Bytes in use, and whether checksums protect them. `None` if the trees that count them are
    /// damaged, which is a finding, or on missing devices.
    pub used: Option<Used>,
    /// Whether trees were compared with each other. False if blocks were lost or invalid.
    pub compared: bool,
}

/// Amounts that were read and compared, counting every mirror.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// Number of superblocks.
    pub superblocks: u64,
    /// Number of tree blocks.
    pub tree_blocks: u64,
    /// Bytes of tree blocks.
    pub tree_bytes: u64,
    /// Bytes of data with checksums.
    pub data_bytes: u64,
    /// Bytes of data without checksums that were read, and compared with other mirrors.
    pub unchecked_bytes: u64,
    /// Number of checksums, including those in the headers of tree blocks and superblocks.
    pub checksums: u64,
    /// Bytes of data and tree blocks on missing devices that were rebuilt from parity. Included in
    /// the other counts.
    pub rebuilt_bytes: u64,
    /// Bytes of data in rows whose parity was computed.
    pub parity_bytes: u64,
}

impl Summary {
    /// Returns whether there are no findings.
    pub fn is_clean(&self) -> bool {
        self.findings.iter().all(|count| *count == 0)
    }

    /// Returns whether everything could be verified.
    pub fn is_complete(&self) -> bool {
        self.lacks_nothing() && self.used.is_some()
    }

    /// Returns whether all devices and all referenced tree blocks are present.
    fn lacks_nothing(&self) -> bool {
        self.missing_devices == 0 && self.missing_bytes == 0 && self.lost_blocks == 0
    }

    /// Returns the number of wrong blocks in one category.
    pub fn count(&self, category: Category) -> u64 {
        self.findings[category as usize]
    }
}

/// Counters of a summary, updated by all threads.
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
    /// Returns the summary so far, without the results of comparing trees.
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
