//! A cache for the tables of a whole chain, with one memory budget.
//!
//! Tables are cached in windows whose size is a power of two, so that neither a 32 MiB L1 table nor a
//! chain of 200 files exceeds the budget. A lookup costs a hash, a reference count and a short lock.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::Result;
use crate::formats::fields::Entry;
use crate::storage::HostFile;

/// A window of a table: its entries in native byte order.
pub(crate) type Window = Arc<[u64]>;

pub(crate) struct TableCache {
    /// Number of calls of [`TableCache::entry`].
    #[cfg(test)]
    pub lookups: AtomicU64,
    /// Size of a window in bytes.
    window: AtomicU64,
    state: Mutex<State>,
}

/// A table of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    pub entry: Entry,
}

/// The key of a window: a range of a layer's file, and its encoding. Tables of two encodings may overlap, because nothing
/// keeps an image from this.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    layer: u32,
    offset: u64,
    length: u64,
    entry: Entry,
}

impl Default for TableCache {
    fn default() -> Self {
        Self {
            #[cfg(test)]
            lookups: AtomicU64::default(),
            window: AtomicU64::new(MAX_WINDOW),
            state: Mutex::default(),
        }
    }
}

impl TableCache {
    /// Sets the window size for this many layers. Every layer gets several windows, so that walking
    /// down a long chain for each cluster does not evict the windows that the next cluster needs.
    pub fn divide(&self, layers: u64) {
        let share = BUDGET as u64 / (WINDOWS_PER_LAYER * layers.max(1));
        let window = share.clamp(MIN_WINDOW, MAX_WINDOW);
        self.window.store(1 << window.ilog2(), Relaxed);
    }

    /// Returns the size of a window in bytes, a power of two.
    pub fn window(&self) -> u64 {
        self.window.load(Relaxed)
    }

