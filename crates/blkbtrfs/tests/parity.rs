//! RAID5 and RAID6 made of a real file system. Missing stripes are rebuilt from the rest of their
//! row, and wrong stripes are reported.

#![allow(missing_docs, reason = "a test program")]

mod common;

use std::sync::{Arc, LazyLock};

use blkbtrfs::{Category, Finding, Problem, Subject, Summary};
use common::{BLOCK, Disk, MISSING, RAID5, RAID6};

static PLAIN: LazyLock<Disk> =
    LazyLock::new(|| Disk::real(&["-m", "single", "-d", "single", "-b", "20M"]));

const STRIPE: usize = 64 << 10;

/// A disk whose chunks are striped over an array, with the offsets of the stripes.
struct Array {
    disk: Disk,
    stripes: usize,
    parities: usize,
    /// Length of each chunk, and the offsets of its stripes.
    chunks: Vec<(usize, Vec<usize>)>,
}

impl Array {
    /// Copies chunks past the end of the disk, stripe by stripe. Moves the stripes in `lost` to a
    /// missing device.
    fn new(stripes: usize, parities: usize, lost: &[usize]) -> Self {
        let mut disk = PLAIN.clone();
        let mut bytes = disk.bytes.to_vec();
        let mut chunks = Vec::new();
        let profile = if parities == 1 { RAID5 } else { RAID6 };
        disk.change_stripes(profile, |_, length, offset| {
            let data = stripes - parities;
            let share = length.div_ceil(data * STRIPE) * STRIPE;
            let starts: Vec<_> = (0..stripes).map(|index| bytes.len() + index * share).collect();
            let content = bytes[offset..][..length].to_vec();
            // Clears the old location, so that nothing is found there.
            bytes[offset..][..length].fill(0);
            bytes.resize(bytes.len() + stripes * share, 0);
            for (row, content) in content.chunks(data * STRIPE).enumerate() {
                let mut columns: Vec<Vec<u8>> =
                    content.chunks(STRIPE).map(<[u8]>::to_vec).collect();
                columns.resize(data, Vec::new());
                columns.iter_mut().for_each(|column| column.resize(STRIPE, 0));
                let mut parity = [vec![0; STRIPE], vec![0; STRIPE]];
                for (index, column) in columns.iter().enumerate() {
                    let products: Vec<u8> = (0..256).map(|it| multiply(it, 1 << index)).collect();
                    for (at, byte) in column.iter().enumerate().filter(|(_, byte)| **byte != 0) {
                        parity[0][at] ^= byte;
                        parity[1][at] ^= products[usize::from(*byte)];
                    }
                }
                for (column, part) in columns.iter().chain(&parity[..parities]).enumerate() {
                    let start = starts[(column + row) % stripes] + row * STRIPE;
                    bytes[start..][..STRIPE].copy_from_slice(part);
                }
            }
            let device = |index| if lost.contains(&index) { MISSING } else { 1 };
            let placed = starts.iter().enumerate().map(|(index, start)| (device(index), *start));
            let placed = placed.collect();
            chunks.push((length, starts));
            placed
        });
        // Restores the chunk tree, which is not moved.
        let leaf = disk.block(3, 0).physical;
        bytes[leaf..][..BLOCK].copy_from_slice(&disk.bytes[leaf..][..BLOCK]);
        Self { disk: Disk { bytes: Arc::new(bytes) }, stripes, parities, chunks }
    }

    /// Ignores the block groups, whose flags still lack the parities.
    fn verify(&self) -> (Summary, Vec<Finding>) {
        let (summary, mut findings) = self.disk.verify().unwrap();
        findings.retain(|finding| finding.category() != Category::TreeItem);
        (summary, findings)
    }

    /// Changes a byte of every sector of stripe `index` of each chunk, in rows where the stripe is
    /// data or where it is parity.
    fn damage(&mut self, index: usize, parity: bool) {
        let bytes = Arc::make_mut(&mut self.disk.bytes);
        for (length, starts) in &self.chunks {
            let data = self.stripes - self.parities;
            for row in 0..length.div_ceil(data * STRIPE) {
                let column = (index + self.stripes - row % self.stripes) % self.stripes;
                if (column >= data) == parity {
                    let start = starts[index] + row * STRIPE;
                    bytes[start..][..STRIPE].iter_mut().step_by(BLOCK / 2).for_each(|it| *it ^= 1);
                }
            }
        }
    }
}

/// Multiplies in the field of RAID6, by long multiplication and division.
fn multiply(a: u32, b: u32) -> u8 {
    let product = (0..8).filter(|bit| b >> bit & 1 == 1).fold(0, |sum, bit| sum ^ a << bit);
    let rest = (8..16).rev().fold(product, |rest, bit| {
        if rest >> bit & 1 == 1 { rest ^ 0x11d << (bit - 8) } else { rest }
    });
    rest as u8
}

