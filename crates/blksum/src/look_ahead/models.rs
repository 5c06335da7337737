use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

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
    reach: u64,
    /// Number of chunks that were announced, and of those that threads took.
    announced: Arc<AtomicU64>,
    taken: Arc<AtomicU64>,
}

#[derive(Default)]
struct Number(Option<u64>);

impl Planned for Number {
    fn number(&self) -> u64 {
        self.0.expect("a chunk that was planned")
    }

    fn data_length(&self) -> u64 {
        1
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

    fn read_ahead(&self) -> u64 {
        self.reach
    }

    fn announce(&self, chunk: &Number) {
        assert!(self.reach > 0);
        assert_eq!(self.announced.fetch_add(1, SeqCst), chunk.number());
        // Threads count what they took after they have taken it.
        let ahead = chunk.number() - self.taken.load(SeqCst);
        assert!(ahead <= self.reach + THREADS as u64);
        thread::yield_now();
    }
}

/// A thread's chunks, and its error with the number of the failed chunk, or `None` after a panic.
type Taken = (Vec<u64>, Option<Result<(), u64>>);

fn take(chunks: &LookAhead<Numbers>, [announced, count]: &[Arc<AtomicU64>; 2]) -> Taken {
    let mut taken = Vec::new();
    let mut is_more = true;
    let mut chunk = Number::default();
    let end = catch_unwind(AssertUnwindSafe(|| {
        loop {
            match chunks.next(&mut chunk) {
                Ok(Some(more)) => {
                    assert!(is_more);
                    is_more = more;
                    let is_announced = chunk.number() < announced.load(SeqCst);
                    assert_eq!(is_announced, chunks.announces);
                    count.fetch_add(1, SeqCst);
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
fn run(count: u64, depth: usize, reach: u64, end: End) -> Vec<Option<Result<(), u64>>> {
    let [announced, taken]: [Arc<AtomicU64>; 2] = Default::default();
    let counts = [announced.clone(), taken.clone()];
    let plan = Numbers { next: 0, count, end, reach, announced, taken };
    let chunks = Arc::new(LookAhead::new(plan, depth));
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let (chunks, counts) = (Arc::clone(&chunks), counts.clone());
            thread::spawn(move || take(&chunks, &counts))
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
    for (depth, reach) in [(0, 0), (1, 0), (2, 0), (0, 1), (2, 2), (1, CHUNKS)] {
        check(10_000, move || {
            assert!(run(CHUNKS, depth, reach, End::Normal).iter().all(|end| *end == Some(Ok(()))));
        });
    }
}

#[test]
fn one_thread_gets_the_error_and_the_others_end() {
    for (count, reach) in [(0, 0), (1, 0), (4, 0), (0, 2), (1, 2), (4, 2)] {
        check(6000, move || {
            let mut ends = run(count, 2, reach, End::Error);
            ends.sort();
            assert_eq!(ends, [Some(Ok(())), Some(Ok(())), Some(Err(count))]);
        });
    }
}

#[test]
fn a_panic_of_the_planner_ends_the_other_threads() {
    for (count, reach) in [(0, 0), (1, 0), (4, 0), (0, 2), (1, 2), (4, 2)] {
        check(6000, move || {
            let mut ends = run(count, 2, reach, End::Panic);
            ends.sort();
            assert_eq!(ends, [None, Some(Ok(())), Some(Ok(()))]);
        });
    }
}
