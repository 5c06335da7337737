//! How many of the blocks that wait a thread takes: all lanes of the widest kernel if there is work for every thread,
//! and fewer if others would have none.

use crate::Digester;

/// The shares of a number of threads in what is in flight: content that waits, or that a thread has taken.
#[derive(Clone, Debug)]
pub struct Shares {
    threads: usize,
    /// The length of a block in bytes.
    unit: usize,
    /// The share in blocks, by the number of blocks in flight for each thread, from 0. All lanes of the widest kernel are
    /// the last one.
    lanes: Vec<usize>,
    /// The number of blocks for which a thread is as fast for each byte as for more.
    full: usize,
    /// The least and the greatest share in blocks.
    limits: (usize, usize),
}

impl Shares {
    /// Creates the shares of `threads` threads in blocks of `block_size` bytes that `digester` hashes. More lanes than fit into
    /// `room` bytes are left empty.
    pub fn new(threads: usize, digester: &Digester, block_size: usize, room: usize) -> Self {
        let lanes = (room / block_size).clamp(1, MAX_LANES);
        Self::of(threads, block_size, &digester.costs(lanes), SIZES)
    }

    /// Creates the shares of one thread in a content that is hashed in one piece.
    pub(super) fn in_turn() -> Self {
        Self::of(1, 1, &[0, 1], SIZES)
    }

    /// Creates the shares in blocks of `unit` bytes, from the time that a thread takes for each number of them, from 0. Only
    /// ratios matter. `sizes` are the least and the greatest share in bytes. The least is at least a block, and the greatest
    /// at least all lanes.
    pub(super) fn of(
        threads: usize,
        unit: usize,
        times: &[u64],
        (least, most): (usize, usize),
    ) -> Self {
        // Whether `count` blocks take as long for each as `others` do, or at most that many percent longer.
        let is_as_fast = |count: usize, others: usize, percent: u64| {
            times[count] * others as u64 * 100 <= times[others] * count as u64 * (100 + percent)
        };
        let fastest = |counts: &[usize]| {
            counts
                .iter()
                .copied()
                .reduce(|best, it| if is_as_fast(best, it, 0) { best } else { it })
        };
        let counts: Vec<_> = (1..times.len()).collect();
        let widest = fastest(&counts).unwrap_or(1);
        let full = counts.iter().copied().find(|it| is_as_fast(*it, widest, 10)).unwrap_or(1);
        let share = |fair: usize| {
            // More that takes a thread as long is for this one.
            let counts: Vec<_> =
                (1..=widest).filter(|it| times[*it] * 10 <= times[fair] * 11).collect();
            let best = fastest(&counts).unwrap_or(fair);
            // Half of the fair share may be as good.
            (fair.div_ceil(2)..best).find(|it| is_as_fast(*it, best, 5)).unwrap_or(best)
        };
        let lanes = (0..=widest).map(|fair| share(fair.max(1))).collect();
        let least = (least / unit).max(1);
        Self { threads, unit, lanes, full, limits: (least, least.max(widest).max(most / unit)) }
    }

    /// Returns how many bytes a thread takes if `in_flight` are in flight: whole blocks.
    pub fn share(&self, in_flight: usize) -> usize {
        let fair = in_flight.div_ceil(self.unit).div_ceil(self.threads);
        let widest = self.lanes.len() - 1;
        let (least, most) = self.limits;
        let count = match self.lanes.get(fair) {
            Some(count) => *count,
            // Something waits for the thread that returns first.
            None => {
                let rest = if fair > 4 { fair / 4 } else { fair.div_ceil(2) };
                (fair - rest).next_multiple_of(widest)
            }
        };
        count.clamp(least, most) * self.unit
    }

    /// Returns whether a thread would hash more than these bytes faster for each byte.
    pub(super) fn gains(&self, waiting: usize) -> bool {
        waiting.div_ceil(self.unit) < self.full
    }
}

/// Bytes hashed together if blocks are small. Sixteen blocks of the default size fill the lanes of every kernel, and
/// half of a core's L2 cache.
pub(super) const BATCH_SIZE: usize = 1 << 20;

/// The least and the greatest share in bytes. To wake a thread costs as much as to hash the least.
pub(super) const SIZES: (usize, usize) = (64 << 10, BATCH_SIZE);

/// Number of blocks after which the time for more is a multiple: a multiple of the lanes of every kernel.
const MAX_LANES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: usize = 64 << 10;

    /// The times of a kernel of sixteen lanes, which takes as long as one of two lanes for eight blocks.
    fn lanes() -> Vec<u64> {
        (0..=64_u64).map(|count| count / 16 * 4 + (count % 16).div_ceil(2).min(4)).collect()
    }

    /// The times of a kernel that gains nothing by a second block.
    fn one() -> Vec<u64> {
        (0..=64).collect()
    }

    #[track_caller]
    fn check(times: &[u64], block: usize, cases: &[(usize, usize, usize)]) {
        for &(threads, in_flight, expected) in cases {
            let shares = Shares::of(threads, block, times, SIZES);
            assert_eq!(
                shares.share(in_flight * block),
                expected * block,
                "{threads} threads, {in_flight}"
            );
        }
    }

    #[test]
    fn a_thread_takes_as_many_lanes_as_leave_work_for_the_others() {
        let cases =
            [(1, 64, 16), (2, 64, 16), (4, 64, 16), (16, 64, 2), (2, 4, 2), (16, 4, 2), (16, 1, 2)];
        check(&lanes(), BLOCK, &cases);
        // Sixteen lanes of large blocks are more than a batch of small ones.
        check(&lanes(), 8 * BLOCK, &[(1, 64, 16), (16, 32, 2)]);
    }

    #[test]
    fn a_thread_leaves_something_if_it_gains_nothing_by_more() {
        check(
            &one(),
            BLOCK,
            &[(1, 4, 2), (2, 4, 1), (16, 4, 1), (4, 64, 12), (1, 64, 16), (16, 64, 2)],
        );
    }

    #[test]
    fn small_blocks_are_not_worth_a_thread_each() {
        check(&one(), 4096, &[(16, 64, 16), (16, 1, 16), (1, 1000, 256)]);
        check(&lanes(), 4096, &[(16, 64, 16), (1, 100, 80)]);
    }

    #[test]
    fn a_thread_waits_for_more_if_it_gains() {
        let shares = Shares::of(2, BLOCK, &lanes(), SIZES);
        assert!((1..15).all(|blocks| shares.gains(blocks * BLOCK)));
        assert!((15..20).all(|blocks| !shares.gains(blocks * BLOCK)));
        let shares = Shares::of(2, BLOCK, &one(), SIZES);
        assert!((1..20).all(|blocks| !shares.gains(blocks * BLOCK)));
    }
}
