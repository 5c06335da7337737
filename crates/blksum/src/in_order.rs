//! Processes a list in order, using several threads where its items are small.
//!
//! Each item is passed to `in_turn` once, in the order of the list and one at a time, as soon as it
//! and all items before it are done. Before that, `ahead` may compute its result on any thread,
//! side by side with other items, and as far ahead as [`Window`] allows. An item without such a
//! result is passed on while no thread works on another one, so that it may use all threads.
//!
//! As in the pipeline, there is no thread that only moves results. The thread that finishes the
//! next item passes it on, with the finished items after it.

use std::collections::VecDeque;
use std::sync::PoisonError;

use crate::sync::thread::{self, Scope};
use crate::sync::{Condvar, Mutex, MutexGuard};

/// Processes `items`, such as the names of many images, on at most `threads` threads including the
/// caller's. Small items are best done by one thread each, side by side. Large ones are best done
/// by all threads, one after the other:
///
/// - `ahead` computes the result of an item on any thread, side by side with other items. It returns
///   `None` for an item to be done in its turn.
/// - `in_turn` gets each item once, in order and one at a time, with its result. An item without a
///   result may use all threads, because no other item is in progress.
///
/// Other threads start with the third item at the earliest, and only after an item that was done
/// ahead. The first item is always done in its turn.
///
/// ```
/// let mut lengths = Vec::new();
/// let names = ["/etc/hostname", "/etc/os-release", "/etc/passwd"];
/// let ahead = |name: &&str| Some(std::fs::metadata(name).map_or(0, |found| found.len()));
/// blksum::in_order(2, names.into_iter(), ahead, |name, length| {
///     lengths.push((name, length));
///     Ok::<(), std::io::Error>(())
/// })?;
/// assert_eq!(lengths.len(), 3);
/// assert_eq!(lengths[0], ("/etc/hostname", None));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
///
/// Returns the error of `in_turn`. No item is passed on after that.
pub fn in_order<T: Send, R: Send, E: Send>(
    threads: usize,
    mut items: impl Iterator<Item = T> + Send,
    ahead: impl Fn(&T) -> Option<R> + Sync,
    mut in_turn: impl FnMut(T, Option<R>) -> Result<(), E> + Send,
) -> Result<(), E> {
    if threads < 2 {
        return items.try_for_each(|item| in_turn(item, None));
    }
    let list = List {
        source: Mutex::new(Source { items, next_number: 0 }),
        ahead,
        in_turn: Mutex::new(in_turn),
        state: Mutex::new(State {
            window: Window::new((WINDOW_PER_THREAD * threads).min(MAX_WINDOW)),
            idle_threads: threads - 1,
            working: 0,
            sleeping: 0,
            is_handing_over: false,
            is_closed: false,
            is_abandoned: false,
            failure: None,
        }),
        changed: Condvar::new(),
    };
    // A panic in any thread resumes here, before the state is used.
    thread::scope(|scope| list.work(scope));
    let state = list.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    state.failure.map_or(Ok(()), Err)
}

/// State of a run, shared by its threads.
struct List<I, A, C, T, R, E> {
    /// Held while waiting for the next item, but never together with `in_turn`.
    source: Mutex<Source<I>>,
    ahead: A,
    in_turn: Mutex<C>,
    state: Mutex<State<T, R, E>>,
    /// Signalled if the state changed and a thread sleeps.
    changed: Condvar,
}

struct Source<I> {
    items: I,
    next_number: u64,
}

struct State<T, R, E> {
    window: Window<T, R>,
    /// Number of threads that may still be started.
    idle_threads: usize,
    /// Number of threads in `ahead`.
    working: usize,
    /// Number of threads that wait for `changed`.
    sleeping: usize,
    /// Whether a thread is in `in_turn`, or about to call it.
    is_handing_over: bool,
    /// Whether threads must wait before they call `ahead`.
    is_closed: bool,
    /// Whether the run is over because `in_turn` failed or a thread panicked.
    is_abandoned: bool,
    /// Error of `in_turn`.
    failure: Option<E>,
}

