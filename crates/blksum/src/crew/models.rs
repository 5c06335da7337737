use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use blkhash::engine::{Ordered, Reuse};
use blkhash::{Sink, SinkError, check};

use super::*;

const CHUNKS: u64 = 5;
const THREADS: usize = 3;

/// The number of a chunk.
#[derive(Default)]
struct Number(u64);

impl Planned for Number {
    fn number(&self) -> u64 {
        self.0
    }

    fn data_length(&self) -> u64 {
        1
    }
}

impl Reuse for Number {
    fn clear(&mut self) {
        self.0 = u64::MAX;
    }
}

/// Demands every number in order. Fails at the chunk of [`At::Sink`].
struct Numbers {
    next: u64,
    failing: At,
}

impl Sink<Number> for Numbers {
    fn take(&mut self, number: &Number) -> Result<(), SinkError> {
        assert_eq!(number.0, self.next);
        if self.failing == At::Sink(number.0) {
            return Err("expected".into());
        }
        self.next += 1;
        Ok(())
    }
}

/// Where the pass fails.
#[derive(Clone, Copy, PartialEq)]
enum At {
    Never,
    /// While the chunk is planned.
    Plan(u64),
    /// While this chunk is worked on, and later ones.
    Work(u64),
    Sink(u64),
    /// While this chunk is worked on, by a panic.
    Panic(u64),
}

struct Plan {
    next: u64,
    failing: At,
}

impl Planner for Plan {
    type Chunk = Number;

    fn next(&mut self, chunk: &mut Number) -> Result<bool, Error> {
        chunk.0 = self.next;
        self.next += 1;
        if self.failing == At::Plan(chunk.0) { Err(error(chunk.0)) } else { Ok(chunk.0 < CHUNKS) }
    }

    fn is_over(&self) -> bool {
        self.next >= CHUNKS
    }
}

struct Pass {
    ordered: Ordered<Number, Numbers>,
    failing: At,
}

impl Work for Pass {
    type Planner = Plan;
    type Space = ();

    fn take(&self, chunk: &Number, _space: &mut ()) -> Result<(), Stop> {
        match self.failing {
            At::Work(first) if chunk.0 >= first => return Err(error(chunk.0).into()),
            At::Panic(number) if chunk.0 == number => resume_unwind(Box::new("expected")),
            _ => {}
        }
        let mut part = self.ordered.empty();
        part.0 = chunk.0;
        Ok(self.ordered.hand_in(chunk.0, part)?)
    }

    fn abandon(&self) {
        self.ordered.abandon();
    }
}

/// An error that carries a number.
fn error(number: u64) -> Error {
    Error::Zeros { limit: number }
}

/// Runs a pass, and returns the number of chunks that the sink got, or `None` if the pass was abandoned.
fn run_pass(failing: At) -> (Result<(), Error>, Option<u64>) {
    let ordered = Ordered::new(Numbers { next: 0, failing }, 2);
    let pass = Pass { ordered, failing };
    let result = run(&pass, Plan { next: 0, failing }, THREADS, &Progress::new());
    (result, pass.ordered.finish().ok().map(|sink| sink.next))
}

#[test]
fn every_chunk_once_and_in_order() {
    check(20_000, || {
        let (result, count) = run_pass(At::Never);
        assert!(result.is_ok());
        assert_eq!(count, Some(CHUNKS));
    });
}

#[test]
fn the_first_error_in_order_ends_the_pass() {
    for number in 0..CHUNKS {
        for failing in [At::Plan(number), At::Work(number)] {
            check(2000, move || {
                let (result, count) = run_pass(failing);
                assert!(matches!(result, Err(Error::Zeros { limit }) if limit == number));
                assert_eq!(count, None);
            });
        }
    }
}

#[test]
fn an_error_of_the_sink_ends_the_pass() {
    for number in 0..CHUNKS {
        check(2000, move || {
            let (result, count) = run_pass(At::Sink(number));
            assert!(matches!(result, Err(Error::Sink(_))));
            assert_eq!(count, None);
        });
    }
}

#[test]
fn a_panic_ends_the_pass_and_reaches_the_caller() {
    for number in 0..CHUNKS {
        check(2000, move || {
            let result = catch_unwind(AssertUnwindSafe(|| run_pass(At::Panic(number))));
            assert!(result.is_err());
        });
    }
}