    /// Returns the window that holds entry `index` of a table, and the index of the entry in it. The
    /// table is in `file`, which belongs to layer `layer` of the chain.
    ///
    /// `index` must be in the table. If several entries form a unit, the length of the table and
    /// `index` are multiples of the unit.
    ///
    /// Calls `miss` before the window is read from the file.
    pub fn entry(
        &self,
        layer: u32,
        file: &HostFile,
        table: Table,
        index: u64,
        miss: impl FnOnce(),
    ) -> Result<(Window, usize)> {
        #[cfg(test)]
        self.lookups.fetch_add(1, Relaxed);
        let window = self.window();
        let width = table.entry.width() as u64;
        let start = index * width / window * window;
        let length = window.min(table.length - start);
        let key = Key { layer, offset: table.offset + start, length, entry: table.entry };
        let index = (index - start / width) as usize;
        if let Some(window) = self.lock().find(key) {
            return Ok((window, index));
        }
        miss();
        let window = load(file, key)?;
        self.lock().insert(key, &window);
        Ok((window, index))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn load(file: &HostFile, key: Key) -> Result<Window> {
    if key.offset.checked_add(key.length).is_none_or(|end| end > file.size()) {
        return Err(file.corrupt("table lies past the end of the file").at(key.offset));
    }
    let mut bytes = vec![0; key.length as usize];
    file.read_exact_at(&mut bytes, key.offset)?;
    Ok(key.entry.decode_all(&bytes))
}

/// The windows, replaced by the second-chance algorithm. A window that was used since the hand last
/// passed it is spared once.
#[derive(Default)]
struct State {
    slots: Vec<Slot>,
    by_key: HashMap<Key, usize>,
    hand: usize,
    bytes: usize,
}

struct Slot {
    key: Key,
    window: Window,
    used: bool,
}

impl State {
    fn find(&mut self, key: Key) -> Option<Window> {
        let slot = &mut self.slots[*self.by_key.get(&key)?];
        slot.used = true;
        Some(slot.window.clone())
    }

    fn insert(&mut self, key: Key, window: &Window) {
        if self.by_key.contains_key(&key) {
            return;
        }
        self.bytes += cost(window);
        while self.bytes > BUDGET && !self.slots.is_empty() {
            self.evict();
        }
        self.by_key.insert(key, self.slots.len());
        self.slots.push(Slot { key, window: window.clone(), used: false });
    }

    fn evict(&mut self) {
        loop {
            self.hand = if self.hand < self.slots.len() { self.hand } else { 0 };
            let slot = &mut self.slots[self.hand];
            if !std::mem::take(&mut slot.used) {
                break;
            }
            self.hand += 1;
        }
        let slot = self.slots.swap_remove(self.hand);
        self.bytes -= cost(&slot.window);
        self.by_key.remove(&slot.key);
        if let Some(moved) = self.slots.get(self.hand) {
            self.by_key.insert(moved.key, self.hand);
        }
        self.hand += 1;
    }
}

/// Returns the memory that a window takes, in bytes, including overhead.
fn cost(window: &Window) -> usize {
    size_of_val(&**window) + 128
}

/// Maximum memory for the tables of a chain. It maps 64 GiB of 64 KiB clusters.
/// Limit in bytes.
const BUDGET: usize = 8 << 20;

/// Maximum size of a window, the part of a table that is read at once.
/// Limit in bytes.
const MAX_WINDOW: u64 = 64 << 10;

/// Minimum size of a window in bytes. Smaller ones cost more in calls than they save in memory.
const MIN_WINDOW: u64 = 4 << 10;

/// An L1 and an L2 window for each of two places in the image.
const WINDOWS_PER_LAYER: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Memory;

    fn file(tables: u64) -> HostFile {
        let bytes = (0..tables * MAX_WINDOW / 8).flat_map(u64::to_be_bytes).collect();
        HostFile::new("test".into(), Box::new(Memory(bytes)), Arc::default())
    }

    fn be64(offset: u64, length: u64) -> Table {
        Table { offset, length, entry: Entry::Be64 }
    }

    #[test]
    fn entries_of_any_width() {
        let (file, cache) = (file(2), TableCache::default());
        for (layer, entry, index, value) in [
            (0, Entry::Be64, 16383, 16383_u64),
            (1, Entry::Le64, 16383, 16383_u64.swap_bytes()),
            (2, Entry::Le32, 32767, u64::from(16383_u32.swap_bytes())),
            (2, Entry::Le32, 32766, 0),
            (3, Entry::Be32, 32767, 16383),
        ] {
            let table = Table { offset: 0, length: 2 * MAX_WINDOW, entry };
            let (window, i) = cache.entry(layer, &file, table, index, || ()).unwrap();
            assert_eq!(window[i], value, "{entry:?}");
        }
    }

    #[test]
    fn entries_are_found_and_read_once() {
        let (file, cache) = (file(2), TableCache::default());
        for index in [0, 1, 8191, 8192, 16383] {
            let table = be64(0, 2 * MAX_WINDOW);
            let (window, i) = cache.entry(0, &file, table, index, || ()).unwrap();
            assert_eq!(window[i], index);
        }
        assert_eq!(cache.lock().slots.len(), 2);
    }

    #[test]
    fn tables_of_two_encodings_at_one_place() {
        let (file, cache) = (file(1), TableCache::default());
        for _ in 0..2 {
            for (entry, value) in
                [(Entry::Be64, 1), (Entry::Le64, 1_u64.swap_bytes()), (Entry::Be32, 0)]
            {
                let table = Table { offset: 0, length: 4096, entry };
                let (window, i) = cache.entry(0, &file, table, 1, || ()).unwrap();
                let entries = 4096 / entry.width();
                assert_eq!((window.len(), window[i]), (entries, value), "{entry:?}");
            }
        }
    }

    #[test]
    fn memory_stays_within_the_budget() {
        let (file, cache) = (file(4), TableCache::default());
        for round in 0..3 {
            for offset in (0..4 * MAX_WINDOW).step_by(512) {
                let (window, i) = cache.entry(round, &file, be64(offset, 512), 63, || ()).unwrap();
                assert_eq!((window.len(), window[i]), (64, offset / 8 + 63));
            }
            for layer in 10..300 {
                cache.entry(layer, &file, be64(0, MAX_WINDOW), 0, || ()).unwrap();
            }
            let state = cache.lock();
            assert!(state.bytes <= BUDGET && state.by_key.len() == state.slots.len());
            for (i, slot) in state.slots.iter().enumerate() {
                assert_eq!(state.by_key[&slot.key], i);
            }
        }
    }

    #[test]
    fn table_past_the_end() {
        let (file, cache) = (file(1), TableCache::default());
        let error = cache.entry(0, &file, be64(512, MAX_WINDOW), 0, || ()).unwrap_err();
        assert_eq!(error.offset(), Some(512));
        assert!(cache.entry(0, &file, be64(u64::MAX - 7, 8), 0, || ()).is_err());
    }

    #[test]
    fn a_long_chain_gets_small_windows() {
        let cache = TableCache::default();
        for (layers, window) in [(1, 64 << 10), (201, 8 << 10), (1 << 20, 4 << 10)] {
            cache.divide(layers);
            assert_eq!(cache.window.load(Relaxed), window);
        }
    }
}
