//! Scoped threads as in the standard library, where shuttle differs: a panic of a thread reaches the caller of
//! [`scope`] when all threads have ended, and a thread may fail to start.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use shuttle::rand::{Rng, thread_rng};

/// Also true while another thread of the model panics.
pub(crate) use std::thread::panicking;

pub(crate) struct Scope<'scope, 'env: 'scope> {
    inner: &'scope shuttle::thread::Scope<'scope, 'env>,
    has_panicked: Arc<AtomicBool>,
}

pub(crate) fn scope<'env, T>(run: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T) -> T {
    let has_panicked = Arc::new(AtomicBool::new(false));
    let result = shuttle::thread::scope(|inner| {
        // Leaked, because a variable of this closure does not live as long as the threads.
        let scope = Box::leak(Box::new(Scope { inner, has_panicked: Arc::clone(&has_panicked) }));
        catch_unwind(AssertUnwindSafe(|| run(scope)))
    });
    let result = result.unwrap_or_else(|panic| resume_unwind(panic));
    if has_panicked.load(Ordering::Relaxed) {
        resume_unwind(Box::new("a scoped thread panicked"));
    }
    result
}

pub(crate) struct Builder;

impl Builder {
    pub(crate) fn new() -> Self {
        Self
    }

    pub(crate) fn name(self, _name: String) -> Self {
        self
    }

    /// Starts a thread, or fails as if the system had no more.
    pub(crate) fn spawn_scoped<'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        run: impl FnOnce() + Send + 'scope,
    ) -> io::Result<()> {
        if thread_rng().gen_ratio(1, 8) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        scope.inner.spawn(move || {
            if catch_unwind(AssertUnwindSafe(run)).is_err() {
                scope.has_panicked.store(true, Ordering::Relaxed);
            }
        });
        Ok(())
    }
}
