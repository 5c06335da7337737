//! A cache of pages, for bytes that were not announced: headers, tables, the trees of file systems.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Condvar, OnceLock};

use bytes::Bytes;

use crate::Error;

/// The pages that were read last, and the first ones.
#[derive(Default)]
pub(super) struct Pages {
    slots: HashMap<u64, Slot>,
    present: usize,
    clock: u64,
    runs: Vec<Run>,
}

/// A page.
enum Slot {
    Present {
        bytes: Bytes,
        used: u64,
        /// Number of readers that waited for it and have not read it yet.
        waiting: usize,
    },
    Arriving {
        request: Arc<PageRequest>,
        waiting: usize,
    },
}

/// A request for neighbouring pages.
#[derive(Default)]
pub(super) struct PageRequest {
    /// Signals each page, and the end.
    pub arrived: Condvar,
    /// Why it failed.
    pub error: OnceLock<Error>,
}

/// What the cache knows of a page.
pub(super) enum Lookup {
    Present(Bytes),
    Arriving(Arc<PageRequest>),
    Missing,
}

/// A place where pages are read in order.
struct Run {
    /// The next page that would continue it.
    next: u64,
    /// Number of pages of the last request.
    ahead: u64,
    used: u64,
}

impl Pages {
    /// Returns a page.
    pub fn get(&mut self, page: u64) -> Lookup {
        self.clock += 1;
        match self.slots.get_mut(&page) {
            None => Lookup::Missing,
            Some(Slot::Arriving { request, .. }) => Lookup::Arriving(request.clone()),
            Some(Slot::Present { bytes, used, .. }) => {
                *used = self.clock;
                Lookup::Present(bytes.clone())
            }
        }
    }

    /// Returns whether a page has arrived.
    pub fn is_present(&self, page: u64) -> bool {
        matches!(self.slots.get(&page), Some(Slot::Present { .. }))
    }

    /// Notes that a reader waits for a page, which is kept until it has read it.
    pub fn wait(&mut self, page: u64) {
        if let Some(Slot::Present { waiting, .. } | Slot::Arriving { waiting, .. }) =
            self.slots.get_mut(&page)
        {
            *waiting += 1;
        }
    }

    /// Notes that a reader no longer waits for a page.
    pub fn waited(&mut self, page: u64) {
        if let Some(Slot::Present { waiting, .. } | Slot::Arriving { waiting, .. }) =
            self.slots.get_mut(&page)
        {
            *waiting = waiting.saturating_sub(1);
        }
    }

    /// Returns the pages to ask for if one is missing and a reader needs those up to `needed`: more if pages were read in order before, up to
    /// `end` or the first page that is `taken`.
    pub fn plan(
        &mut self,
        page: u64,
        needed: u64,
        end: u64,
        taken: impl Fn(u64) -> bool,
    ) -> Range<u64> {
        self.clock += 1;
        let needed = needed.saturating_sub(page).clamp(1, MAX_AHEAD);
        let known = self.runs.iter().position(|run| run.next == page);
        let ahead = known.map_or(1, |i| (self.runs[i].ahead * 2).min(MAX_AHEAD)).max(needed);
        let most = page.saturating_add(ahead).min(end.max(page + 1));
        let is_taken = |next: &u64| self.slots.contains_key(next) || taken(*next);
        let stop = (page + 1..most).find(is_taken).unwrap_or(most);
        let run = Run { next: stop, ahead, used: self.clock };
        match known {
            Some(i) => self.runs[i] = run,
            None if self.runs.len() < MAX_RUNS => self.runs.push(run),
            None => {
                if let Some(oldest) = self.runs.iter_mut().min_by_key(|run| run.used) {
                    *oldest = run;
                }
            }
        }
        page..stop
    }

    /// Notes that pages were asked for.
    pub fn begin(&mut self, pages: Range<u64>, request: &Arc<PageRequest>) {
        for page in pages {
            self.slots.insert(page, Slot::Arriving { request: request.clone(), waiting: 0 });
        }
    }

