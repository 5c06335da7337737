//! Ranges that were announced and are not asked for yet.

use std::collections::VecDeque;
use std::ops::Range;

use rangemap::RangeSet;

/// The announced ranges, in their order. Each byte is in it at most once.
#[derive(Default)]
pub(crate) struct Queue {
    pending: RangeSet<u64>,
    /// May name bytes that were taken before their turn.
    order: VecDeque<Range<u64>>,
}

/// One request: what to ask for, and what of it is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub range: Range<u64>,
    pub wanted: RangeSet<u64>,
}

/// The shape of requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Maximum number of bytes of a request.
    pub most: u64,
    /// Maximum number of unwanted bytes between wanted ones, which cost less than another request.
    pub gap: u64,
    /// Whether a request may end where the announcements do, though the next ones would extend it.
    pub short: bool,
}

impl Queue {
    /// Adds a range after all others.
    pub fn add(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        self.pending.insert(range.clone());
        match self.order.back_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.order.push_back(range),
        }
    }

    /// Adds a range that has no turn: it is asked for when it is read, or together with others.
    pub fn put_back(&mut self, range: Range<u64>) {
        if !range.is_empty() {
            self.pending.insert(range);
        }
    }

    /// Returns whether nothing waits for its turn.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns whether a byte was announced and not asked for.
    pub fn contains(&self, offset: u64) -> bool {
        self.pending.contains(&offset)
    }

    /// Returns whether any byte of a range was announced and not asked for.
    pub fn overlaps(&self, range: &Range<u64>) -> bool {
        self.pending.overlaps(range)
    }

    /// Takes the next request in order. `end` is the end of the object, where no announcement follows.
    pub fn next(&mut self, shape: Shape, end: u64) -> Option<Plan> {
        loop {
            let front = self.order.front()?;
            let Some(first) = self.pending.overlapping(front).next() else {
                self.order.pop_front();
                continue;
            };
            let start = first.start.max(front.start);
            let plan = self.plan(start, shape)?;
            let stopped = plan.range.end;
            let is_last = self.pending.iter().next_back().is_none_or(|last| last.end <= stopped);
            let is_full = stopped - start >= shape.most || stopped >= end;
            if is_last && !is_full && !shape.short {
                return None;
            }
            self.remove(&plan);
            return Some(plan);
        }
    }

    /// Takes the request that begins with a byte.
    pub fn at(&mut self, offset: u64, shape: Shape) -> Option<Plan> {
        let plan = self.plan(offset, shape)?;
        self.remove(&plan);
        Some(plan)
    }

    fn plan(&self, start: u64, shape: Shape) -> Option<Plan> {
        let limit = start.saturating_add(shape.most.max(1));
        let mut wanted = RangeSet::new();
        let mut end = start;
        for range in self.pending.overlapping(&(start..limit)) {
            let part = range.start.max(start)..range.end.min(limit);
            if part.start - end > shape.gap {
                break;
            }
            end = part.end;
            wanted.insert(part);
        }
        let begins = wanted.contains(&start);
        begins.then_some(Plan { range: start..end, wanted })
    }

    fn remove(&mut self, plan: &Plan) {
        for range in plan.wanted.iter() {
            self.pending.remove(range.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    // One range in a list of ranges.
    #![allow(clippy::single_range_in_vec_init)]

    use super::*;

    const SHAPE: Shape = Shape { most: 100, gap: 10, short: true };

    fn queue(ranges: &[Range<u64>]) -> Queue {
        let mut queue = Queue::default();
        for range in ranges {
            queue.add(range.clone());
        }
        queue
    }

    fn ranges(queue: &mut Queue, shape: Shape) -> Vec<Range<u64>> {
        std::iter::from_fn(|| queue.next(shape, 10_000)).map(|plan| plan.range).collect()
    }

    #[test]
    fn neighbours_are_one_request_and_long_ranges_are_several() {
        let mut long = queue(&[0..50, 50..130, 130..250]);
        assert_eq!(ranges(&mut long, SHAPE), [0..100, 100..200, 200..250]);
        let mut gaps = queue(&[0..10, 20..30, 41..50]);
        let plan = gaps.next(SHAPE, 10_000).unwrap();
        assert_eq!(plan.range, 0..30);
        assert_eq!(plan.wanted.iter().cloned().collect::<Vec<_>>(), [0..10, 20..30]);
        assert_eq!(ranges(&mut gaps, SHAPE), [41..50]);
    }

    #[test]
    fn the_order_is_that_of_the_announcements() {
        let mut queue = queue(&[500..550, 0..50, 300..350]);
        assert_eq!(ranges(&mut queue, SHAPE), [500..550, 0..50, 300..350]);
    }

    #[test]
    fn each_byte_is_asked_for_once() {
        let mut queue = queue(&[0..50, 20..80, 0..10]);
        assert_eq!(ranges(&mut queue, SHAPE), [0..80]);
        queue.add(0..300);
        assert_eq!(queue.at(150, SHAPE).unwrap().range, 150..250);
        assert_eq!(queue.at(150, SHAPE), None);
        assert_eq!(ranges(&mut queue, SHAPE), [0..100, 100..150, 250..300]);
    }

    #[test]
    fn a_short_request_waits_for_more() {
        let long = Shape { short: false, ..SHAPE };
        let mut queue = queue(&[0..50]);
        assert_eq!(queue.next(long, 10_000), None);
        queue.add(50..120);
        assert_eq!(queue.next(long, 10_000).unwrap().range, 0..100);
        assert_eq!(queue.next(long, 10_000), None);
        assert_eq!(queue.next(long, 120).unwrap().range, 100..120);
        // What is elsewhere does not extend it.
        queue.add(0..50);
        queue.add(500..550);
        assert_eq!(queue.next(long, 10_000).unwrap().range, 0..50);
    }

    #[test]
    fn what_was_put_back_has_no_turn() {
        let mut queue = Queue::default();
        queue.put_back(0..50);
        assert_eq!(queue.next(SHAPE, 10_000), None);
        assert!(queue.contains(49) && !queue.contains(50));
        assert_eq!(queue.at(20, SHAPE).unwrap().range, 20..50);
    }
}
