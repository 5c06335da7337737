//! Content of a file lent as memory: what the page cache holds already need not be copied out of it.
//!
//! A file is mapped in windows, which are unmapped when the last one who borrowed from them is done.
//! Only bytes that are in the page cache are lent: everything else is better read ahead than waited
//! for in page faults, and a fault in a hole of a tmpfs would allocate its page. A file can shrink and
//! a disk can fail while its memory is lent; that raises SIGBUS, which `fault.rs` takes: the window
//! then reads as zeros, and [`Lent::is_intact`] says so.

mod fault;
mod window;

use std::fs::File;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use self::window::Window;
use crate::storage::local::page_cache::is_resident;

/// Bytes of a file where they lie in memory. They are given back when this is dropped.
///
/// Another process that writes to the file changes them under the reader's eyes: as with bytes that
/// were read, [`Source::check_unchanged`](crate::Source::check_unchanged) tells afterwards.
#[derive(Debug)]
pub struct Lent {
    window: Arc<Window>,
    range: Range<usize>,
}

impl Lent {
    /// Gives back all but the first `length` bytes.
    pub fn truncate(&mut self, length: usize) {
        self.range.end = self.range.end.min(self.range.start.saturating_add(length));
    }

    /// Whether all that was read from it so far was the content of the file. If not, what was made
    /// of it is worthless, and reading the same range tells why.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.window.is_intact()
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.window.bytes()[self.range.clone()]
    }
}

/// The windows of one file.
#[derive(Debug, Default)]
pub(crate) struct Windows(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    entries: Vec<Entry>,
    /// The window that was made last is kept for the next who needs it.
    newest: Option<Arc<Window>>,
    /// Windows in a row that were mapped for little.
    poor: u32,
}

/// A window that is in use, or was.
#[derive(Debug)]
struct Entry {
    number: u64,
    window: Weak<Window>,
    /// Bytes lent from it.
    lent: u64,
}

impl Windows {
    /// The `length` bytes from `offset` on of `file`, which has `size` bytes, or those of them that
    /// are in one window.
    pub fn lend(&self, file: &File, size: u64, offset: u64, length: usize) -> Option<Lent> {
        offset.checked_add(length as u64).filter(|end| *end <= size)?;
        let number = offset / WINDOW_SIZE;
        let length = length.min((WINDOW_SIZE - offset % WINDOW_SIZE) as usize);
        if size < MIN_SIZE || length < MIN_LENGTH || !is_resident(file, offset, length) {
            return None;
        }
        let window = self.window(file, size, number, length)?;
        let start = (offset % WINDOW_SIZE) as usize;
        Some(Lent { window, range: start..start + length })
    }

    fn window(&self, file: &File, size: u64, number: u64, length: usize) -> Option<Arc<Window>> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(window) = state.find(number, length) {
            return Some(window);
        }
        if state.poor >= MAX_POOR || state.in_use() >= MAX_WINDOWS {
            return None;
        }
        let start = number * WINDOW_SIZE;
        let window = Arc::new(Window::map(file, start, (size - start).min(WINDOW_SIZE))?);
        let replaced = state.put(number, &window, length);
        // Unmapping takes time, which nobody should wait for.
        drop((state, replaced));
        Some(window)
    }
}

impl State {
    fn find(&mut self, number: u64, length: usize) -> Option<Arc<Window>> {
        self.entries.iter_mut().filter(|entry| entry.number == number).find_map(|entry| {
            let window = entry.window.upgrade()?;
            entry.lent += length as u64;
            Some(window)
        })
    }

    fn in_use(&self) -> usize {
        self.entries.iter().filter(|entry| entry.window.strong_count() > 0).count()
    }

    /// Makes a window the newest. Returns the one that was.
    fn put(&mut self, number: u64, window: &Arc<Window>, length: usize) -> Option<Arc<Window>> {
        for gone in self.entries.extract_if(.., |entry| entry.window.strong_count() == 0) {
            self.poor = if gone.lent < MIN_LENT { self.poor + 1 } else { 0 };
        }
        self.entries.push(Entry { number, window: Arc::downgrade(window), lent: length as u64 });
        self.newest.replace(window.clone())
    }
}

/// Bytes that are mapped at once: enough to hide what mapping and unmapping cost, little enough that
/// what is resident stays small.
const WINDOW_SIZE: u64 = 16 << 20;

/// Windows of one file at a time: they bound what is resident where content lies in disorder.
const MAX_WINDOWS: usize = 32;

/// Threads that map one small file after the other wait for each other: the memory of a process has
/// one lock.
const MIN_SIZE: u64 = 2 << 20;

/// Copying less is as cheap as lending it.
const MIN_LENGTH: usize = 64 << 10;

/// A window that lends less costs more than it saves.
const MIN_LENT: u64 = 1 << 20;

/// After so many of those the file is read like any other: its content lies in disorder.
const MAX_POOR: u32 = 16;
