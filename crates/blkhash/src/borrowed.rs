//! Content that a caller lends for the duration of one call.
//!
//! Threads of a pool outlive the call, so the borrow checker cannot see that the bytes do. [`lend`] waits until
//! the last thread has dropped them, also if the call panics.

#![allow(unsafe_code)]

use std::slice;
use std::sync::{Arc, PoisonError};

use crate::sync::{Condvar, Mutex};

/// Borrowed bytes, as a buffer without a lifetime.
pub(crate) struct Borrowed {
    data: *const u8,
    length: usize,
    returned: Arc<Returned>,
}

/// Signals that the bytes were returned. A channel would leave memory in the thread that waits.
#[derive(Default)]
struct Returned {
    is_back: Mutex<bool>,
    changed: Condvar,
}

/// Waits for the bytes when it is dropped.
struct Waits(Arc<Returned>);

/// Passes `data` to `take` as a buffer, and returns when the buffer was dropped.
pub(crate) fn lend(data: &[u8], take: impl FnOnce(Borrowed)) {
    let returned = Arc::new(Returned::default());
    let _waits = Waits(Arc::clone(&returned));
    take(Borrowed { data: data.as_ptr(), length: data.len(), returned });
}

// SAFETY: `lend` borrows the bytes until this is dropped, and any thread may read borrowed bytes.
unsafe impl Send for Borrowed {}
// SAFETY: as above, and nothing can be changed through a reference.
unsafe impl Sync for Borrowed {}

impl AsRef<[u8]> for Borrowed {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: pointer and length describe the slice that `lend` borrows until this is dropped.
        unsafe { slice::from_raw_parts(self.data, self.length) }
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        *self.returned.is_back.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.returned.changed.notify_one();
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        let is_back = self.0.is_back.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.0.changed.wait_while(is_back, |is_back| !*is_back));
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn returns_after_the_last_use() {
        let mut bytes = vec![7; 100];
        let mut user = None;
        lend(&bytes, |lent| {
            user = Some(thread::spawn(move || {
                thread::sleep(Duration::from_millis(50));
                lent.as_ref().iter().map(|byte| u32::from(*byte)).sum::<u32>()
            }));
        });
        bytes.fill(0);
        assert_eq!(user.unwrap().join().unwrap(), 700);
    }

    #[test]
    fn a_panic_waits_as_well() {
        let mut bytes = vec![7; 100];
        let mut user = None;
        let result = catch_unwind(AssertUnwindSafe(|| {
            lend(&bytes, |lent| {
                user = Some(thread::spawn(move || {
                    thread::sleep(Duration::from_millis(50));
                    lent.as_ref().iter().map(|byte| u32::from(*byte)).sum::<u32>()
                }));
                panic!("expected");
            });
        }));
        assert!(result.is_err());
        bytes.fill(0);
        assert_eq!(user.unwrap().join().unwrap(), 700);
    }
}

#[cfg(all(test, shuttle))]
mod models {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::SeqCst;

    use shuttle::thread;

    use super::*;
    use crate::check;

    /// Lends bytes that several threads use, and checks that all have ended when `lend` returns.
    fn check_users(ends: impl Fn() + Clone + Send + Sync + 'static) {
        check(20_000, move || {
            let ended = Arc::new(AtomicUsize::new(0));
            let mut users = Vec::new();
            let _ = catch_unwind(AssertUnwindSafe(|| {
                lend(&[7; 4], |lent| {
                    let lent = Arc::new(lent);
                    for _ in 0..2 {
                        let (lent, ended) = (Arc::clone(&lent), Arc::clone(&ended));
                        users.push(thread::spawn(move || {
                            thread::yield_now();
                            assert_eq!((*lent).as_ref(), [7; 4]);
                            ended.fetch_add(1, SeqCst);
                        }));
                    }
                    ends();
                });
            }));
            assert_eq!(ended.load(SeqCst), 2);
            users.into_iter().for_each(|user| user.join().unwrap());
        });
    }

    #[test]
    fn returns_after_the_last_use() {
        check_users(|| {});
    }

    #[test]
    fn a_panic_waits_as_well() {
        check_users(|| resume_unwind(Box::new("expected")));
    }
}
