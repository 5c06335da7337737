//! Random numbers for tests that choose a kernel for each batch.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

/// Returns a number below `limit`, which is not 0.
pub(super) fn below(limit: usize) -> usize {
    thread_local! {
        static STATE: Cell<u64> = Cell::new(RandomState::new().hash_one(0) | 1);
    }
    STATE.with(|state| {
        // Xorshift, as in G. Marsaglia, "Xorshift RNGs", 2003.
        let mut x = state.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        state.set(x);
        (x >> 32) as usize % limit
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_occurs() {
        let mut counts = [0; 7];
        for _ in 0..7000 {
            counts[below(7)] += 1;
        }
        assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    }
}
