//! A list that is worked through in order, by several threads where its items are small.
//!
//! Every item is handed to `in_turn` once, in the order of the list and never two at a time, as soon
//! as it and all before it are done. Before that `ahead` may have made its result: on any thread, side
//! by side with others, and no further ahead than [`Window`] lets it. An item without such a result is
//! handed over while no thread works on another one, so that it may use all of them.
//!
//! As in the pipeline no thread only moves results: the thread that brings the next one hands it over,
//! with those that were waiting behind it.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};

/// Works through `items`, such as the names of many images, on at most `threads` threads, the caller's
/// included. Small ones are best done by one thread each, side by side, and large ones by all threads, one
/// after another:
///
/// - `ahead` makes the result of an item on any thread, while other items are worked on. It returns `None`
///   for an item that is to be done in its turn.
/// - `in_turn` gets each item once, in their order and never two at a time, with its result. An item
///   without one may use all threads: no other is worked on meanwhile.
///
/// Other threads start with the third item at the earliest, and after one that could be done ahead. The
/// first item is always done in its turn.
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
/// Returns the error of `in_turn`, after which no item is handed over.
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
    // A panic of any thread goes on here: what is left of the state is not looked at.
    thread::scope(|scope| list.work(scope));
    let state = list.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    state.failure.map_or(Ok(()), Err)
}

/// The work, shared by its threads.
struct List<I, A, C, T, R, E> {
    /// Held while the next item is waited for, never together with `in_turn`.
    source: Mutex<Source<I>>,
    ahead: A,
    in_turn: Mutex<C>,
    state: Mutex<State<T, R, E>>,
    /// The state changed, and a thread sleeps.
    changed: Condvar,
}

struct Source<I> {
    items: I,
    next_number: u64,
}

struct State<T, R, E> {
    window: Window<T, R>,
    /// Threads that may still be started.
    idle_threads: usize,
    /// Threads that work ahead.
    working: usize,
    /// Threads that wait for `changed`.
    sleeping: usize,
    /// A thread is in `in_turn`, or on its way there.
    is_handing_over: bool,
    /// No thread may begin to work ahead.
    is_closed: bool,
    /// `in_turn` failed or a thread panicked: the end.
    is_abandoned: bool,
    /// The error of `in_turn`.
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
    /// Works until there is nothing left, on this thread and others.
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

    /// The next item, once there is room for it in the window.
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

    /// Puts an item into the window, and hands over what is next unless another thread does.
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

    /// Starts another thread, if there may be one and the system has one to give.
    fn start_thread<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        let mut state = self.lock();
        if state.idle_threads > 0 {
            state.idle_threads -= 1;
            drop(state);
            // Without it the others do its work.
            let _ = thread::Builder::new()
                .name("blksum".to_owned())
                .spawn_scoped(scope, move || self.work(scope));
        }
    }

    /// Ends the other threads, which would wait for one that panicked.
    fn give_up(&self) {
        self.lock().is_abandoned = true;
        self.changed.notify_all();
    }

    /// The state is whole whenever the lock is released, so a poisoned lock hides nothing.
    fn lock(&self) -> MutexGuard<'_, State<T, R, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits as long as `condition` holds, and no longer than there is something to do.
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

/// The items that were taken from the list and not yet handed over.
struct Window<T, R> {
    size: usize,
    /// How many were handed over: the number of the first in `waiting`.
    done: u64,
    /// None for what is still being worked on.
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

/// Does something if its thread panics.
struct OnPanic<F: Fn()>(F);

impl<F: Fn()> Drop for OnPanic<F> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0();
        }
    }
}

/// Enough that no thread waits for an item that takes some times longer than others.
const WINDOW_PER_THREAD: usize = 16;

/// Items are small, but for names in hostile check files, of 16 KiB.
const MAX_WINDOW: usize = 1024;

const NO_PANIC: &str = "no thread panicked";

#[cfg(test)]
mod tests;