    /// Adds a page that arrived, in place of that which was used longest ago.
    pub fn fill(&mut self, page: u64, bytes: Bytes) {
        self.clock += 1;
        let waiting = match self.slots.get(&page) {
            Some(Slot::Arriving { waiting, .. }) => *waiting,
            _ => return,
        };
        self.slots.insert(page, Slot::Present { bytes, used: self.clock, waiting });
        if page < HEAD_PAGES {
            return;
        }
        self.present += 1;
        if self.present <= MAX_PAGES {
            return;
        }
        let oldest = self.slots.iter().filter_map(|(&page, slot)| match slot {
            Slot::Present { used, waiting: 0, .. } if page >= HEAD_PAGES => Some((*used, page)),
            _ => None,
        });
        if let Some((_, page)) = oldest.min() {
            self.slots.remove(&page);
            self.present -= 1;
        }
    }

    /// Forgets pages that did not arrive.
    pub fn abandon(&mut self, pages: Range<u64>) {
        for page in pages {
            if matches!(self.slots.get(&page), Some(Slot::Arriving { .. })) {
                self.slots.remove(&page);
            }
        }
    }
}

/// Size of a page.
pub(super) const PAGE: u64 = 64 << 10;

/// Number of pages at the start, which are kept.
pub(super) const HEAD_PAGES: u64 = 16;

/// Maximum number of other pages, but for those that a reader waits for.
const MAX_PAGES: usize = 256;

/// Maximum number of pages of a request.
const MAX_AHEAD: u64 = 16;

/// Number of places that are known to be read in order.
const MAX_RUNS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(pages: &mut Pages, page: u64) {
        pages.begin(page..page + 1, &Arc::default());
        pages.fill(page, Bytes::from(vec![page as u8]));
    }

    fn has(pages: &mut Pages, page: u64) -> bool {
        matches!(pages.get(page), Lookup::Present(_))
    }

    #[test]
    fn pages_in_order_are_read_ahead() {
        let mut pages = Pages::default();
        let request = Arc::default();
        let mut plan = |page, needed, end| {
            let range = pages.plan(page, needed, end, |page| page == 500);
            pages.begin(range.clone(), &request);
            range
        };
        for range in [100..101, 101..103, 103..107, 107..115, 115..131, 131..147] {
            // Other places do not end the order.
            assert_eq!(plan(range.start, 0, 1000), range);
            assert_eq!(plan(range.start * 10, 0, 100_000).count(), 1);
        }
        // What is needed at once, up to the end, and up to what is known.
        assert_eq!(plan(300, 304, 1000), 300..304);
        assert_eq!(plan(299, 320, 1000), 299..300);
        assert_eq!(plan(400, 420, 402), 400..402);
        assert_eq!(plan(495, 510, 1000), 495..500);
    }

    #[test]
    fn the_page_used_longest_ago_makes_room() {
        let mut pages = Pages::default();
        for page in 0..HEAD_PAGES + MAX_PAGES as u64 {
            fill(&mut pages, page);
        }
        assert!(has(&mut pages, HEAD_PAGES));
        fill(&mut pages, 5000);
        assert!(has(&mut pages, HEAD_PAGES) && !has(&mut pages, HEAD_PAGES + 1));
        // One that a reader waits for is kept.
        pages.begin(6000..6001, &Arc::default());
        pages.wait(6000);
        pages.fill(6000, Bytes::new());
        for page in 7000..7600 {
            fill(&mut pages, page);
        }
        assert!(has(&mut pages, 6000) && has(&mut pages, 0) && !has(&mut pages, 5000));
        assert_eq!(pages.slots.len(), MAX_PAGES + HEAD_PAGES as usize);
        pages.waited(6000);
        for page in 8000..8600 {
            fill(&mut pages, page);
        }
        assert!(!has(&mut pages, 6000));
    }
}
