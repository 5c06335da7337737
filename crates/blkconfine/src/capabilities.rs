//! Capabilities, which give root more rights than the owner of a file has.

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// Reads files and searches folders of other users. Root needs it for images of other users.
pub const READ: CapabilitySet = CapabilitySet::DAC_READ_SEARCH;

/// Queries the page cache for files of other users (`cachestat` since Linux 6.14). It also allows
/// changing their attributes, which only a [`Filter`](crate::Filter) refuses.
pub const QUERY_CACHE: CapabilitySet = CapabilitySet::FOWNER;

/// Connects to Unix sockets of other users, which counts as writing.
pub const CONNECT: CapabilitySet = CapabilitySet::DAC_OVERRIDE;

/// Drops all capabilities except `wanted` from the calling thread. Returns those that are left.
///
/// `no_new_privs` must be set. Then no program that the thread runs has more capabilities than
/// these, not even as root, whatever the bounding set contains. Emptying the bounding set as well
/// would take one call for each capability, 200 microseconds in all.
///
/// # Errors
///
/// Fails if the kernel refuses to tell or to change the capabilities of the thread, as under some filters of
/// system calls. Nothing is dropped then.
pub fn keep(wanted: CapabilitySet) -> rustix::io::Result<CapabilitySet> {
    let before = capabilities(None)?;
    // The kernel limits the ambient set to the intersection of the other two.
    let sets = CapabilitySets {
        effective: before.effective & wanted,
        permitted: before.permitted & wanted,
        inheritable: before.inheritable & wanted,
    };
    if sets != before {
        set_capabilities(None, sets)?;
    }
    Ok(sets.effective)
}

/// Returns the names of `set` as in capabilities(7), without their prefix.
pub fn names(set: CapabilitySet) -> impl Iterator<Item = &'static str> {
    set.iter_names().map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::thread;

    fn status(key: &str) -> u64 {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        u64::from_str_radix(line.trim_start_matches(':').trim(), 16).unwrap()
    }

    #[test]
    fn capability_sets_are_reduced() {
        let check = || {
            let before = status("CapEff");
            let kept = keep(READ).unwrap();
            assert_eq!(kept.bits(), before & READ.bits());
            for set in ["CapEff", "CapPrm", "CapInh", "CapAmb"] {
                assert_eq!(status(set) & !READ.bits(), 0, "{set}");
            }
            // A second call has nothing left to drop.
            assert_eq!(keep(READ).unwrap(), kept);
        };
        thread::spawn(check).join().unwrap();
    }

    #[test]
    fn names_are_those_of_the_manual() {
        assert!(names(READ | QUERY_CACHE).eq(["DAC_READ_SEARCH", "FOWNER"]));
    }
}