fn sets(stripes: usize, most: usize) -> Vec<Vec<usize>> {
    let all = (0..1usize << stripes).filter(|set| (set.count_ones() as usize) <= most);
    all.map(|set| (0..stripes).filter(|index| set >> index & 1 == 1).collect()).collect()
}

#[test]
#[ignore = "slow"]
fn as_many_missing_stripes_as_parities() {
    if common::lacks_mkfs() {
        return;
    }
    let plain = PLAIN.verify().unwrap().0;
    for (stripes, parities) in [(2, 1), (3, 1), (5, 1), (3, 2), (4, 2), (6, 2)] {
        for lost in sets(stripes, parities) {
            let (summary, findings) = Array::new(stripes, parities, &lost).verify();
            let case = format!("{stripes} {parities} {lost:?}: {summary:?} {findings:?}");
            assert!(findings.is_empty() && summary.missing_bytes == 0, "{case}");
            let (verified, expected) = (summary.verified, plain.verified);
            assert_eq!(verified.data_bytes, expected.data_bytes, "{case}");
            assert_eq!(verified.tree_bytes, expected.tree_bytes, "{case}");
            assert_eq!(verified.checksums, expected.checksums, "{case}");
            assert_eq!(verified.rebuilt_bytes > 0, !lost.is_empty(), "{case}");
            assert_eq!(summary.used, plain.used, "{case}");
        }
    }
}

#[test]
fn one_more_missing_stripe_than_parities() {
    if common::lacks_mkfs() {
        return;
    }
    for (stripes, parities, lost) in [(3, 1, vec![0, 2]), (4, 2, vec![0, 1, 3])] {
        let (summary, _) = Array::new(stripes, parities, &lost).verify();
        assert!(summary.missing_bytes > 0 && !summary.is_complete(), "{summary:?}");
    }
}

/// Wrong stripes are rebuilt from the rest of their row, even if other stripes are missing.
#[test]
fn wrong_stripes() {
    if common::lacks_mkfs() {
        return;
    }
    let plain = PLAIN.verify().unwrap().0;
    let cases: [(usize, usize, &[usize], Option<bool>); 6] = [
        (3, 1, &[], Some(true)),
        (3, 1, &[0], None),
        (4, 2, &[], Some(true)),
        (4, 2, &[2], Some(true)),
        (6, 2, &[5], Some(true)),
        (4, 2, &[0, 3], None),
    ];
    for (stripes, parities, lost, rebuildable) in cases {
        let mut array = Array::new(stripes, parities, lost);
        array.damage(1, false);
        let (summary, findings) = array.verify();
        let own = |finding: &&Finding| finding.place.is_some_and(|place| place.device == 1);
        let (damaged, computed): (Vec<_>, Vec<_>) = findings.iter().partition(own);
        let case = format!("{stripes} {lost:?}: {summary:?} {:?}", findings.first());
        assert!(!damaged.is_empty(), "{case}");
        // Wrong sectors that are not in use are reported only for their parity.
        for finding in damaged.iter().filter(|it| it.subject != Subject::Parity) {
            assert_eq!(finding.rebuildable.unwrap_or(true), rebuildable.unwrap_or(true), "{case}");
        }
        if rebuildable.is_some() {
            // Nothing is lost, even if a way to rebuild it used a wrong stripe.
            assert!(computed.is_empty() && summary.lost_blocks == 0, "{case}");
            assert_eq!(summary.verified.data_bytes, plain.verified.data_bytes, "{case}");
            assert_eq!(summary.verified.tree_bytes, plain.verified.tree_bytes, "{case}");
        } else {
            assert!(computed.iter().all(|finding| finding.rebuildable != Some(true)), "{case}");
        }
    }
}

/// A wrong parity is a finding if the data of its row is present. Otherwise it makes no difference
/// as long as another parity is left.
#[test]
fn wrong_parities() {
    if common::lacks_mkfs() {
        return;
    }
    for (lost, is_seen) in [(vec![], true), (vec![2], true), (vec![3], false)] {
        let mut array = Array::new(4, 2, &lost);
        array.damage(1, true);
        let (summary, findings) = array.verify();
        assert_eq!(!findings.is_empty(), is_seen, "{lost:?} {summary:?}");
        for finding in findings {
            assert_eq!(finding.subject, Subject::Parity);
            assert!(matches!(finding.problem, Problem::Parity));
        }
    }
    let mut array = Array::new(3, 1, &[0]);
    array.damage(1, true);
    let (_, findings) = array.verify();
    assert!(!findings.is_empty());
    for finding in findings {
        let place = finding.place.unwrap();
        assert_eq!((place.device, finding.rebuildable), (MISSING, Some(false)), "{finding:?}");
    }
}
