use super::*;
use crate::check;
use crate::{Algorithm, BlockSize, Construction};

const BLOCK: usize = BlockSize::MIN.get();
const BLOCKS: usize = 7;

fn content() -> Vec<u8> {
    (0..BLOCKS * BLOCK).map(|offset| (offset / 3) as u8).collect()
}

fn parameters(construction: Construction) -> Parameters {
    Parameters::new(Algorithm::Sha256, construction, BlockSize::MIN).unwrap()
}

/// Creates a pool of the caller's thread and two others, with batches of `batch` bytes.
fn pool(parameters: &Parameters, batch: usize) -> Pool {
    let digester = Digester::new(parameters.algorithm());
    let leaf = parameters.construction().has_blocks().then(|| parameters.leaf(&digester));
    let shares = Shares::of(3, BLOCK, &[0, 1, 1], (1, batch));
    Pool::of(leaf, Accumulator::with_digester(parameters, &digester, 1), 3, batch, shares)
}

/// Returns the checksum of `content`, computed on one thread.
fn expected(parameters: &Parameters, content: &[u8]) -> Digest {
    let mut accumulator = Accumulator::new(parameters, 1);
    accumulator.update(content);
    accumulator.finalize()
}

fn submit(pool: &mut Pool, data: &[u8]) {
    let mut chunk = pool.empty_chunk();
    chunk.data.extend(data);
    pool.submit(chunk);
}

/// Checks the checksum of copied and lent parts, and that the lent buffer is back.
fn check_value(construction: Construction, batch: usize) {
    let parameters = parameters(construction);
    let content = content();
    let expected = expected(&parameters, &content);
    check(4000, move || {
        let mut pool = pool(&parameters, batch);
        let (copied, lent) = content.split_at(3 * BLOCK);
        for block in copied.chunks(BLOCK) {
            submit(&mut pool, block);
        }
        let lent: Arc<Vec<u8>> = Arc::new(lent.to_vec());
        let buffer: Buffer = lent.clone();
        pool.lend(None, &buffer, 0..2 * BLOCK);
        submit(&mut pool, &lent[2 * BLOCK..3 * BLOCK]);
        drop(buffer);
        let mut last = pool.empty_chunk();
        last.data.extend(&lent[3 * BLOCK..]);
        pool.submit_last(last);
        assert_eq!(pool.finish(), expected);
        assert_eq!(Arc::strong_count(&lent), 1);
    });
}

#[test]
fn the_value_is_that_of_one_thread() {
    check_value(Construction::Flat, BLOCK);
    check_value(Construction::Flat, 2 * BLOCK);
    check_value(Construction::Linear, BLOCK);
}

#[test]
fn a_clone_has_all_that_was_submitted() {
    let parameters = parameters(Construction::Flat);
    let content = content();
    let (start, end) = content.split_at(4 * BLOCK);
    let (before, after) = (expected(&parameters, start), expected(&parameters, &content));
    let (start, end) = (start.to_vec(), end.to_vec());
    check(4000, move || {
        let mut pool = pool(&parameters, BLOCK);
        start.chunks(BLOCK).for_each(|block| submit(&mut pool, block));
        let clone = pool.clone();
        end.chunks(BLOCK).for_each(|block| submit(&mut pool, block));
        assert_eq!(clone.finish(), before);
        assert_eq!(pool.finish(), after);
    });
}

#[test]
fn a_dropped_pool_returns_its_buffers() {
    let parameters = parameters(Construction::Flat);
    let content = content();
    check(4000, move || {
        let lent = Arc::new(content.clone());
        let buffer: Buffer = lent.clone();
        let mut pool = pool(&parameters, BLOCK);
        pool.lend(None, &buffer, 0..content.len());
        drop((pool, buffer));
        assert_eq!(Arc::strong_count(&lent), 1);
    });
}

/// A buffer that panics when it is hashed.
struct Panics;

impl AsRef<[u8]> for Panics {
    fn as_ref(&self) -> &[u8] {
        // Does not call the hook, which would print the schedule.
        resume_unwind(Box::new("expected"));
    }
}

#[test]
fn a_panic_of_a_worker_reaches_the_caller() {
    let parameters = parameters(Construction::Flat);
    let content = content();
    check(4000, move || {
        let lent = Arc::new(content.clone());
        let (good, bad): (Buffer, Buffer) = (lent.clone(), Arc::new(Panics));
        let result = catch_unwind(AssertUnwindSafe(|| {
            let mut pool = pool(&parameters, BLOCK);
            pool.lend(None, &good, 0..2 * BLOCK);
            pool.lend(None, &bad, 0..BLOCK);
            pool.lend(None, &good, 2 * BLOCK..4 * BLOCK);
            pool.finish()
        }));
        assert_eq!(result.unwrap_err().downcast_ref(), Some(&"expected"));
        drop(good);
        assert_eq!(Arc::strong_count(&lent), 1);
    });
}

#[test]
fn a_clone_does_not_wait_for_a_worker_that_panicked() {
    let parameters = parameters(Construction::Flat);
    check(4000, move || {
        let bad: Buffer = Arc::new(Panics);
        let result = catch_unwind(AssertUnwindSafe(|| {
            let mut pool = pool(&parameters, BLOCK);
            pool.lend(None, &bad, 0..BLOCK);
            pool.clone()
        }));
        assert!(result.is_err());
    });
}
