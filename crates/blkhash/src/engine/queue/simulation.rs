//! What the queue makes of threads: kernels that sleep for as long as real ones compute, so that more threads than
//! processors can be tried. scripts/simulate prints the throughput relative to the ideal.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::*;
use crate::engine::share::SIZES;

/// A kernel: the lanes and the time in nanoseconds for a KiB of every lane, as the rows of Sapphire Rapids have them.
type Kernel = (usize, u64);

const SHA256: &[Kernel] = &[(1, 696), (2, 1063), (4, 2133), (16, 4673)];
const BLAKE3: &[Kernel] = &[(1, 170)];

/// The time that a block takes here. Sleeping and waking up takes longer than asked for, so this is longer than in fact.
const BLOCK: Duration = Duration::from_millis(5);

const TIME: Duration = Duration::from_millis(1500);

/// Returns the time of a thread for `count` blocks.
fn time(kernels: &[Kernel], count: usize) -> u64 {
    let (mut left, mut time) = (count, 0);
    while left > 0 {
        let rate = |(lanes, cost): &&Kernel| (left.min(*lanes) << 32) as u64 / cost;
        let (lanes, cost) = kernels.iter().max_by_key(rate).unwrap();
        left = left.saturating_sub(*lanes);
        time += cost;
    }
    time
}

/// Tells of its end.
struct Lent(mpsc::Sender<()>);

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &[]
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

/// Returns the number of blocks hashed in the time of one if `depth` updates are in flight.
fn throughput(
    kernels: &'static [Kernel],
    threads: usize,
    block: usize,
    update: usize,
    depth: usize,
) -> f64 {
    let times: Vec<_> = (0..=64).map(|count| time(kernels, count)).collect();
    let queue = &Queue::new(Shares::of(threads, block, &times, SIZES));
    let (sender, receiver) = mpsc::channel();
    let mut done = 0;
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(move || {
                while let Some(batch) = queue.take() {
                    let bytes: usize = batch.parts.iter().map(Part::len).sum();
                    thread::sleep(
                        BLOCK
                            .mul_f64(time(kernels, bytes / block) as f64 / time(kernels, 1) as f64),
                    );
                    queue.recycle(batch);
                }
            });
        }
        let lend = || {
            let buffer: Buffer = Arc::new(Lent(sender.clone()));
            queue.push(Part::Lent(buffer, 0..update));
        };
        (0..depth).for_each(|_| lend());
        while start.elapsed() < TIME {
            receiver.recv().unwrap();
            done += update / block;
            lend();
        }
        queue.close();
    });
    done as f64 / (TIME.as_secs_f64() / BLOCK.as_secs_f64())
}

/// Returns the throughput if as many threads as find enough are always busy, with as many lanes as are best for all.
fn ideal(kernels: &[Kernel], threads: usize, blocks: usize) -> f64 {
    let shares = (1..=64).map(|share| {
        let busy = threads.min(blocks / share);
        busy as f64 * share as f64 * time(kernels, 1) as f64 / time(kernels, share) as f64
    });
    shares.fold(0.0, f64::max)
}

/// Block size, size of an update and updates in flight. The last two are the C project's.
const CASES: [(usize, usize, usize); 8] = [
    (64 * KIB, 64 * KIB, 16),
    (64 * KIB, 256 * KIB, 1),
    (64 * KIB, 256 * KIB, 2),
    (64 * KIB, 256 * KIB, 4),
    (64 * KIB, 256 * KIB, 64),
    (64 * KIB, 8192 * KIB, 4),
    (64 * KIB, 256 * KIB, 16),
    (512 * KIB, 1024 * KIB, 16),
];

const KIB: usize = 1 << 10;

#[test]
fn simulation() {
    for (digest, kernels) in [("sha256", SHA256), ("blake3", BLAKE3)] {
        for (block, update, depth) in CASES {
            let shares = [1, 2, 4, 8, 16, 32, 64].map(|threads| {
                let is = throughput(kernels, threads, block, update, depth);
                format!("{threads}:{:.2}", is / ideal(kernels, threads, update * depth / block))
            });
            println!("{digest} {block} {update} {depth} {}", shares.join(" "));
        }
    }
}
