//! Threads that do not disturb the program they run in.

use std::io;
use std::thread::{self, Scope, ScopedJoinHandle};

use crate::construction::Crew;
use crate::sync::{Builder, JoinHandle};

/// Up to N threads, started anew for each piece of work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Threads(pub(super) usize);

impl Crew for Threads {
    fn size(&self) -> usize {
        self.0.max(1)
    }

    fn run(&self, count: usize, work: &(dyn Fn() + Sync)) {
        thread::scope(|scope| {
            let started = (0..count).filter(|_| spawn_scoped(scope, work).is_ok()).count();
            // A started thread may wait for milliseconds for the processor of this one. So this
            // thread waits, unless another thread could not be started.
            if started < count {
                work();
            }
        });
    }
}

/// Starts a thread that blocks signals, because they are for the threads of the program.
pub(super) fn spawn<T, F>(work: F) -> io::Result<JoinHandle<T>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    without_signals(|| Builder::new().name(name()).spawn(work))
}

/// Like [`spawn`], in a scope.
fn spawn_scoped<'scope, T, F>(
    scope: &'scope Scope<'scope, '_>,
    work: F,
) -> io::Result<ScopedJoinHandle<'scope, T>>
where
    F: FnOnce() -> T + Send + 'scope,
    T: Send + 'scope,
{
    without_signals(|| thread::Builder::new().name(name()).spawn_scoped(scope, work))
}

fn name() -> String {
    "blkhash".to_owned()
}

/// Calls `start` with signals blocked, because a thread inherits the signal mask of the thread that
/// starts it. Signals that report a fault of the thread itself stay enabled.
#[cfg(unix)]
fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    use nix::sys::signal::{SigSet, SigmaskHow, Signal};

    let mut blocked = SigSet::all();
    for own in [Signal::SIGBUS, Signal::SIGFPE, Signal::SIGILL, Signal::SIGSEGV, Signal::SIGTRAP] {
        blocked.remove(own);
    }
    let before = blocked.thread_swap_mask(SigmaskHow::SIG_BLOCK);
    let started = start();
    if let Ok(before) = before {
        // The mask was valid before.
        let _ = before.thread_set_mask();
    }
    started
}

#[cfg(not(unix))]
fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    start()
}
