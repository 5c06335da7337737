use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use blkhash::check;
use shuttle::thread;

use super::*;

const CHUNKS: u64 = 6;
const THREADS: usize = 3;

#[derive(Clone, Copy)]
enum End {
    Normal,
    Error,
    Panic,
}

struct Numbers {
    next: u64,
    count: u64,
    end: End,
}

#[derive(Default)]
struct Number(Option<u64>);

impl Planned for Number {
    fn number(&self) -> u64 {
        self.0.expect("a chunk that was planned")
    }

    fn has_data(&self) -> bool {
        true
    }
}

impl Planner for Numbers {
    type Chunk = Number;

    fn next(&mut self, chunk: &mut Number) -> Result<bool, Error> {
        thread::yield_now();
        *chunk = Number(Some(self.next));
        if self.next == self.count {
            return match self.end {
                End::Normal => Ok(false),
                End::Error => Err(Error::Incomplete),
                End::Panic => resume_unwind(Box::new("expected")),
            };
        }
        self.next += 1;
        Ok(true)
    }

    fn is_over(&self) -> bool {
        matches!(self.end, End::Normal) && self.next == self.count
    }
}

/// A thread's chunks, and its error with the number of the failed chunk, or `None` after a panic.
type Taken = (Vec<u64>, Option<Result<(), u64>>);

fn take(chunks: &LookAhead<Numbers>) -> Taken {
    let mut taken = Vec::new();
    let mut is_more = true;
    let mut chunk = Number::default();
    let end = catch_unwind(AssertUnwindSafe(|| {
        loop {
            match chunks.next(&mut chunk) {
                Ok(Some(more)) => {
                    assert!(is_more);
                    is_more = more;
                    taken.push(chunk.number());
                }
                Ok(None) => return Ok(()),
                Err(_) => return Err(chunk.number()),
            }
        }
    }));
    (taken, end.ok())
}

/// Takes `count` chunks by several threads, and returns how the threads ended.
fn run(count: u64, depth: usize, end: End) -> Vec<Option<Result<(), u64>>> {
    let chunks = Arc::new(LookAhead::new(Numbers { next: 0, count, end }, depth));
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let chunks = Arc::clone(&chunks);
            thread::spawn(move || take(&chunks))
        })
        .collect();
    let (taken, ends): (Vec<_>, Vec<_>) =
        threads.into_iter().map(|thread| thread.join().unwrap()).unzip();
    assert!(taken.iter().all(|numbers| numbers.is_sorted()));
    let mut all = taken.concat();
    all.sort();
    assert!(all.into_iter().eq(0..count));
    ends
}

#[test]
fn every_chunk_once() {
    for depth in 0..=2 {
        check(10_000, move || {
            assert!(run(CHUNKS, depth, End::Normal).iter().all(|end| *end == Some(Ok(()))));
        });
    }
}

#[test]
fn one_thread_gets_the_error_and_the_others_end() {
    for count in [0, 1, 4] {
        check(6000, move || {
            let mut ends = run(count, 2, End::Error);
            ends.sort();
            assert_eq!(ends, [Some(Ok(())), Some(Ok(())), Some(Err(count))]);
        });
    }
}

#[test]
fn a_panic_of_the_planner_ends_the_other_threads() {
    for count in [0, 1, 4] {
        check(6000, move || {
            let mut ends = run(count, 2, End::Panic);
            ends.sort();
            assert_eq!(ends, [None, Some(Ok(())), Some(Ok(()))]);
        });
    }
}