impl<I, A, C, T, R, E> List<I, A, C, T, R, E>
where
    I: Iterator<Item = T> + Send,
    A: Fn(&T) -> Option<R> + Sync,
    C: FnMut(T, Option<R>) -> Result<(), E> + Send,
    T: Send,
    R: Send,
    E: Send,
{
    /// Works on this thread, and on others that it starts, until nothing is left.
    fn work<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        let _guard = OnPanic(|| self.give_up());
        let mut was_ahead = false;
        while let Some((number, item)) = self.next() {
            if was_ahead {
                self.start_thread(scope);
            }
            let result = if number == 0 { None } else { self.work_ahead(&item) };
            was_ahead = result.is_some();
            self.hand_in(number, item, result);
        }
    }

    /// Returns the next item, once there is room for it in the window.
    fn next(&self) -> Option<(u64, T)> {
        let mut source = self.source.lock().expect(NO_PANIC);
        let number = source.next_number;
        let state = self.wait_while(self.lock(), |state| !state.window.has_room(number));
        if state.is_abandoned {
            return None;
        }
        drop(state);
        let item = source.items.next()?;
        source.next_number += 1;
        Some((number, item))
    }

    fn work_ahead(&self, item: &T) -> Option<R> {
        let mut state = self.wait_while(self.lock(), |state| state.is_closed);
        if state.is_abandoned {
            return None;
        }
        state.working += 1;
        drop(state);
        let result = (self.ahead)(item);
        let mut state = self.lock();
        state.working -= 1;
        if state.is_closed {
            self.wake(&state);
        }
        result
    }

    /// Puts an item into the window, and passes on the items that are next unless another thread
    /// does.
    fn hand_in(&self, number: u64, item: T, result: Option<R>) {
        let mut state = self.lock();
        state.window.put(number, item, result);
        if state.is_handing_over {
            return;
        }
        state.is_handing_over = true;
        while !state.is_abandoned
            && let Some((item, result)) = state.window.take_next()
        {
            let is_alone = result.is_none();
            if is_alone {
                state.is_closed = true;
                state = self.wait_while(state, |state| state.working > 0);
            }
            drop(state);
            let outcome = (self.in_turn.lock().expect(NO_PANIC))(item, result);
            state = self.lock();
            state.is_closed = false;
            if let Err(error) = outcome {
                state.failure = Some(error);
                state.is_abandoned = true;
            }
            self.wake(&state);
        }
        state.is_handing_over = false;
    }

    /// Starts another thread if the limit and the system allow it.
    fn start_thread<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        let mut state = self.lock();
        if state.idle_threads > 0 {
            state.idle_threads -= 1;
            drop(state);
            // If the thread does not start, the others do its work.
            let _ = thread::Builder::new()
                .name("blksum".to_owned())
                .spawn_scoped(scope, move || self.work(scope));
        }
    }

    /// Ends the other threads, which would wait for a thread that panicked.
    fn give_up(&self) {
        self.lock().is_abandoned = true;
        self.changed.notify_all();
    }

    /// The state is consistent whenever the lock is released, so a poisoned lock is safe to use.
    fn lock(&self) -> MutexGuard<'_, State<T, R, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while `condition` holds and the run is not abandoned.
    fn wait_while<'a>(
        &self,
        mut state: MutexGuard<'a, State<T, R, E>>,
        condition: impl Fn(&State<T, R, E>) -> bool,
    ) -> MutexGuard<'a, State<T, R, E>> {
        while !state.is_abandoned && condition(&state) {
            state.sleeping += 1;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.sleeping -= 1;
        }
        state
    }

    fn wake(&self, state: &State<T, R, E>) {
        if state.sleeping > 0 {
            self.changed.notify_all();
        }
    }
}

/// Items taken from the list and not yet passed on.
struct Window<T, R> {
    size: usize,
    /// Number of items passed on, which is the number of the first item in `waiting`.
    done: u64,
    /// `None` for an item in progress.
    waiting: VecDeque<Option<(T, Option<R>)>>,
}

impl<T, R> Window<T, R> {
    fn new(size: usize) -> Self {
        Self { size, done: 0, waiting: VecDeque::new() }
    }

    fn has_room(&self, number: u64) -> bool {
        number - self.done < self.size as u64
    }

    fn put(&mut self, number: u64, item: T, result: Option<R>) {
        let index = (number - self.done) as usize;
        if self.waiting.len() <= index {
            self.waiting.resize_with(index + 1, || None);
        }
        self.waiting[index] = Some((item, result));
    }

    fn take_next(&mut self) -> Option<(T, Option<R>)> {
        let next = self.waiting.front_mut()?.take()?;
        self.waiting.pop_front();
        self.done += 1;
        Some(next)
    }
}

/// Calls the function if its thread panics.
struct OnPanic<F: Fn()>(F);

impl<F: Fn()> Drop for OnPanic<F> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0();
        }
    }
}

/// Enough that no thread waits for an item that takes several times longer than others. Models have few items.
const WINDOW_PER_THREAD: usize = if cfg!(shuttle) { 1 } else { 16 };

/// Maximum number of names and checksums that wait for their turn. They are small, except for names of 16 KiB in
/// hostile check files.
/// Limit in items.
const MAX_WINDOW: usize = 1024;

const NO_PANIC: &str = "no thread panicked";

#[cfg(test)]
mod tests;

#[cfg(all(test, shuttle))]
mod models;
