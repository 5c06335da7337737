//! Decompressed runs that were not read to their end.
//!
//! Threads read pieces of the content that begin and end within runs. The first one that wants a part of a run decodes it, and the
//! others wait for it, so that a pass decodes each run once.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::Result;

/// The runs of an image that are kept.
#[derive(Default)]
pub(super) struct Chunks {
    state: Mutex<State>,
    /// Signalled when a run was decoded, or could not be.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// By their first sector.
    chunks: HashMap<u64, Chunk>,
    /// Number of bytes in all of them.
    held: usize,
    /// Counts reads.
    time: u64,
}

enum Chunk {
    /// A thread decodes it.
    Active,
    Ready {
        bytes: Arc<[u8]>,
        /// Number of bytes that were read.
        read: usize,
        last_read: u64,
    },
}

impl Chunks {
    /// Fills `buf` with the bytes of a run from `within` on. `decode` fills a buffer with all `size` bytes of it.
    pub fn read(
        &self,
        first_sector: u64,
        size: usize,
        buf: &mut [u8],
        within: usize,
        decode: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let copy = |buf: &mut [u8], bytes: &[u8]| {
            buf.copy_from_slice(&bytes[within..within + buf.len()]);
        };
        let mut state = self.lock();
        loop {
            state.time += 1;
            let time = state.time;
            match state.chunks.get_mut(&first_sector) {
                Some(Chunk::Ready { bytes, read, last_read }) => {
                    let bytes = bytes.clone();
                    *read += buf.len();
                    *last_read = time;
                    if *read >= size {
                        state.remove(first_sector);
                    }
                    drop(state);
                    copy(buf, &bytes);
                    return Ok(());
                }
                Some(Chunk::Active) => {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                None => break,
            }
        }
        if buf.len() == size {
            drop(state);
            return decode(buf);
        }
        state.chunks.insert(first_sector, Chunk::Active);
        drop(state);
        let active = Active(self, first_sector);
        let mut bytes = vec![0; size];
        decode(&mut bytes)?;
        copy(buf, &bytes);
        let mut state = self.lock();
        let last_read = state.time;
        let chunk = Chunk::Ready { bytes: bytes.into(), read: buf.len(), last_read };
        state.chunks.insert(first_sector, chunk);
        state.held += size;
        state.evict();
        drop(state);
        drop(active);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Drops the runs whose last use is longest ago.
    fn evict(&mut self) {
        while self.held > MAX_HELD {
            let ready = self.chunks.iter().filter_map(|(sector, chunk)| match chunk {
                Chunk::Ready { last_read, .. } => Some((*last_read, *sector)),
                Chunk::Active => None,
            });
            let Some((_, oldest)) = ready.min() else { break };
            self.remove(oldest);
        }
    }

    fn remove(&mut self, sector: u64) {
        if let Some(Chunk::Ready { bytes, .. }) = self.chunks.remove(&sector) {
            self.held -= bytes.len();
        }
    }
}

/// Ends the wait of other threads for a run, also if it was not decoded.
struct Active<'a>(&'a Chunks, u64);

impl Drop for Active<'_> {
    fn drop(&mut self) {
        let Self(chunks, sector) = self;
        let mut state = chunks.lock();
        if matches!(state.chunks.get(sector), Some(Chunk::Active)) {
            state.chunks.remove(sector);
        }
        chunks.changed.notify_all();
    }
}

/// Maximum size of the decompressed runs of a dmg image that are kept, for reads that begin or end within them.
/// Limit in bytes.
const MAX_HELD: usize = 64 << 20;
