use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use blkhash::check;
use shuttle::sync::atomic::AtomicUsize;
use shuttle::thread;

use super::*;

/// Lets more threads `work` than there are permits.
fn check_permits(work: impl Fn() + Clone + Send + Sync + 'static) {
    for permits in 1..=2 {
        let work = work.clone();
        check(10_000, move || {
            let semaphore = Arc::new(Semaphore::new(permits));
            let working = Arc::new(AtomicUsize::new(0));
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    let (semaphore, working, work) =
                        (Arc::clone(&semaphore), Arc::clone(&working), work.clone());
                    thread::spawn(move || {
                        for _ in 0..2 {
                            let _ = catch_unwind(AssertUnwindSafe(|| {
                                let _permit = semaphore.acquire();
                                assert!(working.fetch_add(1, SeqCst) < permits);
                                thread::yield_now();
                                working.fetch_sub(1, SeqCst);
                                work();
                            }));
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(*semaphore.free(), permits);
        });
    }
}

#[test]
fn permits_are_limited_and_return() {
    check_permits(|| {});
}

#[test]
fn a_panic_returns_its_permit() {
    check_permits(|| resume_unwind(Box::new("expected")));
}
