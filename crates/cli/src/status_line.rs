//! The line at the bottom of the terminal that says what the command is doing.
//!
//! There is one for the process. Everything else that is written to a terminal takes its place
//! ([`write_instead`]); the next [`show`] brings it back below.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::retry_on_intr;
use rustix::stdio::stderr;
use rustix::termios::tcgetwinsize;

/// Shows `text`, which must fit the terminal, on standard error. Does nothing where output that does
/// not end its line is pending.
pub fn show(text: String) {
    let mut line = lock();
    if !line.is_taken && line.shown != text {
        write(&format!("\r{text}{CLEAR_REST}"));
        line.shown = text;
    }
}

/// Clears the line.
pub fn clear() {
    lock().clear();
}

/// Clears the line and calls `write`, which writes `text` to a terminal. The line stays clear until
/// that is done.
pub fn write_instead<T>(text: &[u8], write: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let mut line = lock();
    line.clear();
    if let Some(last) = text.last() {
        line.is_taken = *last != b'\n';
    }
    write()
}

/// The columns of the terminal now: it may be resized at any time.
pub fn columns() -> usize {
    let columns = tcgetwinsize(stderr()).map_or(0, |size| size.ws_col);
    if columns == 0 { USUAL_COLUMNS } else { columns.into() }
}

/// The content of the last line of the terminal.
struct Line {
    /// Nothing where it is clear.
    shown: String,
    /// Something that ends in no newline.
    is_taken: bool,
}

impl Line {
    fn clear(&mut self) {
        if !self.shown.is_empty() {
            write(&format!("\r{CLEAR_REST}"));
            self.shown.clear();
        }
    }
}

/// One write, so that nothing comes between. Without the line the work continues all the same.
fn write(text: &str) {
    let _ = retry_on_intr(|| rustix::io::write(stderr(), text.as_bytes()));
}

/// The line is valid whenever the lock is released.
fn lock() -> MutexGuard<'static, Line> {
    LINE.lock().unwrap_or_else(PoisonError::into_inner)
}

static LINE: Mutex<Line> = Mutex::new(Line { shown: String::new(), is_taken: false });

/// Clears from the cursor to the end of the line.
const CLEAR_REST: &str = "\x1b[K";

/// For terminals that do not know their size.
const USUAL_COLUMNS: usize = 80;
