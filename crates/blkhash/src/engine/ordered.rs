//! Brings the results of several threads back into order.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;

use crate::block::BlockDigests;
use crate::segments::Segments;
use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::{Sink, SinkError};

/// A [`Sink`] `S` that several threads feed with parts of the type `T`.
///
/// The content is cut into chunks, numbered from 0. The part made from each chunk is handed in
/// once, and parts may come in any order. Parts that are ahead wait in a ring of bounded length.
/// The thread that hands in the next part in order also feeds the parts that wait for it, so no thread exists only for
/// this.
#[derive(Debug)]
pub struct Ordered<T, S> {
    state: Mutex<State<T, S>>,
    /// Signalled when `State::next` moves or the run is abandoned.
    moved: Condvar,
    window: usize,
}

#[derive(Debug)]
struct State<T, S> {
    /// The number of the next chunk in order.
    next: u64,
    /// `None` while a thread feeds it, and after it was taken.
    sink: Option<S>,
    /// The parts of chunks from `next` on that have arrived.
    waiting: VecDeque<Option<T>>,
    /// Cleared parts to reuse.
    spare: Vec<T>,
    /// Number of threads that wait for `moved`. To signal it is a system call.
    blocked: usize,
    abandoned: bool,
}

/// The reason for a thread to stop.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    /// The run was abandoned, for example because a part of the content is unavailable.
    #[error("abandoned")]
    Abandoned,
    /// The sink failed.
    #[error("{error}")]
    Sink {
        /// The number of the chunk that the sink rejected.
        number: u64,
        /// The error of the sink.
        error: SinkError,
    },
}

/// A part whose memory is reused for other chunks.
pub trait Reuse: Default {
    /// Removes the content and keeps the memory.
    fn clear(&mut self);
}

impl Reuse for BlockDigests {
    fn clear(&mut self) {
        self.clear();
    }
}

impl Reuse for Segments {
    fn clear(&mut self) {
        self.clear();
    }
}

impl<T: Reuse, S: Sink<T>> Ordered<T, S> {
    /// Creates an `Ordered` that feeds `sink`. At most `window` chunks wait for the next one in order.
    pub fn new(sink: S, window: usize) -> Self {
        Self {
            state: Mutex::new(State {
                next: 0,
                sink: Some(sink),
                waiting: VecDeque::new(),
                spare: Vec::new(),
                blocked: 0,
                abandoned: false,
            }),
            moved: Condvar::new(),
            window: window.max(1),
        }
    }

    /// Returns an empty part to fill and hand in.
    pub fn empty(&self) -> T {
        self.lock().spare.pop().unwrap_or_default()
    }

    /// Hands in the part of chunk `number`. Blocks while the chunk is further ahead than the
    /// window.
    ///
    /// # Errors
    ///
    /// Returns [`Stopped::Abandoned`] if the run was abandoned, or [`Stopped::Sink`] if the sink
    /// fails, which abandons the run.
    pub fn hand_in(&self, number: u64, part: T) -> Result<(), Stopped> {
        let mut state =
            self.wait_until(|state| number.saturating_sub(state.next) < self.window as u64)?;
        let ahead = usize::try_from(number - state.next).expect("the window is a usize");
        if state.waiting.len() <= ahead {
            state.waiting.resize_with(ahead + 1, || None);
        }
        state.waiting[ahead] = Some(part);
        self.feed(state)
    }

