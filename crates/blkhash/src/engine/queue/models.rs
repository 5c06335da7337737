use shuttle::sync::mpsc;
use shuttle::thread;

use super::*;
use crate::check;

const PARTS: u8 = 6;
const MOST: usize = 2;

/// One thread is worth each part, and two parts are hashed in the time of one.
fn queue() -> Queue {
    Queue::new(Shares::of(2, 1, &[0, 1, 1], (1, MOST)))
}

fn part(queue: &Queue, number: u8) -> Part {
    let mut chunk = queue.empty_chunk();
    assert!(chunk.is_empty());
    chunk.data.push(number);
    Part::Chunk(chunk)
}

/// Returns the number of the batch, and the numbers of its parts.
fn content(batch: &Batch) -> (u64, Vec<u8>) {
    let mut numbers = Vec::new();
    for part in &batch.parts {
        part.for_each(|piece| match piece {
            Piece::Data(data) => numbers.extend(data),
            Piece::Zeros(_) => unreachable!("no zeros are pushed"),
        });
    }
    (batch.number, numbers)
}

/// Starts a thread that takes batches until the queue is closed, and returns their content.
fn taker(queue: &Arc<Queue>) -> thread::JoinHandle<Vec<(u64, Vec<u8>)>> {
    let queue = Arc::clone(queue);
    thread::spawn(move || {
        let mut taken = Vec::new();
        while let Some(batch) = queue.take() {
            taken.push(content(&batch));
            queue.recycle(batch);
        }
        taken
    })
}

/// Checks that the batches have every part once and in order, and are numbered without a gap.
fn check_batches(queue: &Queue, mut batches: Vec<(u64, Vec<u8>)>) {
    batches.sort();
    assert!(batches.iter().map(|(number, _)| *number).eq(0..queue.numbers_given()));
    assert!(batches.iter().all(|(_, parts)| parts.len() <= MOST));
    let state = queue.lock();
    assert_eq!(
        (state.waiting, state.taken, state.idle, state.asleep, state.woken),
        (0, 0, 0, 0, 0)
    );
    drop(state);
    assert!(batches.iter().flat_map(|(_, parts)| parts).copied().eq(0..PARTS));
}

#[test]
fn every_part_is_taken_once_and_in_order() {
    check(20_000, || {
        let queue = Arc::new(queue());
        let takers = [taker(&queue), taker(&queue)];
        for number in 0..PARTS {
            queue.push(part(&queue, number));
        }
        queue.close();
        check_batches(&queue, takers.into_iter().flat_map(|taker| taker.join().unwrap()).collect());
    });
}

#[test]
fn a_producer_that_hashes_as_well() {
    check(20_000, || {
        let queue = Arc::new(queue());
        let takers = [taker(&queue), taker(&queue)];
        let mut own = Vec::new();
        for number in 0..PARTS {
            if let Err(batch) = queue.push_or_take(part(&queue, number), 1, MOST) {
                own.push(content(&batch));
                queue.recycle(batch);
            }
        }
        queue.close();
        own.extend(takers.into_iter().flat_map(|taker| taker.join().unwrap()));
        check_batches(&queue, own);
    });
}

#[test]
fn a_lent_buffer_is_cut() {
    check(20_000, || {
        let queue = Arc::new(queue());
        let takers = [taker(&queue), taker(&queue)];
        let buffer: Buffer = Arc::new(Vec::from_iter(0..PARTS));
        for range in [0..1, 1..5, 5..usize::from(PARTS)] {
            queue.push(Part::Lent(Arc::clone(&buffer), range));
        }
        queue.close();
        check_batches(&queue, takers.into_iter().flat_map(|taker| taker.join().unwrap()).collect());
        assert_eq!(Arc::strong_count(&buffer), 1);
    });
}

/// For each batch, a new thread is asked for or an idle one woken up. So all are taken before the end.
#[test]
fn no_batch_waits_for_the_end() {
    check(20_000, || {
        let queue = Arc::new(queue());
        let (sender, receiver) = mpsc::channel();
        let mut takers = Vec::new();
        for number in 0..PARTS {
            if queue.push(part(&queue, number)) > 0 && takers.len() < 2 {
                let (queue, sender) = (Arc::clone(&queue), sender.clone());
                takers.push(thread::spawn(move || {
                    while let Some(batch) = queue.take() {
                        sender.send(content(&batch)).unwrap();
                        queue.recycle(batch);
                    }
                }));
            }
        }
        let mut batches = Vec::new();
        while batches.iter().map(|(_, parts): &(_, Vec<_>)| parts.len()).sum::<usize>()
            < PARTS.into()
        {
            batches.push(receiver.recv().unwrap());
        }
        queue.close();
        takers.into_iter().for_each(|taker| taker.join().unwrap());
        check_batches(&queue, batches);
    });
}
