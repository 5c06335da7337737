//! The state of a walk down a chain: for each layer, a range in which it has no content.
//!
//! Without this state, each fragment of the base costs a lookup in every layer above. With it, a layer
//! is queried once for each run of bytes that it stores and for each window of its tables.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// One caller's walk through a chain, from lower offsets to higher ones.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    /// Offset at which the last call ended.
    position: u64,
    /// For each layer, a range in which it has no content. Empty if nothing is recorded.
    known: Vec<Range<u64>>,
    /// Number of layers from the top that have no content in `clear`.
    clear_layers: usize,
    clear: Range<u64>,
}

impl Walk {
    pub fn remembers(&self) -> bool {
        !self.known.is_empty()
    }

    /// Returns the first layer that may hold the byte at `offset`, and the end of the
    /// range for which this is true.
    pub fn start(&self, offset: u64) -> (usize, u64) {
        if self.clear.contains(&offset) {
            (self.clear_layers, self.clear.end)
        } else {
            (0, u64::MAX)
        }
    }

    /// Returns the end of the range from `offset` on in which layer `index` is known to have no content.
    pub fn known(&self, index: usize, offset: u64) -> Option<u64> {
        self.known.get(index).filter(|known| known.contains(&offset)).map(|known| known.end)
    }

    /// Records that layer `index` has no content in the `length` bytes from `offset` on.
    pub fn learn(&mut self, index: usize, offset: u64, length: u64) {
        if let Some(known) = self.known.get_mut(index) {
            *known = offset..offset + length;
        }
    }

    /// Records that layer `index` is the first one that holds the byte at `offset`, and that the layers
    /// above have no content up to `clear`.
    pub fn found(&mut self, index: usize, offset: u64, clear: u64) {
        if index > 0 && self.remembers() {
            self.clear_layers = index;
            self.clear = offset..clear;
        }
    }
}

/// Walks that are idle, to be continued where they ended. Threads read at several places at once.
#[derive(Debug)]
pub(crate) struct Walks {
    layers: usize,
    idle: Mutex<Vec<Walk>>,
}

impl Walks {
    /// Creates the walks of a chain with `layers` layers.
    pub fn new(layers: usize) -> Self {
        Self { layers, idle: Mutex::default() }
    }

    /// Takes the idle walk that ended closest before `offset`, if any, or else another one. The caller
    /// drops it after an error.
    pub fn take(&self, offset: u64) -> Walk {
        // A single layer has none above it.
        if self.layers < 2 {
            return Walk::default();
        }
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let nearest = |walk: &Walk| offset.checked_sub(walk.position).unwrap_or(u64::MAX);
        let best = (0..idle.len()).min_by_key(|index| nearest(&idle[*index]));
        match best {
            Some(best) => idle.swap_remove(best),
            None => Walk { known: vec![0..0; self.layers], ..Walk::default() },
        }
    }

    /// Keeps a walk that ended at `position`.
    pub fn put(&self, mut walk: Walk, position: u64) {
        if !walk.remembers() {
            return;
        }
        walk.position = position;
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE {
            idle.push(walk);
        }
    }
}

/// Maximum number of idle walks through a chain, for as many concurrent readers. Each one takes 16 bytes per layer.
/// Limit in walks.
const MAX_IDLE: usize = 32;
