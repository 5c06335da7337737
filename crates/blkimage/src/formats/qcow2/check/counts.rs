//! The number of references to each cluster, counted in a window of the file.
//!
//! Pages of counts are created when they are first needed, with a byte for each cluster, or eight if a count is larger than
//! a byte holds. If they take more than the budget, the window shrinks, and the caller counts the rest in another
//! pass. So neither the size of the file nor the number of references determines the memory.

use std::ops::Range;

/// Number of clusters in a page.
pub(super) const PAGE: usize = 4096;

/// The counts of the clusters in a window.
pub(super) struct Counts {
    /// Clusters, from the start of a page on.
    window: Range<u64>,
    pages: Vec<Page>,
    /// Memory of all pages in bytes.
    bytes: usize,
    budget: usize,
}

/// The counts of [`PAGE`] clusters.
pub(super) enum Page {
    /// All are 0.
    Empty,
    Narrow(Box<[u8; PAGE]>),
    Wide(Box<[u64; PAGE]>),
}

impl Counts {
    /// Creates counts of 0 for the clusters in `window`, which begins with a page.
    pub fn new(window: Range<u64>, budget: usize) -> Self {
        let pages = (window.end - window.start).div_ceil(PAGE as u64) as usize;
        let pages = std::iter::repeat_with(|| Page::Empty).take(pages).collect();
        Self { window, pages, bytes: 0, budget }
    }

    /// Returns the window. Its end moves towards its start while references are added.
    pub fn window(&self) -> Range<u64> {
        self.window.clone()
    }

    /// Adds references to a cluster, if it is in the window.
    #[inline]
    pub fn add(&mut self, cluster: u64, references: u64) {
        let Some(index) = cluster.checked_sub(self.window.start) else { return };
        let within = index as usize % PAGE;
        match self.pages.get_mut(index as usize / PAGE) {
            Some(Page::Narrow(counts)) if references <= 0xff => {
                match counts[within].checked_add(references as u8) {
                    Some(sum) => counts[within] = sum,
                    None => self.add_slowly(index, references),
                }
            }
            Some(_) => self.add_slowly(index, references),
            None => {}
        }
    }

    /// Adds references to each of a range of clusters.
    pub fn add_range(&mut self, clusters: Range<u64>, references: u64) {
        let start = clusters.start.max(self.window.start);
        for cluster in start..clusters.end {
            if cluster >= self.window.end {
                break;
            }
            self.add(cluster, references);
        }
    }

    /// Takes the memory for the page of a cluster, so that the window does not shrink when a few references are added.
    pub fn touch(&mut self, cluster: u64) {
        self.add(cluster, 0);
    }

    /// Returns the number of references to a cluster in the window.
    pub fn get(&self, cluster: u64) -> u64 {
        let Some(index) = cluster.checked_sub(self.window.start) else { return 0 };
        match self.pages.get(index as usize / PAGE) {
            None => 0,
            Some(page) => page.get(index as usize % PAGE),
        }
    }

    /// Returns the page that begins with `cluster`.
    pub fn page(&self, cluster: u64) -> &Page {
        let index = cluster.checked_sub(self.window.start).map(|index| index as usize / PAGE);
        index.and_then(|index| self.pages.get(index)).unwrap_or(&Page::Empty)
    }

    /// Adds references to a cluster whose page is missing or too narrow.
    #[cold]
    fn add_slowly(&mut self, index: u64, references: u64) {
        let (number, within) = (index as usize / PAGE, index as usize % PAGE);
        let page = &mut self.pages[number];
        match page {
            Page::Empty if references <= 0xff => {
                let mut counts = Box::new([0; PAGE]);
                counts[within] = references as u8;
                *page = Page::Narrow(counts);
                self.bytes += PAGE;
            }
            Page::Empty => {
                let mut counts = Box::new([0; PAGE]);
                counts[within] = references;
                *page = Page::Wide(counts);
                self.bytes += 8 * PAGE;
            }
            Page::Narrow(narrow) => {
                let mut counts = Box::new(narrow.map(u64::from));
                counts[within] = counts[within].saturating_add(references);
                *page = Page::Wide(counts);
                self.bytes += 7 * PAGE;
            }
            Page::Wide(counts) => counts[within] = counts[within].saturating_add(references),
        }
        while self.bytes > self.budget && self.pages.len() > 1 {
            self.shrink();
        }
    }

    /// Gives up the second half of the window.
    fn shrink(&mut self) {
        let kept = self.pages.len() / 2;
        let removed: usize = self.pages.drain(kept..).map(|page| page.bytes()).sum();
        self.bytes -= removed;
        self.window.end = self.window.start + (kept * PAGE) as u64;
    }
}

impl Page {
    #[inline]
    pub fn get(&self, within: usize) -> u64 {
        match self {
            Self::Empty => 0,
            Self::Narrow(counts) => u64::from(counts[within]),
            Self::Wide(counts) => counts[within],
        }
    }

    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::Narrow(_) => PAGE,
            Self::Wide(_) => 8 * PAGE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_any_size() {
        let mut counts = Counts::new(0..10_000, usize::MAX);
        let numbers = [1, 254, 255, 256, 300, 65_536, u64::MAX];
        for (cluster, number) in (4000..).step_by(97).zip(numbers) {
            counts.add(cluster, number);
            assert_eq!(counts.get(cluster), number);
            counts.add(cluster, 3);
            assert_eq!(counts.get(cluster), number.saturating_add(3));
            assert_eq!((counts.get(cluster - 1), counts.get(cluster + 1)), (0, 0));
        }
        assert!(counts.page(8192).is_empty());
    }

    #[test]
    fn window_shrinks_to_the_budget() {
        let mut counts = Counts::new(8192..1 << 30, 64 << 10);
        for cluster in (0..1 << 20).step_by(100) {
            counts.add(cluster, 2);
        }
        let Range { start, end } = counts.window();
        assert!(start == 8192 && end > start && counts.bytes <= 64 << 10, "{start}..{end}");
        for cluster in start..end {
            assert_eq!(counts.get(cluster), if cluster % 100 == 0 { 2 } else { 0 });
        }
        assert_eq!((counts.get(0), counts.get(end)), (0, 0));
    }

    #[test]
    fn ranges_are_cut_to_the_window() {
        let mut counts = Counts::new(4096..5000, usize::MAX);
        counts.add_range(0..u64::MAX, 1);
        counts.add_range(4999..5001, 1);
        assert_eq!((counts.get(4096), counts.get(4999), counts.get(5000)), (1, 2, 0));
    }
}
