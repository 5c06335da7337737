//! Findings side by side with one cause, as one.
//!
//! A device that was cut off is one finding and not one for each sector. Several threads find them,
//! so that a few are held back until no other joins them, and all of them at the end are put in
//! order once more.

use super::finding::{Finding, Problem, Subject};
use crate::backref::{Owner, Owners};

/// Findings that others may join.
pub(super) struct Joiner {
    pending: Vec<Finding>,
    max_owners: usize,
}

impl Joiner {
    pub(super) fn new(max_owners: usize) -> Self {
        Self { pending: Vec::new(), max_owners }
    }

    /// Takes a finding; gives one that was held back long enough.
    pub(super) fn add(&mut self, finding: Finding) -> Option<Finding> {
        if let Some(index) = self.pending.iter().position(|it| goes_on(it, &finding)) {
            let mut joined = self.pending.remove(index);
            join(&mut joined, finding, self.max_owners);
            // The last one that was joined is given last.
            self.pending.push(joined);
            return None;
        }
        self.pending.push(finding);
        (self.pending.len() > MAX_PENDING).then(|| self.pending.remove(0))
    }

    /// Gives what is left.
    pub(super) fn take(&mut self) -> Vec<Finding> {
        let mut pending = std::mem::take(&mut self.pending);
        let max_owners = self.max_owners;
        // By address, and those that stay apart in the order in which they were found.
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

/// Whether `next` begins where `first` ends, and is wrong in the same way.
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
        // Each wrong reference is a case of its own.
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

/// Adds what a block belongs to, if the ones before it do not belong to it as well.
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

/// Findings that are held back: more than threads and mirrors, so that those that work side by side
/// do not push each other out.
const MAX_PENDING: usize = 64;
