//! Chunks that are planned before a thread asks for them.

use std::collections::VecDeque;
use std::sync::PoisonError;

use crate::Error;
use crate::sync::{Condvar, Mutex, MutexGuard, thread};

/// Cuts content into chunks, from start to end.
pub(crate) trait Planner: Send {
    type Chunk: Planned;

    /// Replaces `chunk` with the next one. Returns whether there is one. Sets the number of the chunk
    /// also if it fails.
    fn next(&mut self, chunk: &mut Self::Chunk) -> Result<bool, Error>;

    /// Returns whether no chunk is left.
    fn is_over(&self) -> bool;

    /// Returns the number of bytes of data that should be planned and announced ahead. 0 means that announcing never has an
    /// effect.
    fn read_ahead(&self) -> u64 {
        0
    }

    /// Announces the reads of a chunk to its sources.
    fn announce(&self, chunk: &Self::Chunk) {
        let _ = chunk;
    }
}

/// A part of the content for one thread.
pub(crate) trait Planned: Default + Send {
    /// Returns the index of the chunk in the plan.
    fn number(&self) -> u64;

    /// Returns the number of bytes to read.
    fn data_length(&self) -> u64;
}

/// Hands out the chunks of a plan. Planning may take I/O, so one thread at a time plans ahead of
/// the others. They wait for it only if no chunk is planned.
///
/// Chunks of a source that wants announcements are planned as far ahead as it wants, and announced in their order. A thread that
/// takes a chunk plans first what is missing, so that the source always knows of about as many bytes.
pub(crate) struct LookAhead<P: Planner> {
    /// Locked by the planning thread. No other thread waits for it.
    plan: Mutex<P>,
    state: Mutex<State<P::Chunk>>,
    /// Signalled when a chunk is planned, or when planning ends.
    changed: Condvar,
    depth: usize,
    /// Whether the sources want announcements.
    announces: bool,
}

struct State<C> {
    planned: VecDeque<C>,
    /// Number of bytes to read in the planned chunks.
    planned_bytes: u64,
    /// Number of bytes that should be planned, as the sources said last.
    reach: u64,
    /// Used chunks whose memory is reused.
    spare: Vec<C>,
    is_planning: bool,
    /// Whether a chunk was handed out. There may be other threads from then on.
    has_begun: bool,
    /// Whether all chunks are planned.
    is_over: bool,
    /// Planning error, with the chunk that could not be planned.
    failure: Option<(C, Error)>,
}

impl<P: Planner> LookAhead<P> {
    /// Hands out the chunks of `plan`, with up to `depth` of them planned ahead.
    pub(crate) fn new(plan: P, depth: usize) -> Self {
        let reach = plan.read_ahead();
        let state = State {
            planned: VecDeque::new(),
            planned_bytes: 0,
            reach,
            spare: Vec::new(),
            is_planning: false,
            has_begun: false,
            is_over: false,
            failure: None,
        };
        Self {
            plan: Mutex::new(plan),
            state: Mutex::new(state),
            changed: Condvar::new(),
            depth,
            announces: reach > 0,
        }
    }

    /// Replaces `chunk` with the next one. Returns whether more chunks may follow, or `None` if
    /// there is no next chunk. On error, replaces `chunk` with the one that failed.
    pub(crate) fn next(&self, chunk: &mut P::Chunk) -> Result<Option<bool>, Error> {
        let mut state = self.lock();
        if self.announces && !state.is_planning && !state.is_over && !state.is_full() {
            state = self.plan(state, 1);
        }
        loop {
            if let Some(planned) = state.planned.pop_front() {
                state.planned_bytes -= planned.data_length();
                let before = std::mem::replace(chunk, planned);
                state.spare.push(before);
                state.has_begun = true;
                return Ok(Some(!state.is_over || !state.planned.is_empty()));
            }
            if state.is_over {
                let Some((failed, error)) = state.failure.take() else { return Ok(None) };
                *chunk = failed;
                return Err(error);
            }
            if state.is_planning {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            } else {
                let depth = if state.has_begun { self.depth.max(1) } else { 1 };
                state = self.plan(state, depth);
            }
        }
    }

    /// Plans on this thread until `depth` chunks wait, or as many as the sources want. Other threads take chunks meanwhile.
    fn plan<'s>(
        &'s self,
        mut state: MutexGuard<'s, State<P::Chunk>>,
        depth: usize,
    ) -> MutexGuard<'s, State<P::Chunk>> {
        state.is_planning = true;
        drop(state);
        let end = EndOfPlanning(self);
        let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        let reach = if self.announces { plan.read_ahead() } else { 0 };
        let mut state = self.lock();
        state.reach = reach;
        while (state.planned.len() < depth || !state.is_full()) && !state.is_over {
            let mut chunk = state.spare.pop().unwrap_or_default();
            drop(state);
            let planned = plan.next(&mut chunk);
            if let Ok(true) = planned
                && self.announces
            {
                plan.announce(&chunk);
            }
            state = self.lock();
            match planned {
                Ok(true) => {
                    state.planned_bytes += chunk.data_length();
                    state.planned.push_back(chunk);
                    state.is_over = plan.is_over();
                    self.changed.notify_one();
                }
                Ok(false) => state.is_over = true,
                Err(error) => {
                    state.is_over = true;
                    state.failure = Some((chunk, error));
                }
            }
        }
        drop(state);
        drop(plan);
        drop(end);
        self.lock()
    }

    /// The state is consistent whenever the lock is released, so a poisoned lock is safe to use.
    fn lock(&self) -> MutexGuard<'_, State<P::Chunk>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> State<C> {
    /// Returns whether as much is planned as the sources want.
    fn is_full(&self) -> bool {
        self.planned_bytes >= self.reach || self.planned.len() >= MAX_PLANNED
    }
}

/// Maximum number of chunks that are planned ahead because a source wants it. Chunks of zeros have no bytes to read.
/// Limit in chunks.
const MAX_PLANNED: usize = 1 << 10;

/// Lets another thread plan, or ends the plan after a panic.
struct EndOfPlanning<'a, P: Planner>(&'a LookAhead<P>);

impl<P: Planner> Drop for EndOfPlanning<'_, P> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_planning = false;
        state.is_over |= thread::panicking();
        self.0.changed.notify_all();
    }
}

#[cfg(all(test, shuttle))]
mod models;
