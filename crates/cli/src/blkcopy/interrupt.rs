//! Signals that end a copy whose map has what it needs to go on.

use std::ffi::OsString;
use std::path::PathBuf;
use std::thread;

use nix::sys::signal::{SigSet, Signal, raise};

use crate::messages;

/// Signals that are held, so that a message comes before they end the process.
pub struct Held(SigSet);

impl Held {
    /// Holds the signals that are not ignored. Called before there is another thread.
    pub fn new() -> Self {
        let ends = |signal: &Signal| !blksys::is_ignored(*signal);
        let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().filter(ends).collect();
        // It fails for what is no signal.
        let _ = signals.thread_block();
        Self(signals)
    }

    /// Says about `name` whether the copy can go on with the map, and then lets the signal end the process.
    pub fn explain(self, name: OsString, map: PathBuf) {
        let wait = move || {
            let Ok(signal) = self.0.wait() else { return };
            // The map gets its name with its first checkpoint.
            let text = if map.exists() { INTERRUPTED } else { NO_CHECKPOINT };
            messages::remark_of(name.as_encoded_bytes(), text);
            let _ = self.0.thread_unblock();
            let _ = raise(signal);
        };
        // Without a thread for it, a signal would have no effect.
        if let Err(signals) = thread::Builder::new().spawn(wait).map_err(|_| self.0) {
            let _ = signals.thread_unblock();
        }
    }
}

const INTERRUPTED: &str = "interrupted: --resume goes on behind the last checkpoint";
const NO_CHECKPOINT: &str = "interrupted before the first checkpoint, so nothing can go on: --checkpoint=SECONDS makes one sooner";
