use std::io;
use std::panic::{catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::Duration;

use super::*;

const COUNT: u64 = 3000;

fn run<T: Send, R: Send>(
    threads: usize,
    items: impl Iterator<Item = T> + Send,
    ahead: impl Fn(&T) -> Option<R> + Sync,
    in_turn: impl FnMut(T, Option<R>) -> io::Result<()> + Send,
) -> io::Result<()> {
    in_order(threads, items, ahead, in_turn)
}

/// Runs about `steps` steps that the compiler cannot remove.
fn spin(steps: u64) -> u64 {
    (0..steps).fold(steps, |x, step| std::hint::black_box(x ^ step))
}

/// Pseudo-random number for an item, the same in every run.
fn scattered(item: u64) -> u64 {
    item.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}

/// Pairs of a period and a number of threads. The last item of each period cannot be done ahead.
const CASES: [(u64, usize); 10] = [
    (1, 2),
    (2, 2),
    (3, 8),
    (17, 1),
    (17, 2),
    (17, 8),
    (1000, 2),
    (1000, 8),
    (u64::MAX, 2),
    (u64::MAX, 64),
];

#[test]
fn every_item_is_handed_over_once_and_in_order() {
    for (period, threads) in CASES {
        let mut seen = Vec::new();
        let ahead = |&item: &u64| {
            spin(scattered(item) % 2000);
            (item % period != period - 1).then_some(item * 7)
        };
        let in_turn = |item, result: Option<u64>| {
            assert!(result.is_none_or(|result| result == item * 7));
            // A single thread does nothing ahead, and the first item is never done ahead.
            let is_ahead = threads > 1 && item > 0 && item % period != period - 1;
            assert_eq!(result.is_some(), is_ahead, "{item}");
            seen.push(item);
            Ok(())
        };
        run(threads, 0..COUNT, ahead, in_turn).unwrap();
        assert!(seen.iter().copied().eq(0..COUNT), "{period} {threads}");
    }
}

#[test]
fn item_in_turn_is_alone_and_the_window_is_bounded() {
    for (period, threads) in CASES {
        let (working, taken) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let is_taken = AtomicUsize::new(0);
        let window = (WINDOW_PER_THREAD * threads).min(MAX_WINDOW);
        let items = (0..COUNT).inspect(|_| {
            taken.fetch_add(1, SeqCst);
        });
        let ahead = |&item: &u64| {
            assert!(working.fetch_add(1, SeqCst) < threads);
            spin(scattered(item) % 2000);
            working.fetch_sub(1, SeqCst);
            (item % period != period - 1).then_some(())
        };
        let mut done = 0;
        let in_turn = |item, result: Option<()>| {
            assert_eq!(is_taken.fetch_add(1, SeqCst), 0);
            assert!(taken.load(SeqCst) - done <= window + 1);
            done += 1;
            if result.is_none() {
                assert_eq!(working.load(SeqCst), 0);
                spin(scattered(item) % 2000);
                assert_eq!(working.load(SeqCst), 0);
            }
            is_taken.fetch_sub(1, SeqCst);
            Ok(())
        };
        run(threads, items, ahead, in_turn).unwrap();
    }
}

#[test]
fn error_ends_the_run() {
    for (period, threads) in CASES {
        for last in [0, 1, 2, 3, 500] {
            let mut seen = Vec::new();
            let ahead = |&item: &u64| (item % period != period - 1).then_some(());
            let in_turn = |item, _| {
                seen.push(item);
                if item == last { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
            };
            let error = run(threads, 0.., ahead, in_turn).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
            assert!(seen.into_iter().eq(0..=last), "{period} {threads}");
        }
    }
}

#[test]
fn small_items_are_done_side_by_side() {
    let pair = Barrier::new(2);
    let ahead = |&item: &u64| {
        // Neither item is done before both have started.
        if item == 2 || item == 3 {
            pair.wait();
        }
        Some(thread::current().id())
    };
    let mut threads = Vec::new();
    let in_turn = |_, thread| {
        threads.push(thread);
        Ok(())
    };
    run(2, 0..4, ahead, in_turn).unwrap();
    assert_ne!(threads[2], threads[3]);
}

#[test]
fn results_do_not_wait_for_later_items() {
    // The source gives its next item only after all earlier ones were passed on.
    let (handed_over, is_handed_over) = mpsc::channel();
    let items = (0..100).inspect(move |item| {
        if *item > 0 {
            assert_eq!(is_handed_over.recv(), Ok(item - 1));
        }
    });
    let in_turn = |item, _| {
        handed_over.send(item).unwrap();
        Ok(())
    };
    run(4, items, |_| Some(()), in_turn).unwrap();
}

#[test]
fn two_items_and_large_ones_stay_on_one_thread() {
    let caller = thread::current().id();
    let check = |count, is_small: fn(u64) -> bool| {
        let ahead = |&item: &u64| {
            assert_eq!(thread::current().id(), caller);
            is_small(item).then_some(())
        };
        let in_turn = |_, _| {
            assert_eq!(thread::current().id(), caller);
            Ok(())
        };
        run(8, 0..count, ahead, in_turn).unwrap();
    };
    check(0, |_| true);
    check(1, |_| true);
    check(2, |_| true);
    check(COUNT, |_| false);
}

#[test]
fn panic_ends_the_run() {
    for threads in [2, 8] {
        let ahead = |&item: &u64| {
            assert_ne!(item, 100, "on purpose");
            Some(())
        };
        let result = catch_unwind(|| run(threads, 0.., ahead, |_, _| Ok(())));
        assert!(result.is_err());
    }
}

/// A panic during a successful `in_turn` must not be lost. The other threads would wait for an item
/// that never comes.
#[test]
fn panic_ends_the_run_during_in_turn() {
    let is_panicking = AtomicBool::new(false);
    let ahead = |&item: &u64| {
        if item == 20 {
            is_panicking.store(true, SeqCst);
            // Skips the panic hook, which would print a backtrace first.
            resume_unwind(Box::new("on purpose"));
        }
        Some(())
    };
    let in_turn = |item, _| {
        while item == 5 && !is_panicking.load(SeqCst) {
            thread::yield_now();
        }
        if item == 5 {
            // Waits until the other thread has reported the panic.
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    };
    assert!(catch_unwind(|| run(2, 0.., ahead, in_turn)).is_err());
}
