//! Bytes in use, and whether checksums protect them.

/// Bytes in use, each counted once regardless of mirrors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Used {
    /// Bytes of tree blocks, each of which has a checksum.
    pub metadata: u64,
    /// Bytes of data with checksums.
    pub data: u64,
    /// Bytes of data without checksums.
    pub unprotected: Unprotected,
}

impl Used {
    /// Returns the sum, which the superblock also stores.
    pub fn total(&self) -> u64 {
        let all = [self.metadata, self.data, self.unprotected.total()];
        all.into_iter().fold(0, u64::saturating_add)
    }
}

/// Bytes of data without checksums, each counted once regardless of mirrors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unprotected {
    /// Bytes in files without checksums (`nodatasum`, or `nodatacow`, which implies it). They were
    /// read, and their mirrors are equal unless there is a finding.
    pub nodatasum: u64,
    /// Bytes reserved for files and not yet written. Files read them as zeros.
    pub preallocated: u64,
    /// Bytes of the free space cache. They were read. The kernel checks the cache and rebuilds it.
    pub internal: u64,
    /// Parts of extents that no file uses any more.
    pub other: u64,
}

impl Unprotected {
    /// Returns the sum.
    pub fn total(&self) -> u64 {
        self.read().saturating_add(self.not_read())
    }

    /// Returns the bytes that were read, although nothing shows whether they are correct.
    pub fn read(&self) -> u64 {
        self.nodatasum.saturating_add(self.internal)
    }

    /// Returns the bytes that were not read, because no file uses their content.
    pub fn not_read(&self) -> u64 {
        self.preallocated.saturating_add(self.other)
    }
}
