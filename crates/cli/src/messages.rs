//! Messages on standard error.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Once, OnceLock};

use blkimage::Location;

use crate::quote;
use crate::stdio::Stderr;

/// Sets the name of the command, which begins each message. The first call counts.
pub fn name_program(name: &'static str) {
    let _ = PROGRAM.set(name);
}

/// Returns the name of the command.
pub fn program() -> &'static str {
    PROGRAM.get().copied().unwrap_or("blkhash")
}

/// Writes `PROGRAM: TEXT`. Remembers a failure for [`is_lost`].
pub fn message(text: &str) {
    if write(text).is_err() {
        IS_LOST.store(true, Relaxed);
    }
}

/// Writes `PROGRAM: TEXT`. A failure to write it does not affect the exit status.
pub fn remark(text: &str) {
    let _ = write(text);
}

/// Returns whether a message could not be written. The run then fails, as in other commands, because
/// only the exit status is left to report the problem.
pub fn is_lost() -> bool {
    IS_LOST.load(Relaxed)
}

/// Makes a single write, so that the lines of several processes do not mix.
fn write(text: &str) -> io::Result<()> {
    Stderr.write_all(format!("{}: {}\n", program(), quote::printable(text)).as_bytes())
}

/// Writes `PROGRAM: NAME: TEXT`, like [`message`].
pub fn message_of(name: &[u8], text: &str) {
    message(&format!("{}: {text}", shown(name)));
}

/// Writes `PROGRAM: NAME: TEXT`, like [`remark`].
pub fn remark_of(name: &[u8], text: &str) {
    remark(&format!("{}: {text}", shown(name)));
}

/// Quotes a name. The name of a URL has no password, and no values of its query if it has some.
pub fn shown(name: &[u8]) -> String {
    let location = Location::new(OsStr::from_bytes(name));
    let hidden = location.url().map(|_| location.shown().into_os_string().into_vec());
    match hidden.filter(|hidden| hidden.windows(3).any(|part| part == b"***")) {
        Some(hidden) => quote::name(&hidden),
        None => quote::name(name),
    }
}

/// Says that a command waits for keys, if its standard input is a terminal. Says it once, as what standard input is may be asked
/// for before it is read.
pub fn note_terminal(stdin: &File) {
    static SAID: Once = Once::new();
    if stdin.is_terminal() {
        SAID.call_once(|| remark("note: standard input is a terminal, and is read until Ctrl-D"));
    }
}

/// Returns the system's description of an error, as C programs print it.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match error.raw_os_error() {
        Some(code) => text.strip_suffix(&format!(" (os error {code})")).unwrap_or(&text).to_owned(),
        None => text,
    }
}

static PROGRAM: OnceLock<&str> = OnceLock::new();
static IS_LOST: AtomicBool = AtomicBool::new(false);
