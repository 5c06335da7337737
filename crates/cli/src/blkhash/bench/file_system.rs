//! Measures each checksum of btrfs on this host as the kernel computes it.

use std::time::Duration;

use blkbench::{Bench, Row};
use blkbtrfs::ChecksumType;
use blkhash::Strength;

use super::contestants::{implementation, table};
use super::driver::{self, Like};
use crate::blkhash::kernel::Driver;

/// The driver with which the kernel computes a checksum.
pub struct InKernel {
    pub kind: ChecksumType,
    /// The driver that a mount would use, if it is known.
    pub driver: Option<String>,
    /// The name and the figures, for one block at a time, of code that resembles the driver.
    pub like: Option<Row>,
}

impl InKernel {
    /// Returns the speed of the file system in MiB/s, if something tells.
    pub fn speed(&self) -> Option<f64> {
        Some(self.like.as_ref()?.speed?.median)
    }
}

/// Measures all checksums, each for `time`.
pub fn measure(drivers: &[Driver], time: Duration) -> Vec<InKernel> {
    let used = ChecksumType::ALL.map(|kind| (kind, driver::used(drivers, kind)));
    let like = used.map(|(kind, used)| used.and_then(|used| driver::like(used, kind)));
    let contestants: Vec<_> = like
        .iter()
        .flatten()
        .map(|like| match like {
            Like::Implementation(known) => implementation(**known),
            Like::Table => table(),
        })
        .collect();
    let mut rows = Bench::hot(SECTOR, 1, time).run(&contestants, |_| {}).rows.into_iter();
    let all = used.into_iter().zip(like);
    all.map(|((kind, driver), like)| InKernel {
        kind,
        driver: driver.map(str::to_owned),
        like: like.and_then(|_| rows.next()),
    })
    .collect()
}

/// Returns whether making two blocks with the same checksum is hard.
pub fn is_hard(kind: ChecksumType) -> bool {
    kind.algorithm().properties().strength == Strength::Cryptographic
}

/// Bytes of data for each checksum, the default of mkfs.btrfs.
const SECTOR: usize = 4096;
