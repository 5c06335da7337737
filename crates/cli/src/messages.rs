//! Messages on standard error.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::quote;
use crate::stdio::Stderr;

/// `PROGRAM: TEXT`
pub fn message(program: &str, text: &str) {
    if write(program, text).is_err() {
        IS_LOST.store(true, Relaxed);
    }
}

/// `PROGRAM: TEXT`, of no importance for what came of it.
pub fn remark(program: &str, text: &str) {
    let _ = write(program, text);
}

/// Whether a message could not be written. As for other commands, that is a failure: all that is left to
/// tell is the exit status.
pub fn is_lost() -> bool {
    IS_LOST.load(Relaxed)
}

/// One write, so that the lines of several processes do not mix.
fn write(program: &str, text: &str) -> io::Result<()> {
    Stderr.write_all(format!("{program}: {}\n", quote::printable(text)).as_bytes())
}

/// `PROGRAM: NAME: TEXT`
pub fn message_of(program: &str, name: &[u8], text: &str) {
    message(program, &format!("{}: {text}", quote::name(name)));
}

/// `PROGRAM: NAME: TEXT`, of no importance for what came of it.
pub fn remark_of(program: &str, name: &[u8], text: &str) {
    remark(program, &format!("{}: {text}", quote::name(name)));
}

/// What the system says of an error, as C programs print it.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match error.raw_os_error() {
        Some(code) => text.strip_suffix(&format!(" (os error {code})")).unwrap_or(&text).to_owned(),
        None => text,
    }
}

static IS_LOST: AtomicBool = AtomicBool::new(false);
