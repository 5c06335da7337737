//! Signals that end a copy: a message says what is left of it.

use std::ffi::OsString;
use std::thread;

use nix::sys::signal::{SigSet, Signal, raise};

use crate::map::output::Watched;
use crate::messages;
use crate::outputs::{Fate, Leftover};

/// Signals that are held, so that a message comes before they end the process.
pub struct Held(SigSet);

/// What an interruption leaves.
pub struct Interrupted {
    /// The destination.
    pub name: OsString,
    /// The new file that the destination is. `None` is a destination that could not be opened.
    pub leftover: Option<Leftover>,
    pub has_map: bool,
    /// The map that is the log, if it could be opened.
    pub log: Option<Watched>,
    pub quiet: bool,
}

impl Held {
    /// Holds the signals that are not ignored. Called before there is another thread.
    pub fn new() -> Self {
        let ends = |signal: &Signal| !blksys::is_ignored(*signal);
        let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().filter(ends).collect();
        // It fails for what is no signal.
        let _ = signals.thread_block();
        Self(signals)
    }

    /// Says whether the copy can be resumed, and what becomes of a new file, and then lets the signal end the process.
    pub fn explain(self, interrupted: Interrupted) {
        let wait = move || {
            let Ok(signal) = self.0.wait() else { return };
            // Until the process ended, what the text says stays true.
            let fate = Fate::now();
            if let Some(text) = interrupted.text(&fate) {
                messages::remark_of(interrupted.name.as_encoded_bytes(), text);
            }
            let _ = self.0.thread_unblock();
            let _ = raise(signal);
            drop(fate);
        };
        // Without a thread for it, a signal would have no effect.
        if let Err(signals) = thread::Builder::new().spawn(wait).map_err(|_| self.0) {
            let _ = signals.thread_unblock();
        }
    }
}

impl Interrupted {
    fn text(&self, fate: &Fate) -> Option<&'static str> {
        let leftover = self.leftover?;
        match (self.has_map, fate.is_lost(leftover)) {
            (false, true) if !self.quiet && !leftover.is_new() => Some(EMPTIED),
            (true, _) if self.log.as_ref().is_some_and(|log| log.has_checkpoint(fate)) => {
                Some(INTERRUPTED)
            }
            (true, true) if leftover.is_new() => Some(NO_CHECKPOINT),
            (true, _) => Some(NO_CHECKPOINT_OF_OLD),
            (false, _) if self.quiet => None,
            (false, true) => Some(REMOVED),
            (false, false) => Some(PART),
        }
    }
}

const INTERRUPTED: &str = "interrupted: continue with --resume";
const NO_CHECKPOINT: &str = "interrupted before the first checkpoint, so the new file is removed: --checkpoint=SECONDS makes one sooner";
const NO_CHECKPOINT_OF_OLD: &str = "interrupted before the first checkpoint, so it cannot be resumed: --checkpoint=SECONDS makes one sooner";
const REMOVED: &str =
    "interrupted: the new file is removed: with --map=FILE, --resume could continue";
const EMPTIED: &str = "interrupted: it is empty again: with --map=FILE, --resume could continue";
const PART: &str = "interrupted: it may hold a part of the copy";
