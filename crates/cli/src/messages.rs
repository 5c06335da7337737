//! Messages on standard error.

use std::io::{self, Write};

use crate::quote;

/// `PROGRAM: TEXT`
pub fn message(program: &str, text: &str) {
    // One write, so that the lines of several processes do not mix. Nobody is left to be told of a
    // failure.
    let _ = io::stderr().write_all(format!("{program}: {}\n", quote::printable(text)).as_bytes());
}

/// `PROGRAM: NAME: TEXT`
pub fn message_of(program: &str, name: &[u8], text: &str) {
    message(program, &format!("{}: {text}", quote::name(name)));
}

/// What the system says of an error, as C programs print it.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match error.raw_os_error() {
        Some(code) => text.strip_suffix(&format!(" (os error {code})")).unwrap_or(&text).to_owned(),
        None => text,
    }
}
