//! The clusters that have an owner, so that none is followed twice.

use super::heap::FIRST;
use super::runs::{Run, Runs};

/// The clusters that have an owner.
pub(crate) struct Claims {
    /// A bit for each cluster from the first one on.
    bits: Vec<u64>,
}

/// A chain of clusters, as far as it was followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    /// The number of clusters.
    pub clusters: u64,
    /// How it ends.
    pub stop: Stop,
}

/// How a chain of clusters ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// With the mark of an end.
    End,
    /// With a link to a free cluster.
    Free(u32),
    /// With a link to a cluster that is marked as bad.
    Bad(u32),
    /// With a number that no cluster has.
    Outside(u32),
    /// With a link to a cluster that already has an owner: another one, or this one in a circle.
    Taken(u32),
    /// With a cluster whose entry is not known.
    Unknown,
}

impl Stop {
    /// Returns what is wrong, if anything is that was not reported.
    pub fn defect(self) -> Option<String> {
        match self {
            Self::End | Self::Unknown => None,
            Self::Free(cluster) => Some(format!("leads to cluster {cluster}, which is free")),
            Self::Bad(cluster) => {
                Some(format!("leads to cluster {cluster}, which is marked as bad"))
            }
            Self::Outside(cluster) => {
                Some(format!("leads to cluster {cluster}, which does not exist"))
            }
            Self::Taken(cluster) => Some(format!(
                "leads to cluster {cluster}, which is already in use by it or another file"
            )),
        }
    }
}

impl Claims {
    pub fn new(clusters: u32) -> Self {
        Self { bits: vec![0; clusters.div_ceil(u64::BITS) as usize] }
    }

    /// Claims clusters in a row, up to the first one that has an owner. Returns how many it claimed.
    pub fn claim(&mut self, first: u32, count: u32) -> u32 {
        let Some(start) = first.checked_sub(FIRST) else { return 0 };
        let mut done = 0;
        while done < count {
            let at = u64::from(start) + u64::from(done);
            let Some(word) = self.bits.get_mut((at / 64) as usize) else { break };
            let shift = (at % 64) as u32;
            let length = (64 - shift).min(count - done);
            let free = (*word >> shift).trailing_zeros().min(length);
            *word |= mask(free) << shift;
            done += free;
            if free < length {
                break;
            }
        }
        done
    }

    /// Claims the clusters of a chain, and calls `each` for every part of it.
    pub fn follow(&mut self, runs: &Runs, first: u32, mut each: impl FnMut(u32, u32)) -> Chain {
        let (mut cluster, mut clusters) = (first, 0);
        let stop = loop {
            if !runs.heap().contains(cluster) {
                break Stop::Outside(cluster);
            }
            let (count, next) = match runs.run(cluster) {
                Run::Free(_) => break Stop::Free(cluster),
                Run::Bad(_) => break Stop::Bad(cluster),
                Run::Unknown => break Stop::Unknown,
                Run::End(count) => (count, None),
                Run::Link(count, next) => (count, Some(next)),
            };
            let claimed = self.claim(cluster, count);
            if claimed > 0 {
                each(cluster, claimed);
            }
            clusters += u64::from(claimed);
            if claimed < count {
                break Stop::Taken(cluster + claimed);
            }
            match next {
                Some(next) => cluster = next,
                None => break Stop::End,
            }
        };
        Chain { clusters, stop }
    }
}

/// Returns a word whose lowest `count` bits are set.
fn mask(count: u32) -> u64 {
    if count < u64::BITS { (1 << count) - 1 } else { u64::MAX }
}

#[cfg(test)]
mod tests {
    use super::super::heap::Heap;
    use super::super::runs::{BAD, Builder, END, FREE};
    use super::*;

    #[test]
    fn each_cluster_is_claimed_once() {
        let mut claims = Claims::new(300);
        assert_eq!(claims.claim(100, 30), 30);
        assert_eq!(claims.claim(2, 300), 98);
        assert_eq!(claims.claim(129, 1), 0);
        assert_eq!(claims.claim(130, 172), 172);
        assert_eq!(
            (claims.claim(1, 5), claims.claim(u32::MAX, 5), claims.claim(1000, 5)),
            (0, 0, 0)
        );
    }

    #[test]
    fn ends_of_chains() {
        let entries = [3, END, 2, FREE, 5, BAD, 7, 99, 10];
        let heap = Heap { start: 0, cluster_size: 512, count: entries.len() as u32 };
        let mut builder = Builder::new(heap);
        assert!(entries.iter().all(|entry| builder.push(*entry)));
        let runs = builder.finish();
        let mut claims = Claims::new(heap.count);
        let mut follow = |first| {
            let mut parts = Vec::new();
            let chain = claims.follow(&runs, first, |first, count| parts.push((first, count)));
            assert_eq!(
                parts.iter().map(|(_, count)| u64::from(*count)).sum::<u64>(),
                chain.clusters
            );
            (chain.clusters, chain.stop)
        };
        assert_eq!(follow(2), (2, Stop::End));
        assert_eq!(follow(4), (1, Stop::Taken(2)));
        assert_eq!(follow(6), (1, Stop::Free(5)));
        assert_eq!(follow(8), (1, Stop::Bad(7)));
        assert_eq!(follow(9), (1, Stop::Outside(99)));
        assert_eq!(follow(10), (1, Stop::Taken(10)));
        assert_eq!(follow(0), (0, Stop::Outside(0)));
    }
}
