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

/// Takes about so many steps that no compiler leaves out.
fn spin(steps: u64) -> u64 {
    (0..steps).fold(steps, |x, step| std::hint::black_box(x ^ step))
}

/// Different for each, and the same in every run.
fn scattered(item: u64) -> u64 {
    item.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}

/// Every how many-th item cannot be done ahead; how many threads.
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
            // Without threads nothing is ahead, and the first never is.
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
fn an_item_in_its_turn_is_alone_and_the_others_are_bounded() {
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
fn an_error_ends_it() {
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
        // Neither comes out before both are in.
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
fn nothing_waits_for_what_comes_behind_it() {
    // The source has nothing more before all that it gave is handed over.
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
fn a_panic_ends_it() {
    for threads in [2, 8] {
        let ahead = |&item: &u64| {
            assert_ne!(item, 100, "on purpose");
            Some(())
        };
        let result = catch_unwind(|| run(threads, 0.., ahead, |_, _| Ok(())));
        assert!(result.is_err());
    }
}

/// An item that is handed over well must not hide what went wrong meanwhile: the others would wait for
/// the item that never comes.
#[test]
fn a_panic_ends_it_while_an_item_is_handed_over() {
    let is_panicking = AtomicBool::new(false);
    let ahead = |&item: &u64| {
        if item == 20 {
            is_panicking.store(true, SeqCst);
            // Without the hook, which would print a backtrace first.
            resume_unwind(Box::new("on purpose"));
        }
        Some(())
    };
    let in_turn = |item, _| {
        while item == 5 && !is_panicking.load(SeqCst) {
            thread::yield_now();
        }
        if item == 5 {
            // Until the other thread has reported it.
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    };
    assert!(catch_unwind(|| run(2, 0.., ahead, in_turn)).is_err());
}
