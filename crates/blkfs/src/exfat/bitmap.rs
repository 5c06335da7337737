//! The allocation bitmap.

use super::root::Located;
use crate::error::Result;
use crate::fat::clusters::{FIRST, Heap, Report, Run, Runs, Structure};
use crate::visitor::Owner;
use crate::volume::Volume;

/// Name of the structure.
pub(super) const NAME: &str = "allocation bitmap";

/// A bit for each cluster, which is set if it is allocated.
pub(super) struct Bitmap {
    words: Vec<u64>,
    /// Number after the last cluster whose bit is known.
    limit: u32,
}

impl Bitmap {
    /// Reads a bitmap from its clusters. Reports what cannot be read and what is missing, from where on no bit is known.
    ///
    /// # Errors
    ///
    /// Fails if the visitor stops the walk.
    pub fn read(
        volume: &Volume,
        heap: &Heap,
        parts: &[(u32, u32)],
        located: &Located,
        report: &mut Report<'_>,
    ) -> Result<Self> {
        let needed = u64::from(heap.count).div_ceil(8);
        let mut left = needed.min(located.length);
        let missing = needed - left;
        let (mut words, mut bytes) = (Vec::new(), Vec::new());
        let parts = parts.iter();
        let parts = parts.map(|(first, count)| (heap.offset(*first), heap.size((*count).into())));
        'parts: for (mut start, mut length) in parts {
            while length > 0 && left > 0 {
                let size = length.min(left).min(CHUNK);
                bytes.resize(size.next_multiple_of(8) as usize, 0);
                let (content, rest) = bytes.split_at_mut(size as usize);
                rest.fill(0);
                if let Err(error) = volume.read_into(content, start) {
                    report.failed(Structure::new(NAME, start), &error);
                    break 'parts;
                }
                report.advance(size)?;
                words.extend(bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)));
                (start, length, left) = (start + size, length - size, left - size);
            }
        }
        left += missing;
        if left > 0 {
            let reason = format!("lacks {left} of {needed} bytes");
            report.damaged(Structure::new(NAME, located.entry), reason);
        }
        let bits = (needed - left).saturating_mul(8);
        let known = u32::try_from(bits).map_or(heap.count, |known| known.min(heap.count));
        Ok(Self { words, limit: known.saturating_add(FIRST) })
    }

    /// Returns the first cluster from `from` up to `end` that is allocated or not.
    fn find(&self, from: u32, end: u32, is_allocated: bool) -> Option<u32> {
        let end = end.min(self.limit);
        let mut cluster = from.max(FIRST);
        while cluster < end {
            let (index, shift) = ((cluster - FIRST) / 64, (cluster - FIRST) % 64);
            let word = *self.words.get(index as usize)?;
            let word = if is_allocated { word } else { !word } >> shift;
            if word != 0 {
                return Some(cluster + word.trailing_zeros()).filter(|cluster| *cluster < end);
            }
            cluster += 64 - shift;
        }
        None
    }

    /// Returns the first one of clusters in a row that is not allocated.
    pub fn first_free(&self, first: u32, count: u32) -> Option<u32> {
        self.find(first, first.saturating_add(count), false)
    }

    /// Reports free clusters and those that are marked as bad.
    pub fn report_unused(&mut self, runs: &Runs, report: &mut Report<'_>) {
        let heap = runs.heap();
        for (first, run) in runs.all() {
            if let Run::Bad(count) = run {
                let start = heap.offset(first);
                report.metadata("bad cluster", start, start + heap.size(count.into()));
                self.allocate(first, count);
            }
        }
        let mut next = FIRST;
        while let Some(first) = self.find(next, self.limit, false) {
            next = self.find(first, self.limit, true).unwrap_or(self.limit);
            let length = heap.size((next - first).into());
            report.extent(heap.offset(first), length, Owner::Free);
        }
    }

    fn allocate(&mut self, first: u32, count: u32) {
        for index in (first - FIRST)..(first - FIRST).saturating_add(count) {
            if let Some(word) = self.words.get_mut(index as usize / 64) {
                *word |= 1 << (index % 64);
            }
        }
    }
}

/// Number of bytes that are read at once.
const CHUNK: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_that_are_free() {
        let bitmap = Bitmap { words: vec![u64::MAX, 0b1011, 0], limit: FIRST + 190 };
        assert_eq!(bitmap.first_free(2, 64), None);
        assert_eq!(bitmap.first_free(60, 100), Some(FIRST + 66));
        assert_eq!(bitmap.find(FIRST + 66, u32::MAX, true), Some(FIRST + 67));
        assert_eq!(bitmap.find(FIRST + 68, u32::MAX, true), None);
        assert_eq!(bitmap.first_free(FIRST + 189, 5), Some(FIRST + 189));
        assert_eq!(bitmap.first_free(FIRST + 190, 5), None);
        assert_eq!(bitmap.first_free(u32::MAX, 5), None);
    }
}
