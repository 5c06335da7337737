//! Messages on standard error.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::quote;
use crate::stdio::Stderr;

/// Writes `PROGRAM: TEXT`. Remembers a failure for [`is_lost`].
pub fn message(program: &str, text: &str) {
    if write(program, text).is_err() {
        IS_LOST.store(true, Relaxed);
    }
}

/// Writes `PROGRAM: TEXT`. A failure to write it does not affect the exit status.
pub fn remark(program: &str, text: &str) {
    let _ = write(program, text);
}

/// Returns whether a message could not be written. The run then fails, as in other commands, because
/// only the exit status is left to report the problem.
pub fn is_lost() -> bool {
    IS_LOST.load(Relaxed)
}

/// Makes a single write, so that the lines of several processes do not mix.
fn write(program: &str, text: &str) -> io::Result<()> {
    Stderr.write_all(format!("{program}: {}\n", quote::printable(text)).as_bytes())
}

/// Writes `PROGRAM: NAME: TEXT`, like [`message`].
pub fn message_of(program: &str, name: &[u8], text: &str) {
    message(program, &format!("{}: {text}", quote::name(name)));
}

/// Writes `PROGRAM: NAME: TEXT`, like [`remark`].
pub fn remark_of(program: &str, name: &[u8], text: &str) {
    remark(program, &format!("{}: {text}", quote::name(name)));
}

/// Returns the system's description of an error, as C programs print it.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match error.raw_os_error() {
        Some(code) => text.strip_suffix(&format!(" (os error {code})")).unwrap_or(&text).to_owned(),
        None => text,
    }
}

static IS_LOST: AtomicBool = AtomicBool::new(false);
