//! A file allocation table in memory, as runs of clusters of which each links to the following one.
//!
//! A run takes 8 bytes, however long it is. The tables of most volumes are a few thousand runs.

use super::heap::{FIRST, Heap};

/// A file allocation table.
#[derive(Debug)]
pub(crate) struct Runs {
    heap: Heap,
    /// Sorted by first cluster, without gaps.
    runs: Vec<Stored>,
    /// Number after the last cluster whose entry is known.
    limit: u32,
}

/// A run: the clusters up to the first one of the next run.
#[derive(Clone, Copy, Debug)]
struct Stored {
    first: u32,
    /// The entry of the last cluster, or of all clusters for [`FREE`] and [`BAD`].
    last: u32,
}

/// Clusters in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    /// A number of clusters with empty entries.
    Free(u32),
    /// A number of clusters that are marked as bad.
    Bad(u32),
    /// A number of clusters that each link to the following one, of which the last one ends a chain.
    End(u32),
    /// A number of clusters that each link to the following one, of which the last one links to another cluster.
    Link(u32, u32),
    /// The entry is not known.
    Unknown,
}

/// Makes [`Runs`] from entries in the order of the clusters.
pub(crate) struct Builder {
    runs: Runs,
}

impl Builder {
    pub fn new(heap: Heap) -> Self {
        Self { runs: Runs { heap, runs: Vec::new(), limit: FIRST } }
    }

    /// Adds the entry of the next cluster: [`FREE`], [`BAD`], [`END`] or the number of a cluster. Ignores entries
    /// of no cluster. Returns `false` if the table has too many runs.
    pub fn push(&mut self, entry: u32) -> bool {
        let Runs { heap, runs, limit } = &mut self.runs;
        let cluster = *limit;
        if cluster == heap.limit() {
            return true;
        }
        let is_full = runs.len() == MAX_RUNS;
        match runs.last_mut().filter(|run| is_alike(run.last, entry, cluster)) {
            Some(run) => run.last = entry,
            None if is_full => return false,
            None => runs.push(Stored { first: cluster, last: entry }),
        }
        *limit += 1;
        true
    }

    pub fn finish(mut self) -> Runs {
        self.runs.runs.shrink_to_fit();
        self.runs
    }
}

/// Returns whether a run whose last entry is `last` continues with the entry of `cluster`.
fn is_alike(last: u32, entry: u32, cluster: u32) -> bool {
    match entry {
        FREE | BAD => last == entry,
        _ => last == cluster,
    }
}

impl Runs {
    /// Returns the area of the clusters.
    pub fn heap(&self) -> &Heap {
        &self.heap
    }

    /// Returns the clusters in a row from a cluster on.
    pub fn run(&self, cluster: u32) -> Run {
        let index = self.runs.partition_point(|run| run.first <= cluster);
        match index.checked_sub(1) {
            Some(index) if cluster < self.limit => self.at(index, cluster),
            _ => Run::Unknown,
        }
    }

    /// Returns all runs with their first clusters.
    pub fn all(&self) -> impl Iterator<Item = (u32, Run)> {
        self.runs.iter().enumerate().map(|(index, run)| (run.first, self.at(index, run.first)))
    }

    fn at(&self, index: usize, cluster: u32) -> Run {
        let end = self.runs.get(index + 1).map_or(self.limit, |next| next.first);
        let count = end - cluster;
        match self.runs[index].last {
            FREE => Run::Free(count),
            BAD => Run::Bad(count),
            END => Run::End(count),
            next => Run::Link(count, next),
        }
    }

    /// Returns the parts of a chain, as first clusters and counts, up to a number of clusters. Ends early where the chain is broken.
    pub fn parts(&self, first: u32, clusters: u64) -> impl Iterator<Item = (u32, u32)> {
        let (mut next, mut left) = (Some(first), clusters);
        std::iter::from_fn(move || {
            let first = next?;
            let (count, follows) = match self.run(first) {
                Run::End(count) => (count, None),
                Run::Link(count, next) => (count, Some(next)),
                _ => return None,
            };
            let count = u32::try_from(left).map_or(count, |left| count.min(left));
            next = follows;
            left -= u64::from(count);
            (count > 0).then_some((first, count))
        })
    }
}

/// The entry of a free cluster. exFAT has it also for clusters whose owner needs no chain.
pub(crate) const FREE: u32 = 0;

/// The entry of a bad cluster.
pub(crate) const BAD: u32 = 0xffff_fff7;

/// The entry of the last cluster of a chain.
pub(crate) const END: u32 = 0xffff_ffff;

/// Maximum number of runs of a table that are kept, of 8 bytes each.
/// Limit in runs.
const MAX_RUNS: usize = 1 << 23;

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(entries: &[u32]) -> Runs {
        let heap = Heap { start: 0, cluster_size: 512, count: entries.len() as u32 };
        let mut builder = Builder::new(heap);
        assert!(entries.iter().all(|entry| builder.push(*entry)));
        builder.finish()
    }

    #[test]
    fn runs_and_parts() {
        // Clusters:      2  3  4    5     6     7    8    9  10
        let runs = runs(&[3, 4, 9, FREE, FREE, BAD, END, 10, 8]);
        let all: Vec<_> = runs.all().collect();
        let expected = [
            (2, Run::Link(3, 9)),
            (5, Run::Free(2)),
            (7, Run::Bad(1)),
            (8, Run::End(1)),
            (9, Run::Link(2, 8)),
        ];
        assert_eq!(all, expected);
        assert_eq!(runs.run(3), Run::Link(2, 9));
        assert_eq!((runs.run(1), runs.run(11)), (Run::Unknown, Run::Unknown));
        assert_eq!(runs.parts(2, 99).collect::<Vec<_>>(), [(2, 3), (9, 2), (8, 1)]);
        assert_eq!(runs.parts(3, 3).collect::<Vec<_>>(), [(3, 2), (9, 1)]);
        assert_eq!(runs.parts(5, 3).count(), 0);
    }

    #[test]
    fn circles_are_bounded_by_the_number_of_clusters() {
        let runs = runs(&[3, 2, 4]);
        assert_eq!(runs.parts(2, 5).map(|(_, count)| count).sum::<u32>(), 5);
        assert_eq!(runs.parts(4, 3).count(), 3);
    }
}
