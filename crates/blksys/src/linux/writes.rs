//! Detection of writes to a block device. A device has no time stamps, but the system counts the
//! sectors that are written and discarded, in `/sys/dev/block/MAJOR:MINOR/stat`.
//!
//! A write to a partition counts for its disk as well. A write to the disk, across its partitions,
//! counts for none of them. It is the difference between the count of the disk and the sum of its
//! partitions. A loop device also changes with its file, and so do all of its partitions.

use std::fs;
use std::path::{Path, PathBuf};

use super::stamp_of;
use super::uses::{self, System, path_of_line};
use crate::stamps::Stamp;

/// The writes to a block device so far.
#[derive(Debug)]
pub struct Writes {
    folder: PathBuf,
    written: Written,
}

impl Writes {
    /// Counts the writes to a device. `None` if /sys does not show it, or the system does not count them.
    pub fn to(number: (u32, u32)) -> Option<Self> {
        let folder = System::default().folder(number)?;
        let written = Written::new(&folder);
        written.is_known().then_some(Self { folder, written })
    }

    /// Returns whether the device was written to since then, or is being written to now.
    pub fn have_changed(&self) -> bool {
        // The second check counts a write that ends between the two.
        Written::is_under_way(&self.folder) || Written::new(&self.folder) != self.written
    }
}

/// The number of sectors written to a device so far.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Written {
    own: Option<Sectors>,
    across: Option<Sectors>,
    file: Option<Stamp>,
}

/// Sectors written and discarded.
type Sectors = [u64; 2];

impl Written {
    /// Reads the current counts of the device with this folder in /sys.
    pub fn new(folder: &Path) -> Self {
        let disk = uses::disk_of(folder);
        let whole = disk.as_deref().unwrap_or(folder);
        let is_counting = fs::read_to_string(whole.join("queue/iostats"))
            .is_ok_and(|setting| setting.trim() != "0");
        let file = fs::read(whole.join("loop/backing_file")).ok();
        Self {
            own: sectors(folder).filter(|_| is_counting),
            across: disk.filter(|_| is_counting).and_then(|disk| across(&disk)),
            file: file.and_then(|name| stamp_of(&path_of_line(&name)).ok()),
        }
    }

    /// Returns whether the system counts writes to this device.
    pub fn is_known(&self) -> bool {
        self.own.is_some()
    }

    /// Returns whether a write is in progress that is not counted yet. Must be called
    /// before the next count.
    pub fn is_under_way(folder: &Path) -> bool {
        numbers(&folder.join("inflight")).and_then(|it| it.get(1).copied()).is_some_and(|it| it > 0)
    }
}

/// Returns the sectors written to a disk outside of its partitions.
fn across(disk: &Path) -> Option<Sectors> {
    let count = || {
        let before = sectors(disk)?;
        let mut rest = before;
        for partition in uses::partitions(disk) {
            let part = sectors(&partition)?;
            rest = [0, 1].map(|index| rest[index].wrapping_sub(part[index]));
        }
        (sectors(disk)? == before).then_some(rest)
    };
    let mut last = None;
    for _ in 0..MAX_TRIES {
        let now = count();
        if now.is_some() && now == last {
            return now;
        }
        last = now;
    }
    None
}

fn sectors(folder: &Path) -> Option<Sectors> {
    let numbers = numbers(&folder.join("stat"))?;
    // Discards are counted since Linux 4.18.
    Some([*numbers.get(6)?, numbers.get(13).copied().unwrap_or(0)])
}

fn numbers(path: &Path) -> Option<Vec<u64>> {
    let text = fs::read_to_string(path).ok()?;
    text.split_whitespace().map(|word| word.parse().ok()).collect()
}

/// Maximum number of attempts to count the writes to a disk. The counts of a disk whose partitions are written to all
/// the time are never consistent.
/// Limit in attempts.
const MAX_TRIES: u32 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(folder: &Path, whole: [u64; 2], parts: &[[u64; 2]]) -> PathBuf {
        let disk = folder.join("sda");
        fs::create_dir_all(disk.join("queue")).unwrap();
        fs::write(disk.join("queue/iostats"), "1\n").unwrap();
        let stat = |[written, discarded]: [u64; 2]| {
            format!("1 2 3 4 5 6 {written} 8 0 10 11 12 13 {discarded} 15 16 17\n")
        };
        fs::write(disk.join("stat"), stat(whole)).unwrap();
        fs::write(disk.join("inflight"), "       3        0\n").unwrap();
        for (index, part) in parts.iter().enumerate() {
            let part_folder = disk.join(format!("sda{}", index + 1));
            fs::create_dir_all(&part_folder).unwrap();
            fs::write(part_folder.join("partition"), format!("{}\n", index + 1)).unwrap();
            fs::write(part_folder.join("stat"), stat(*part)).unwrap();
            fs::write(part_folder.join("inflight"), "0 1\n").unwrap();
        }
        disk
    }

    #[test]
    fn writes_to_a_partition_do_not_count_for_its_neighbours() {
        let folder = tempfile::tempdir().unwrap();
        let count = |whole, parts: &[[u64; 2]], name: &str| {
            Written::new(&disk(folder.path(), whole, parts).join(name))
        };
        let before = count([100, 5], &[[40, 0], [50, 5]], "sda1");
        assert!(before.is_known());
        assert_eq!(count([120, 9], &[[40, 0], [70, 9]], "sda1"), before, "the neighbour");
        assert_ne!(count([120, 5], &[[60, 0], [50, 5]], "sda1"), before, "itself");
        assert_ne!(count([100, 6], &[[40, 1], [50, 5]], "sda1"), before, "a discard");
        assert_ne!(count([101, 5], &[[40, 0], [50, 5]], "sda1"), before, "the disk across it");
        let whole = count([100, 5], &[[40, 0], [50, 5]], "");
        assert_ne!(count([120, 5], &[[60, 0], [50, 5]], ""), whole, "a partition of the disk");
    }

    #[test]
    fn devices_without_counters_are_unknown() {
        let folder = tempfile::tempdir().unwrap();
        let disk = disk(folder.path(), [100, 5], &[[0, 0]]);
        assert!(!Written::is_under_way(&disk));
        assert!(Written::is_under_way(&disk.join("sda1")));
        fs::write(disk.join("queue/iostats"), "0\n").unwrap();
        assert!(!Written::new(&disk).is_known());
        assert!(!Written::new(&disk.join("sda1")).is_known());
        assert!(!Written::new(&folder.path().join("sdb")).is_known());
    }
}