    /// Blocks until chunk `number` is the next one in order. The caller then feeds the sink
    /// itself and ends its turn. This is for content that cannot be hashed out of order.
    ///
    /// # Errors
    ///
    /// Returns [`Stopped::Abandoned`] if the run was abandoned.
    pub fn turn(&self, number: u64) -> Result<Turn<'_, T, S>, Stopped> {
        let mut state = self.wait_until(|state| state.next == number && state.sink.is_some())?;
        let sink = state.sink.take();
        Ok(Turn { ordered: self, sink })
    }

    /// Abandons the run. Current and future callers get [`Stopped::Abandoned`].
    pub fn abandon(&self) {
        self.lock().abandoned = true;
        self.moved.notify_all();
    }

    /// Returns the sink after every chunk was handed in.
    ///
    /// # Errors
    ///
    /// Returns [`Stopped::Abandoned`] if the run was abandoned, a chunk is missing, or the sink was
    /// taken already.
    pub fn finish(&self) -> Result<S, Stopped> {
        let mut state = self.lock();
        if state.abandoned || !state.waiting.is_empty() {
            return Err(Stopped::Abandoned);
        }
        state.sink.take().ok_or(Stopped::Abandoned)
    }

    /// Blocks until exactly the first `count` chunks were handed in, and passes the sink to `look`.
    pub(crate) fn after<R>(&self, count: u64, look: impl FnOnce(&S) -> R) -> Result<R, Stopped> {
        let state = self.wait_until(|state| state.next == count && state.sink.is_some())?;
        Ok(look(state.sink.as_ref().expect("waited for it")))
    }

    /// Feeds the sink with all parts that are in order. If another thread is feeding it, that
    /// thread will find them.
    fn feed<'a>(&'a self, mut state: MutexGuard<'a, State<T, S>>) -> Result<(), Stopped> {
        while let Some(Some(_)) = state.waiting.front() {
            let Some(mut sink) = state.sink.take() else { return Ok(()) };
            // Its slot stays until it is done, because numbers are counted from the front.
            let number = state.next;
            let mut part = state.waiting[0].take().expect("looked at above");
            drop(state);
            if let Err(error) = sink.take(&part) {
                self.abandon();
                return Err(Stopped::Sink { number, error });
            }
            part.clear();
            state = self.lock();
            state.sink = Some(sink);
            state.spare.push(part);
            state.waiting.pop_front();
            state.next += 1;
            self.signal(&state);
        }
        Ok(())
    }

    fn wait_until(
        &self,
        ready: impl Fn(&State<T, S>) -> bool,
    ) -> Result<MutexGuard<'_, State<T, S>>, Stopped> {
        let mut state = self.lock();
        while !state.abandoned && !ready(&state) {
            state.blocked += 1;
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.blocked -= 1;
        }
        if state.abandoned { Err(Stopped::Abandoned) } else { Ok(state) }
    }

    /// Wakes up all threads that wait, after `State::next` moved.
    fn signal(&self, state: &State<T, S>) {
        if state.blocked > 0 {
            self.moved.notify_all();
        }
    }

    /// Ignores poisoning, because each statement that holds the lock leaves the state consistent.
    fn lock(&self) -> MutexGuard<'_, State<T, S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sink, lent to the thread whose chunk is the next one. Abandons the run if dropped before
/// [`end`](Self::end).
pub struct Turn<'a, T: Reuse, S: Sink<T>> {
    ordered: &'a Ordered<T, S>,
    /// `None` after it was given back.
    sink: Option<S>,
}

impl<T: Reuse, S: Sink<T>> Turn<'_, T, S> {
    /// Gives the sink back, after it was fed with the chunk.
    ///
    /// # Errors
    ///
    /// Returns [`Stopped::Sink`] if the sink fails to take a part that waits for the chunk.
    pub fn end(mut self) -> Result<(), Stopped> {
        let mut state = self.ordered.lock();
        state.sink = self.sink.take();
        // The slot of this chunk, which exists if later parts have arrived.
        state.waiting.pop_front();
        state.next += 1;
        self.ordered.signal(&state);
        self.ordered.feed(state)
    }
}

impl<T: Reuse, S: Sink<T>> Deref for Turn<'_, T, S> {
    type Target = S;

    fn deref(&self) -> &S {
        self.sink.as_ref().expect("it is given back at the end")
    }
}

impl<T: Reuse, S: Sink<T>> DerefMut for Turn<'_, T, S> {
    fn deref_mut(&mut self) -> &mut S {
        self.sink.as_mut().expect("it is given back at the end")
    }
}

impl<T: Reuse, S: Sink<T>> Drop for Turn<'_, T, S> {
    fn drop(&mut self) {
        if self.sink.is_some() {
            self.ordered.abandon();
        }
    }
}

#[cfg(all(test, shuttle))]
mod models;
