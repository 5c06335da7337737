//! The copies of a file allocation table, read side by side.

use super::report::{Report, Structure};
use super::table::Table;
use crate::volume::Volume;

/// The copies of a table.
pub(crate) struct Copies<'a> {
    table: &'a Table,
    /// Number of bytes of a copy that are in use.
    used: u64,
    /// The copies other than the one that is in use.
    others: Vec<Other>,
    buffer: Vec<u8>,
}

/// A copy other than the one that is in use.
struct Other {
    index: u8,
    is_equal: bool,
}

impl<'a> Copies<'a> {
    pub fn new(table: &'a Table, used: u64) -> Self {
        let others = (0..table.copies)
            .filter(|index| table.is_mirrored && *index != table.active)
            .map(|index| Other { index, is_equal: true })
            .collect();
        Self { table, used, others, buffer: Vec::new() }
    }

    /// Reads bytes of the copy that is in use, and compares them with the other ones if that is wanted. Takes bytes of
    /// another copy if they cannot be read. Returns `false` if no copy can be read there.
    pub fn read(
        &mut self,
        volume: &Volume,
        at: u64,
        bytes: &mut [u8],
        report: &mut Report<'_>,
    ) -> bool {
        let offset = self.table.copy(self.table.active).saturating_add(at);
        let Err(error) = volume.read_into(bytes, offset) else {
            if report.wanted().checks {
                self.compare(volume, at, bytes, report);
            }
            return true;
        };
        report.failed(Structure::new("FAT", offset), &error);
        self.others.iter().any(|other| {
            let offset = self.table.copy(other.index).saturating_add(at);
            volume.read_into(bytes, offset).is_ok()
        })
    }

    fn compare(&mut self, volume: &Volume, at: u64, bytes: &[u8], report: &mut Report<'_>) {
        let (table, buffer) = (self.table, &mut self.buffer);
        for other in &mut self.others {
            let start = table.copy(other.index).saturating_add(at);
            buffer.resize(bytes.len(), 0);
            if let Err(error) = volume.read_into(buffer, start) {
                other.is_equal = false;
                report.failed(Structure::new("FAT copy", start), &error);
            } else if buffer != bytes {
                other.is_equal = false;
                for (from, to) in differences(buffer, bytes) {
                    let count = differing(&buffer[from..to], &bytes[from..to]);
                    let copy = Structure::new("FAT copy", start.saturating_add(from as u64));
                    let (number, active) =
                        (u32::from(other.index) + 1, u32::from(table.active) + 1);
                    let reason = format!("{count} bytes of FAT {number} differ from FAT {active}");
                    report.mismatch(copy, (to - from) as u64, reason);
                }
            }
        }
    }

    /// Reports the copies that are equal.
    pub fn finish(&self, report: &mut Report<'_>) {
        let equal = self.others.iter().filter(|other| other.is_equal).count() as u64;
        report.matched("FAT copy", equal, equal.saturating_mul(self.used));
    }
}

/// Returns the ranges of sectors in which two slices of equal length differ.
fn differences(a: &[u8], b: &[u8]) -> Vec<(usize, usize)> {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for (index, (a, b)) in a.chunks(SECTOR).zip(b.chunks(SECTOR)).enumerate() {
        if a != b {
            let start = index * SECTOR;
            match ranges.last_mut() {
                Some(last) if last.1 == start => last.1 = start + a.len(),
                _ => ranges.push((start, start + a.len())),
            }
        }
    }
    ranges
}

fn differing(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).filter(|(a, b)| a != b).count()
}

/// The smallest size of a sector.
const SECTOR: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_sectors_that_differ() {
        let a = vec![0; 4 * SECTOR + 10];
        let mut b = a.clone();
        assert_eq!(differences(&a, &b), []);
        for at in [SECTOR, 3 * SECTOR - 1, 4 * SECTOR + 9] {
            b[at] = 1;
        }
        let last = 4 * SECTOR;
        assert_eq!(differences(&a, &b), [(SECTOR, 3 * SECTOR), (last, last + 10)]);
        assert_eq!(differing(&a, &b), 3);
    }
}
