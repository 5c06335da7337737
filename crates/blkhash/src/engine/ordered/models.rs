use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use shuttle::sync::atomic::{AtomicU64, AtomicUsize};
use shuttle::thread;

use super::*;
use crate::check;

const CHUNKS: u64 = 5;
const THREADS: usize = 3;
const WINDOW: usize = 2;

/// The number of a chunk. Recycled parts are empty.
#[derive(Debug, Default)]
struct Part(Option<u64>);

impl Reuse for Part {
    fn clear(&mut self) {
        self.0 = None;
    }
}

/// Demands every number in order, and fails at `failing`.
#[derive(Debug, Default)]
struct Numbers {
    next: u64,
    failing: Option<u64>,
}

impl Numbers {
    fn push(&mut self, number: u64) {
        assert_eq!(number, self.next);
        self.next += 1;
    }
}

impl Sink<Part> for Numbers {
    fn take(&mut self, part: &Part) -> Result<(), SinkError> {
        let number = part.0.expect("a part that was filled");
        if Some(number) == self.failing {
            return Err("expected".into());
        }
        self.push(number);
        Ok(())
    }
}

type Model = Ordered<Part, Numbers>;

fn ordered(failing: Option<u64>) -> Arc<Model> {
    Arc::new(Ordered::new(Numbers { next: 0, failing }, WINDOW))
}

/// Passes each chunk to `work` on one of the threads, until it fails, and returns how each thread stopped.
fn on_threads(
    ordered: &Arc<Model>,
    work: impl Fn(&Model, u64) -> Result<(), Stopped> + Clone + Send + 'static,
) -> Vec<Result<(), Stopped>> {
    let next = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let (ordered, next, work) = (Arc::clone(ordered), Arc::clone(&next), work.clone());
            thread::spawn(move || {
                loop {
                    match next.fetch_add(1, SeqCst) {
                        CHUNKS.. => return Ok(()),
                        number => work(&ordered, number)?,
                    }
                }
            })
        })
        .collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

fn hand_in(ordered: &Model, number: u64) -> Result<(), Stopped> {
    let mut part = ordered.empty();
    assert_eq!(part.0, None);
    part.0 = Some(number);
    ordered.hand_in(number, part)
}

/// Takes two of three chunks in their turn.
fn hand_in_or_turn(ordered: &Model, number: u64) -> Result<(), Stopped> {
    if number.is_multiple_of(3) {
        return hand_in(ordered, number);
    }
    let mut turn = ordered.turn(number)?;
    turn.push(number);
    turn.end()
}

fn finish(ordered: Arc<Model>) -> Result<Numbers, Stopped> {
    Arc::into_inner(ordered).expect("the threads have ended").finish()
}

#[test]
fn every_part_once_and_in_order() {
    check(20_000, || {
        let ordered = ordered(None);
        assert!(on_threads(&ordered, hand_in).iter().all(Result::is_ok));
        assert_eq!(finish(ordered).unwrap().next, CHUNKS);
    });
}

#[test]
fn parts_and_turns_in_order() {
    check(20_000, || {
        let ordered = ordered(None);
        assert!(on_threads(&ordered, hand_in_or_turn).iter().all(Result::is_ok));
        assert_eq!(finish(ordered).unwrap().next, CHUNKS);
    });
}

#[test]
fn after_waits_for_exactly_that_many() {
    check(20_000, || {
        let ordered = ordered(None);
        let thread = thread::spawn({
            let ordered = Arc::clone(&ordered);
            move || on_threads(&ordered, hand_in_or_turn)
        });
        let seen = ordered.after(CHUNKS, |numbers| numbers.next);
        assert_eq!(seen.unwrap(), CHUNKS);
        assert!(thread.join().unwrap().iter().all(Result::is_ok));
    });
}

#[test]
fn a_failing_sink_ends_every_thread() {
    for failing in 0..CHUNKS {
        check(4000, move || {
            let ordered = ordered(Some(failing));
            let outcomes = on_threads(&ordered, hand_in);
            let failed: Vec<_> = outcomes
                .iter()
                .filter_map(|outcome| match outcome {
                    Err(Stopped::Sink { number, .. }) => Some(*number),
                    _ => None,
                })
                .collect();
            assert_eq!(failed, [failing]);
            assert!(matches!(finish(ordered), Err(Stopped::Abandoned)));
        });
    }
}

#[test]
fn a_panic_in_a_turn_ends_every_thread() {
    check(4000, || {
        let ordered = ordered(None);
        let panicked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&panicked);
        let outcomes = on_threads(&ordered, move |ordered, number| {
            if number != 1 {
                return hand_in(ordered, number);
            }
            let result = catch_unwind(AssertUnwindSafe(|| {
                let _turn = ordered.turn(number)?;
                std::panic::resume_unwind(Box::new("expected"));
            }));
            count.fetch_add(usize::from(result.is_err()), SeqCst);
            result.unwrap_or(Err(Stopped::Abandoned))
        });
        assert_eq!(panicked.load(SeqCst), 1);
        assert!(outcomes.iter().any(Result::is_err));
        assert!(matches!(finish(ordered), Err(Stopped::Abandoned)));
    });
}

#[test]
fn abandon_ends_threads_that_wait() {
    check(20_000, || {
        let ordered = ordered(None);
        let thread = thread::spawn({
            let ordered = Arc::clone(&ordered);
            // Chunk 0 is never handed in.
            move || (hand_in(&ordered, WINDOW as u64), ordered.turn(1).map(drop))
        });
        let other = thread::spawn({
            let ordered = Arc::clone(&ordered);
            move || ordered.after(1, |_| ())
        });
        ordered.abandon();
        let (handed_in, turn) = thread.join().unwrap();
        assert!(matches!(handed_in, Err(Stopped::Abandoned)));
        assert!(matches!(turn, Err(Stopped::Abandoned)));
        assert!(matches!(other.join().unwrap(), Err(Stopped::Abandoned)));
    });
}
