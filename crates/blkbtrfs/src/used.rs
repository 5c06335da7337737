//! Bytes in use, and what protects them.

/// Bytes in use, each counted once however many mirrors it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// In tree blocks, each of which has a checksum.
    pub metadata: u64,
    /// Of data with checksums.
    pub data: u64,
    /// Of data without.
    pub unprotected: Unprotected,
}

impl Used {
    /// All of them: what the superblock says is in use.
    pub fn total(&self) -> u64 {
        let all = [self.metadata, self.data, self.unprotected.total()];
        all.into_iter().fold(0, u64::saturating_add)
    }
}

/// Bytes of data without checksums, each counted once however many mirrors it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unprotected {
    /// In files that have none: `nodatasum`, and `nodatacow`, which implies it. It was read, and its
    /// mirrors are equal where there is no finding.
    pub nodatasum: u64,
    /// Reserved for files and not written yet: files have zeros there, whatever is stored.
    pub preallocated: u64,
    /// In the cache of free space. It was read; the kernel checks it and makes a new one.
    pub internal: u64,
    /// Parts of extents that no file has now.
    pub other: u64,
}

impl Unprotected {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.read().saturating_add(self.not_read())
    }

    /// Those that were read, though nothing tells whether they are right.
    pub fn read(&self) -> u64 {
        self.nodatasum.saturating_add(self.internal)
    }

    /// Those that were not: no file has them.
    pub fn not_read(&self) -> u64 {
        self.preallocated.saturating_add(self.other)
    }
}
