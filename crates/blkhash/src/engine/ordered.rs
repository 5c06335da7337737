//! Brings what several threads hashed back into order.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::BlockDigests;
use crate::Digest;
use crate::construction::Accumulator;

/// An [`Accumulator`] that several threads feed.
///
/// The content is cut into chunks with consecutive numbers from 0 on, and each is handed in once,
/// in any order. Chunks that are ahead wait in a ring of bounded length; the thread that hands in
/// the next one in order takes those behind it along. No thread exists only for this.
#[derive(Debug)]
pub struct Ordered {
    state: Mutex<State>,
    /// Signalled when `State::next` moves or everything is abandoned.
    moved: Condvar,
    window: usize,
}

#[derive(Debug)]
struct State {
    /// The number of the next chunk in order.
    next: u64,
    /// `None` while a thread is feeding it.
    accumulator: Option<Accumulator>,
    /// Chunks from `next` on that have come already.
    waiting: VecDeque<Option<BlockDigests>>,
    /// Memory for others.
    spare: Vec<BlockDigests>,
    abandoned: bool,
}

/// Nobody wants the checksum any more, since a part of the content could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("abandoned")]
pub struct Abandoned;

impl Ordered {
    /// Feeds `accumulator`; at most `window` chunks wait for the next one in order.
    pub fn new(accumulator: Accumulator, window: usize) -> Self {
        Self {
            state: Mutex::new(State {
                next: 0,
                accumulator: Some(accumulator),
                waiting: VecDeque::new(),
                spare: Vec::new(),
                abandoned: false,
            }),
            moved: Condvar::new(),
            window: window.max(1),
        }
    }

    /// An empty chunk to fill and hand in.
    pub fn empty_chunk(&self) -> BlockDigests {
        self.lock().spare.pop().unwrap_or_default()
    }

    /// Hands in the chunk `number`. Waits as long as it is further ahead than the window.
    pub fn hand_in(&self, number: u64, chunk: BlockDigests) -> Result<(), Abandoned> {
        let mut state =
            self.wait_until(|state| number.saturating_sub(state.next) < self.window as u64)?;
        let ahead = usize::try_from(number - state.next).expect("the window is a usize");
        if state.waiting.len() <= ahead {
            state.waiting.resize_with(ahead + 1, || None);
        }
        state.waiting[ahead] = Some(chunk);
        self.feed(state);
        Ok(())
    }

    /// Waits until the chunk `number` is the next one in order and hands it in as whatever `take`
    /// does to the accumulator. This is the way of constructions without blocks.
    pub fn in_turn(
        &self,
        number: u64,
        take: impl FnOnce(&mut Accumulator),
    ) -> Result<(), Abandoned> {
        let mut state =
            self.wait_until(|state| state.next == number && state.accumulator.is_some())?;
        let mut accumulator = state.accumulator.take().expect("waited for it");
        drop(state);
        take(&mut accumulator);
        let mut state = self.lock();
        state.accumulator = Some(accumulator);
        // Its place in the ring, if others have come behind it.
        state.waiting.pop_front();
        state.next += 1;
        self.moved.notify_all();
        self.feed(state);
        Ok(())
    }

    /// Gives up: whoever waits, and whoever comes, is told so.
    pub fn abandon(&self) {
        self.lock().abandoned = true;
        self.moved.notify_all();
    }

    /// The length of the content in bytes and its checksum, once every chunk was handed in.
    ///
    /// # Errors
    ///
    /// [`Abandoned`] if it was, a chunk is missing, or the checksum was taken already.
    pub fn finish(&self) -> Result<(u64, Digest), Abandoned> {
        let mut state = self.lock();
        if state.abandoned || !state.waiting.is_empty() {
            return Err(Abandoned);
        }
        let accumulator = state.accumulator.take().ok_or(Abandoned)?;
        Ok((accumulator.length(), accumulator.finalize()))
    }

    /// Takes all chunks that are in order by now, unless another thread is at it: that one will
    /// find them.
    fn feed<'a>(&'a self, mut state: MutexGuard<'a, State>) {
        while let Some(Some(_)) = state.waiting.front() {
            let Some(mut accumulator) = state.accumulator.take() else { return };
            // Its place stays until it is done: numbers are counted from there.
            let mut chunk = state.waiting[0].take().expect("looked at above");
            drop(state);
            accumulator.blocks(&chunk);
            chunk.clear();
            state = self.lock();
            state.accumulator = Some(accumulator);
            state.spare.push(chunk);
            state.waiting.pop_front();
            state.next += 1;
            self.moved.notify_all();
        }
    }

    fn wait_until(
        &self,
        ready: impl Fn(&State) -> bool,
    ) -> Result<MutexGuard<'_, State>, Abandoned> {
        let state = self
            .moved
            .wait_while(self.lock(), |state| !state.abandoned && !ready(state))
            .unwrap_or_else(PoisonError::into_inner);
        if state.abandoned { Err(Abandoned) } else { Ok(state) }
    }

    /// The state is whole between any two statements that hold the lock, so a poisoned lock has
    /// nothing to hide.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
