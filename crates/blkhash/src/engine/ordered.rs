//! Brings what several threads hashed back into order.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::block::BlockDigests;
use crate::segments::Segments;
use crate::{Sink, SinkError};

/// A [`Sink`] `S` that several threads feed with parts of the type `T`.
///
/// The content is cut into chunks with consecutive numbers from 0 on, and what was made of each is
/// handed in once, in any order. What is ahead waits in a ring of bounded length; the thread that
/// hands in the next one in order takes those behind it along. No thread exists only for this.
#[derive(Debug)]
pub struct Ordered<T, S> {
    state: Mutex<State<T, S>>,
    /// Signalled when `State::next` moves or everything is abandoned.
    moved: Condvar,
    window: usize,
}

#[derive(Debug)]
struct State<T, S> {
    /// The number of the next chunk in order.
    next: u64,
    /// `None` while a thread is feeding it.
    sink: Option<S>,
    /// What has come of chunks from `next` on.
    waiting: VecDeque<Option<T>>,
    /// Memory for others.
    spare: Vec<T>,
    abandoned: bool,
}

/// Why a thread is told to stop.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    /// Nobody wants the result any more, since a part of the content could not be had.
    #[error("abandoned")]
    Abandoned,
    /// The sink takes no more.
    #[error("{error}")]
    Sink {
        /// The number of the chunk that it did not take.
        number: u64,
        /// Why.
        error: SinkError,
    },
}

/// Memory that is used again for what comes of another chunk.
pub trait Reuse: Default {
    /// Forgets what it holds and keeps the memory.
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
    /// Feeds `sink`; at most `window` chunks wait for the next one in order.
    pub fn new(sink: S, window: usize) -> Self {
        Self {
            state: Mutex::new(State {
                next: 0,
                sink: Some(sink),
                waiting: VecDeque::new(),
                spare: Vec::new(),
                abandoned: false,
            }),
            moved: Condvar::new(),
            window: window.max(1),
        }
    }

    /// An empty part to fill and hand in.
    pub fn empty(&self) -> T {
        self.lock().spare.pop().unwrap_or_default()
    }

    /// Hands in what came of the chunk `number`. Waits as long as it is further ahead than the
    /// window.
    ///
    /// # Errors
    ///
    /// It was abandoned, or the sink failed: then it is abandoned.
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

    /// Waits until the chunk `number` is the next one in order. The caller feeds the sink itself, and
    /// ends its turn. This is the way of what cannot be hashed before.
    ///
    /// # Errors
    ///
    /// It was abandoned.
    pub fn turn(&self, number: u64) -> Result<Turn<'_, T, S>, Stopped> {
        let mut state = self.wait_until(|state| state.next == number && state.sink.is_some())?;
        let sink = state.sink.take();
        Ok(Turn { ordered: self, sink })
    }

    /// Gives up: whoever waits, and whoever comes, is told so.
    pub fn abandon(&self) {
        self.lock().abandoned = true;
        self.moved.notify_all();
    }

    /// The sink, once every chunk was handed in.
    ///
    /// # Errors
    ///
    /// [`Stopped::Abandoned`] if it was, a chunk is missing, or the sink was taken already.
    pub fn finish(&self) -> Result<S, Stopped> {
        let mut state = self.lock();
        if state.abandoned || !state.waiting.is_empty() {
            return Err(Stopped::Abandoned);
        }
        state.sink.take().ok_or(Stopped::Abandoned)
    }

    /// Shows the sink, once the first `count` chunks were handed in and no more than those.
    pub(crate) fn after<R>(&self, count: u64, look: impl FnOnce(&S) -> R) -> Result<R, Stopped> {
        let state = self.wait_until(|state| state.next == count && state.sink.is_some())?;
        Ok(look(state.sink.as_ref().expect("waited for it")))
    }

    /// Takes all chunks that are in order by now, unless another thread is at it: that one will
    /// find them.
    fn feed<'a>(&'a self, mut state: MutexGuard<'a, State<T, S>>) -> Result<(), Stopped> {
        while let Some(Some(_)) = state.waiting.front() {
            let Some(mut sink) = state.sink.take() else { return Ok(()) };
            // Its place stays until it is done: numbers are counted from there.
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
            self.moved.notify_all();
        }
        Ok(())
    }

    fn wait_until(
        &self,
        ready: impl Fn(&State<T, S>) -> bool,
    ) -> Result<MutexGuard<'_, State<T, S>>, Stopped> {
        let state = self
            .moved
            .wait_while(self.lock(), |state| !state.abandoned && !ready(state))
            .unwrap_or_else(PoisonError::into_inner);
        if state.abandoned { Err(Stopped::Abandoned) } else { Ok(state) }
    }

    /// The state is whole between any two statements that hold the lock, so a poisoned lock has
    /// nothing to hide.
    fn lock(&self) -> MutexGuard<'_, State<T, S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sink, lent to the thread whose chunk is the next one. Dropped before its end, it abandons
/// everything.
pub struct Turn<'a, T: Reuse, S: Sink<T>> {
    ordered: &'a Ordered<T, S>,
    /// `None` once it is given back.
    sink: Option<S>,
}

impl<T: Reuse, S: Sink<T>> Turn<'_, T, S> {
    /// Gives the sink back, fed with the chunk.
    ///
    /// # Errors
    ///
    /// The sink failed to take what waits behind the chunk.
    pub fn end(mut self) -> Result<(), Stopped> {
        let mut state = self.ordered.lock();
        state.sink = self.sink.take();
        // Its place in the ring, if others have come behind it.
        state.waiting.pop_front();
        state.next += 1;
        self.ordered.moved.notify_all();
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
