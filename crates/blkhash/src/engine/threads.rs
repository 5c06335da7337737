//! Threads that do not get in the way of the program they run in.

use std::io;
use std::thread::{self, Builder, JoinHandle, Scope, ScopedJoinHandle};

use crate::construction::Crew;

/// At most so many threads, started anew for each work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Threads(pub(super) usize);

impl Crew for Threads {
    fn size(&self) -> usize {
        self.0.max(1)
    }

    fn run(&self, count: usize, work: &(dyn Fn() + Sync)) {
        thread::scope(|scope| {
            let started = (0..count).filter(|_| spawn_scoped(scope, work).is_ok()).count();
            // A thread that goes on working keeps those it has started from its own processor for
            // milliseconds: this one waits, unless the system has no threads to give.
            if started < count {
                work();
            }
        });
    }
}

/// A thread that takes no signals: they are for the threads of the program.
pub(super) fn spawn<T, F>(work: F) -> io::Result<JoinHandle<T>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    without_signals(|| builder().spawn(work))
}

/// The same in a scope.
fn spawn_scoped<'scope, T, F>(
    scope: &'scope Scope<'scope, '_>,
    work: F,
) -> io::Result<ScopedJoinHandle<'scope, T>>
where
    F: FnOnce() -> T + Send + 'scope,
    T: Send + 'scope,
{
    without_signals(|| builder().spawn_scoped(scope, work))
}

fn builder() -> Builder {
    Builder::new().name("blkhash".to_owned())
}

/// A thread has the signal mask of the one that starts it. Those that report what it did itself
/// stay.
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
        // It was valid a moment ago.
        let _ = before.thread_set_mask();
    }
    started
}

#[cfg(not(unix))]
fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    start()
}
