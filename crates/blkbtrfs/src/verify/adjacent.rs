//! Joins adjacent findings with one cause.
//!
//! A truncated device is one finding and not one for each sector. Several threads report findings,
//! so a few findings are held back until no other joins them. At the end, all of them are sorted
//! and joined once more.

use super::finding::{Finding, Problem, Subject};
use crate::backref::{Owner, Owners};

/// Findings that later ones may join.
pub(super) struct Joiner {
    pending: Vec<Finding>,
    max_owners: usize,
}

impl Joiner {
    pub(super) fn new(max_owners: usize) -> Self {
        Self { pending: Vec::new(), max_owners }
    }

    /// Adds a finding. Returns one that was held back long enough, if any.
    pub(super) fn add(&mut self, finding: Finding) -> Option<Finding> {
        if let Some(index) = self.pending.iter().position(|it| goes_on(it, &finding)) {
            let mut joined = self.pending.remove(index);
            join(&mut joined, finding, self.max_owners);
            // Moves the joined finding to the end of the queue.
            self.pending.push(joined);
            return None;
        }
        self.pending.push(finding);
        (self.pending.len() > MAX_PENDING).then(|| self.pending.remove(0))
    }

    /// Returns the remaining findings.
    pub(super) fn take(&mut self) -> Vec<Finding> {
        let mut pending = std::mem::take(&mut self.pending);
        let max_owners = self.max_owners;
        // Sorts by address. Findings with equal addresses stay in the order in which they were
        // found.
        pending.sort_by_key(|it| (it.place.map(|it| (it.device, it.physical)), it.logical));
        let mut all: Vec<Finding> = Vec::with_capacity(pending.len());
        for finding in pending {
            match all.last_mut().filter(|last| goes_on(last, &finding)) {
                Some(last) => join(last, finding, max_owners),
                None => all.push(finding),
            }
        }
        all
    }
}

/// Returns whether `next` begins where `first` ends and has the same defect.
fn goes_on(first: &Finding, next: &Finding) -> bool {
    let end = |start: Option<u64>| start.and_then(|start| start.checked_add(first.length));
    let places = match (first.place, next.place) {
        (Some(first_place), Some(place)) => {
            (first_place.device, first_place.mirror) == (place.device, place.mirror)
                && end(Some(first_place.physical)) == Some(place.physical)
        }
        (None, None) => first.logical.is_some(),
        _ => false,
    };
    let addresses = match (first.logical, next.logical) {
        (Some(_), Some(logical)) => end(first.logical) == Some(logical),
        (None, None) => true,
        _ => false,
    };
    places
        && addresses
        && first.subject == next.subject
        && is_one_cause(first, next)
        && (first.mirrors, &first.good_mirrors, first.rebuildable)
            == (next.mirrors, &next.good_mirrors, next.rebuildable)
}

fn is_one_cause(first: &Finding, next: &Finding) -> bool {
    let may_join = match first.subject {
        Subject::Data | Subject::Parity => true,
        // Each wrong reference is a separate case.
        Subject::TreeBlock { .. } => {
            first.checksums().is_some() || !matches!(first.problem, Problem::Block(_))
        }
        Subject::Superblock(_)
        | Subject::Device
        | Subject::Chunk
        | Subject::Tree(_)
        | Subject::Inode { .. }
        | Subject::FileSystem => false,
    };
    may_join
        && first.category() == next.category()
        && std::mem::discriminant(&first.problem) == std::mem::discriminant(&next.problem)
        && first.checksums().is_some() == next.checksums().is_some()
}

fn join(first: &mut Finding, next: Finding, max_owners: usize) {
    first.length = first.length.saturating_add(next.length);
    first.blocks += next.blocks;
    first.owners.is_partial |= next.owners.is_partial;
    if first.owners.problem.is_none() {
        first.owners.problem = next.owners.problem;
    }
    for owner in next.owners.list {
        add_owner(&mut first.owners, owner, max_owners);
    }
}

/// Adds an owner, unless it is already listed.
fn add_owner(owners: &mut Owners, owner: Owner, max_owners: usize) {
    let is_same = |known: &Owner| match (known, &owner) {
        (
            Owner::File { subvolume, inode, .. },
            Owner::File { subvolume: other_subvolume, inode: other, .. },
        ) => (subvolume, inode) == (other_subvolume, other),
        (known, owner) => known == owner,
    };
    if owners.list.iter().any(is_same) {
        return;
    }
    if owners.list.len() < max_owners {
        owners.list.push(owner);
    } else {
        owners.is_partial = true;
    }
}

/// Maximum number of findings held back. Usually more than the threads and mirrors, so that
/// parallel findings do not push each other out.
const MAX_PENDING: usize = 64;
