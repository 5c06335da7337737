//! File content lent as memory, so that bytes in the page cache need not be copied.
//!
//! A file is mapped in windows, each of which is unmapped when its last borrower drops it. Only bytes
//! in the page cache are lent. All others are better read ahead than waited for in page faults, and a
//! fault in a hole of a tmpfs would allocate a page. If a file shrinks or a disk fails while its memory
//! is lent, the process gets SIGBUS, which `fault.rs` handles. The window then reads as zeros, and
//! [`Lent::is_intact`] returns `false`.

mod fault;
mod window;

use std::fs::File;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use self::window::Window;
use crate::storage::local::page_cache::is_resident;

/// Bytes of a file in memory. They are given back on drop.
///
/// If another process writes to the file, the bytes change while they are lent. As for bytes that were
/// read, [`Source::check_unchanged`](crate::Source::check_unchanged) detects this afterwards.
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

    /// Returns whether all bytes read from it so far were the content of the file. If not, results
    /// computed from them are invalid, and reading the same range returns the error.
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
    /// Last window that was made, kept for the next borrower.
    newest: Option<Arc<Window>>,
    /// Number of consecutive windows that lent too little.
    poor: u32,
}

/// A window that is or was in use.
#[derive(Debug)]
struct Entry {
    number: u64,
    window: Weak<Window>,
    /// Number of bytes lent from it.
    lent: u64,
}

impl Windows {
    /// Lends the `length` bytes from `offset` on of `file`, which has `size` bytes, or as many of them
    /// as are in one window.
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
        // Unmapping takes time. No other thread should wait for it.
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

    /// Makes a window the newest. Returns the previous one.
    fn put(&mut self, number: u64, window: &Arc<Window>, length: usize) -> Option<Arc<Window>> {
        for gone in self.entries.extract_if(.., |entry| entry.window.strong_count() == 0) {
            self.poor = if gone.lent < MIN_LENT { self.poor + 1 } else { 0 };
        }
        self.entries.push(Entry { number, window: Arc::downgrade(window), lent: length as u64 });
        self.newest.replace(window.clone())
    }
}

/// Size of a window in bytes: large enough to hide the cost of mapping and unmapping, small enough to
/// keep the resident memory small.
const WINDOW_SIZE: u64 = 16 << 20;

/// Maximum number of windows of one file that are mapped. It bounds the resident memory if content is fragmented.
/// Limit in windows.
const MAX_WINDOWS: usize = 32;

/// Minimum size of a file that is lent. Threads that map one small file after the other wait for each
/// other, because the address space of a process has one lock.
const MIN_SIZE: u64 = 2 << 20;

/// Minimum length that is lent. Copying less is as cheap.
const MIN_LENGTH: usize = 64 << 10;

/// Minimum number of bytes that a window must lend to be worth its cost.
const MIN_LENT: u64 = 1 << 20;

/// Number of consecutive poor windows after which the file is only read, because its
/// content is fragmented.
const MAX_POOR: u32 = 16;
