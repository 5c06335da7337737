//! What a walk down a chain remembers: how far each layer has nothing.
//!
//! Without it each fragment of the base costs a lookup in every layer above. With it a layer is asked
//! once for each run of what it stores and each window of its tables.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// One caller's way through a chain, from lower offsets to higher ones.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    /// Where it ended.
    position: u64,
    /// The bytes of which a layer has nothing, in the order of the layers. Empty: nothing is
    /// remembered.
    known: Vec<Range<u64>>,
    /// So many of the first layers have nothing of `clear`.
    clear_layers: usize,
    clear: Range<u64>,
}

impl Walk {
    pub fn remembers(&self) -> bool {
        !self.known.is_empty()
    }

    /// The first layer that may have the byte at `offset`, and where that ends to be so.
    pub fn start(&self, offset: u64) -> (usize, u64) {
        if self.clear.contains(&offset) {
            (self.clear_layers, self.clear.end)
        } else {
            (0, u64::MAX)
        }
    }

    /// Where the bytes from `offset` on end of which the layer `index` is known to have nothing.
    pub fn known(&self, index: usize, offset: u64) -> Option<u64> {
        self.known.get(index).filter(|known| known.contains(&offset)).map(|known| known.end)
    }

    /// The layer `index` has nothing of the `length` bytes from `offset` on.
    pub fn learn(&mut self, index: usize, offset: u64, length: u64) {
        if let Some(known) = self.known.get_mut(index) {
            *known = offset..offset + length;
        }
    }

    /// The layer `index` is the first one to have the byte at `offset`; those above have nothing
    /// before `clear`.
    pub fn found(&mut self, index: usize, offset: u64, clear: u64) {
        if index > 0 && self.remembers() {
            self.clear_layers = index;
            self.clear = offset..clear;
        }
    }
}

/// The walks that go on where they ended: threads read at several places at once.
#[derive(Debug)]
pub(crate) struct Walks {
    layers: usize,
    idle: Mutex<Vec<Walk>>,
}

impl Walks {
    /// For a chain of `layers`.
    pub fn new(layers: usize) -> Self {
        Self { layers, idle: Mutex::default() }
    }

    /// The walk that ended last before `offset`, or another one. It is dropped after an error.
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

/// Places at which a chain is read at once; each costs 16 bytes a layer.
const MAX_IDLE: usize = 32;
