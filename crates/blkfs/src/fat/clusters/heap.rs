//! The area of a volume that is divided into clusters.

/// Number of the first cluster.
pub(crate) const FIRST: u32 = 2;

/// The area of a volume that is divided into clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heap {
    /// Offset of the first cluster in bytes.
    pub start: u64,
    /// Size of a cluster in bytes, a power of two.
    pub cluster_size: u64,
    /// Number of clusters.
    pub count: u32,
}

impl Heap {
    /// Returns the number after the last cluster.
    pub fn limit(&self) -> u32 {
        self.count.saturating_add(FIRST)
    }

    /// Returns whether there is a cluster with a number.
    pub fn contains(&self, cluster: u32) -> bool {
        (FIRST..self.limit()).contains(&cluster)
    }

    /// Returns the offset of a cluster in bytes.
    pub fn offset(&self, cluster: u32) -> u64 {
        self.start.saturating_add(self.size(u64::from(cluster.saturating_sub(FIRST))))
    }

    /// Returns the size of a number of clusters in bytes.
    pub fn size(&self, clusters: u64) -> u64 {
        clusters.saturating_mul(self.cluster_size)
    }

    /// Returns the offset of the end of the last cluster in bytes.
    pub fn end(&self) -> u64 {
        self.offset(self.limit())
    }
}
