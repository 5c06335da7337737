use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering::SeqCst;

use blkhash::check;
use shuttle::sync::atomic::AtomicUsize;

use super::*;

const ITEMS: u64 = 8;
const THREADS: usize = 3;

/// Where the run fails.
#[derive(Clone, Copy, PartialEq)]
enum At {
    Never,
    Error(u64),
    PanicOfList(u64),
    PanicAhead(u64),
    PanicInTurn(u64),
}

fn is_small(item: u64) -> bool {
    item % 4 != 3
}

/// Processes all items, and returns those passed to `in_turn`, with the result, or `None` after a panic.
fn run(failing: At) -> (Vec<u64>, Option<Result<(), u64>>) {
    let panic_at = |at| {
        if failing == at {
            resume_unwind(Box::new("expected"));
        }
    };
    let mut seen = Vec::new();
    let (ahead, in_turn) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let items = (0..ITEMS).inspect(|item| panic_at(At::PanicOfList(*item)));
    let result = catch_unwind(AssertUnwindSafe(|| {
        in_order(
            THREADS,
            items,
            |item| {
                ahead.fetch_add(1, SeqCst);
                panic_at(At::PanicAhead(*item));
                ahead.fetch_sub(1, SeqCst);
                is_small(*item).then_some(item * 7)
            },
            |item, result| {
                assert_eq!(in_turn.fetch_add(1, SeqCst), 0);
                assert_eq!(result, (item > 0 && is_small(item)).then_some(item * 7));
                panic_at(At::PanicInTurn(item));
                if result.is_none() {
                    assert_eq!(ahead.load(SeqCst), 0, "{item} is alone");
                }
                seen.push(item);
                in_turn.fetch_sub(1, SeqCst);
                if failing == At::Error(item) { Err(item) } else { Ok(()) }
            },
        )
    }));
    (seen, result.ok())
}

#[test]
fn every_item_once_and_in_order() {
    check(30_000, || {
        let (seen, result) = run(At::Never);
        assert!(seen.into_iter().eq(0..ITEMS));
        assert_eq!(result, Some(Ok(())));
    });
}

#[test]
fn an_error_ends_the_run() {
    for item in 0..ITEMS {
        check(2000, move || {
            let (seen, result) = run(At::Error(item));
            assert!(seen.into_iter().eq(0..=item));
            assert_eq!(result, Some(Err(item)));
        });
    }
}

#[test]
fn a_panic_ends_the_run_and_reaches_the_caller() {
    for item in 1..ITEMS {
        for failing in [At::PanicOfList(item), At::PanicAhead(item), At::PanicInTurn(item)] {
            check(1000, move || {
                let (seen, result) = run(failing);
                assert!(seen.len() as u64 <= item);
                assert!(seen.into_iter().zip(0..).all(|(seen, item)| seen == item));
                assert_eq!(result, None);
            });
        }
    }
}
