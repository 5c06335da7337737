//! Chunks that are planned before a thread asks for them.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::Error;
use crate::plan::{Chunk, Plan};

/// Hands out the chunks of a plan. Planning may take I/O, so one thread at a time plans ahead of
/// the others. They wait for it only if no chunk is planned.
pub(crate) struct LookAhead<'a> {
    /// Locked by the planning thread. No other thread waits for it.
    plan: Mutex<Plan<'a>>,
    state: Mutex<State>,
    /// Signalled when a chunk is planned, or when planning ends.
    changed: Condvar,
    depth: usize,
}

#[derive(Default)]
struct State {
    planned: VecDeque<Chunk>,
    /// Used chunks whose memory is reused.
    spare: Vec<Chunk>,
    is_planning: bool,
    /// Whether a chunk was handed out. There may be other threads from then on.
    has_begun: bool,
    /// Whether all chunks are planned.
    is_over: bool,
    /// Planning error, with the number of the chunk that could not be planned.
    failure: Option<(u64, Error)>,
}

impl<'a> LookAhead<'a> {
    /// Hands out the chunks of `plan`, with up to `depth` of them planned ahead.
    pub(crate) fn new(plan: Plan<'a>, depth: usize) -> Self {
        Self { plan: Mutex::new(plan), state: Mutex::default(), changed: Condvar::new(), depth }
    }

    /// Replaces `chunk` with the next one. Returns whether more chunks may follow, or `None` if
    /// there is no next chunk. On error, sets the number of `chunk` to that of the chunk that
    /// failed.
    pub(crate) fn next(&self, chunk: &mut Chunk) -> Result<Option<bool>, Error> {
        let mut state = self.lock();
        loop {
            if let Some(planned) = state.planned.pop_front() {
                let before = std::mem::replace(chunk, planned);
                state.spare.push(before);
                state.has_begun = true;
                return Ok(Some(!state.is_over || !state.planned.is_empty()));
            }
            if state.is_over {
                let Some((number, error)) = state.failure.take() else { return Ok(None) };
                chunk.number = number;
                return Err(error);
            }
            if state.is_planning {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            } else {
                state.is_planning = true;
                let depth = if state.has_begun { self.depth.max(1) } else { 1 };
                drop(state);
                self.plan(depth);
                state = self.lock();
            }
        }
    }

    /// Plans on this thread until `depth` chunks wait. Other threads take chunks meanwhile.
    fn plan(&self, depth: usize) {
        let _end = EndOfPlanning(self);
        let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.lock();
        while state.planned.len() < depth && !state.is_over {
            let mut chunk = state.spare.pop().unwrap_or_default();
            drop(state);
            let planned = plan.next(&mut chunk);
            state = self.lock();
            match planned {
                Ok(true) => {
                    state.planned.push_back(chunk);
                    state.is_over = plan.is_over();
                    self.changed.notify_one();
                }
                Ok(false) => state.is_over = true,
                Err(error) => {
                    state.is_over = true;
                    state.failure = Some((chunk.number, error));
                }
            }
        }
        drop(state);
    }

    /// The state is consistent whenever the lock is released, so a poisoned lock is safe to use.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets another thread plan, or ends the plan after a panic.
struct EndOfPlanning<'a, 'p>(&'a LookAhead<'p>);

impl Drop for EndOfPlanning<'_, '_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_planning = false;
        state.is_over |= std::thread::panicking();
        self.0.changed.notify_all();
    }
}
