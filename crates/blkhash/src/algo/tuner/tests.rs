use super::*;

/// A CPU on which each kernel takes its own time for a byte, for a job of one thread.
struct Simulated {
    tuner: Tuner,
    pending: Pending,
    /// Nanoseconds for a byte, for each kernel. The guess is that kernel 0 is the best.
    costs: Vec<f64>,
    /// The factor by which the next batch is slower or faster than that.
    noise: Box<dyn FnMut() -> f64>,
    /// Nanoseconds of all batches so far.
    time: f64,
    looks: usize,
}

impl Simulated {
    fn new(costs: &[f64]) -> Self {
        Self {
            tuner: Tuner::new(),
            pending: Pending::new(),
            costs: costs.to_vec(),
            noise: Box::new(|| 1.0),
            time: 0.0,
            looks: 0,
        }
    }

    /// Hashes a batch, and returns the kernel and whether it was timed.
    fn hash(&mut self, shape: Shape) -> (usize, bool) {
        let bytes = shape.0 * shape.1;
        let current = self.current();
        let others = (0..self.costs.len()).filter(|kernel| *kernel != current);
        let candidates = || {
            self.looks += 1;
            std::iter::once(current).chain(others).collect()
        };
        let turn = self
            .tuner
            .count(&self.pending, CLASS, bytes)
            .then(|| self.tuner.turn(CLASS, shape, candidates))
            .flatten();
        let kernel = turn.map_or(current, |turn| turn.kernel);
        let time = self.costs[kernel] * bytes as f64 * (self.noise)();
        self.time += time;
        if let Some(turn) = turn {
            self.tuner.record(turn, time);
        }
        (kernel, turn.is_some())
    }

    fn hash_bytes(&mut self, bytes: usize) {
        for _ in 0..bytes / BATCH {
            self.hash(SHAPE);
        }
    }

    /// Hashes `bytes`, with the last batch of which a look is due. It is counted, but not hashed.
    fn until_due(&mut self, bytes: i64) {
        self.hash_bytes(bytes as usize - BATCH);
        assert!(self.tuner.count(&self.pending, CLASS, BATCH));
    }

    /// Hashes until the end of a look, and returns the number of batches.
    fn look(&mut self) -> usize {
        let mut batches = 0;
        while self.tuner.due.load(Ordering::Relaxed) == 0 {
            self.hash(SHAPE);
            batches += 1;
        }
        while self.tuner.due.load(Ordering::Relaxed) != 0 {
            self.hash(SHAPE);
            batches += 1;
        }
        batches
    }

    fn current(&self) -> usize {
        self.tuner.best(CLASS).unwrap_or(0)
    }
}

#[test]
fn a_small_job_is_not_timed() {
    let mut cpu = Simulated::new(&[1.0, 0.5]);
    for _ in 0..FIRST_LOOK as usize / BATCH - 1 {
        assert_eq!(cpu.hash(SHAPE), (0, false));
    }
    assert!(cpu.tuner.timings().is_empty());
}

#[test]
fn a_guess_that_is_wrong_by_a_factor_of_two_is_corrected_by_the_first_look() {
    // Times of the kernels. The guess takes twice as long as the best one.
    for (costs, best) in [([1.0, 0.5, 0.9], 1), ([1.0, 2.0, 0.5], 2), ([0.5, 1.0, 0.6], 0)] {
        let mut cpu = Simulated::new(&costs);
        let batches = cpu.look() - FIRST_LOOK as usize / BATCH;
        assert!(batches <= costs.len() * SAMPLES, "{batches}");
        assert_eq!(cpu.current(), best);
        for _ in 0..100 {
            assert_eq!(cpu.hash(SHAPE), (best, false));
        }
        let timings = cpu.tuner.timings();
        for timing in &timings {
            assert_eq!(timing.is_best, timing.kernel == best);
            assert_eq!(timing.shape, SHAPE);
            assert!((timing.nanoseconds_per_byte - costs[timing.kernel]).abs() < 1e-9);
        }
        assert_eq!(timings.len(), costs.len());
    }
}

#[test]
fn noise_does_not_change_the_choice() {
    for seed in 1..=50 {
        // A tenth of the batches is interrupted, one in fifty is in the cache, and all vary by 2 %.
        let mut random = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed);
        let noise = move || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let small = 1.0 + (random >> 40 & 0xff) as f64 / 255.0 * 0.02;
            match random % 100 {
                0..10 => 10.0,
                10..12 => 0.8,
                _ => small,
            }
        };
        let mut cpu = Simulated::new(&[1.0, 0.9, 1.8]);
        cpu.noise = Box::new(noise);
        for _ in 0..4 {
            cpu.look();
        }
        assert_eq!(cpu.current(), 1, "seed {seed}");
    }
}

#[test]
fn a_kernel_that_is_hardly_faster_is_not_used() {
    for (cost, best) in [(0.98, 0), (0.95, 1)] {
        let mut cpu = Simulated::new(&[1.0, cost]);
        cpu.look();
        assert_eq!(cpu.current(), best, "{cost}");
    }
}

#[test]
fn a_long_job_notices_that_the_order_changed() {
    let mut cpu = Simulated::new(&[1.0, 1.5]);
    cpu.look();
    assert_eq!(cpu.current(), 0);
    cpu.costs = vec![1.5, 1.0];
    cpu.hash_bytes(NEXT_LOOK as usize - BATCH);
    assert_eq!((cpu.current(), cpu.looks), (0, 1));
    cpu.look();
    assert_eq!((cpu.current(), cpu.looks), (1, 2));
}

#[test]
fn looks_cost_less_than_half_a_percent() {
    let mut cpu = Simulated::new(&[1.0, 1.8, 1.9, 3.0]);
    let bytes = 32 << 30;
    cpu.hash_bytes(bytes);
    assert!(cpu.looks >= 8, "{}", cpu.looks);
    let overhead = cpu.time / bytes as f64 - 1.0;
    assert!(overhead < 0.005, "{overhead}");
}

#[test]
fn batches_of_other_shapes_are_not_compared() {
    let mut cpu = Simulated::new(&[1.0, 0.5]);
    cpu.until_due(FIRST_LOOK);
    assert!(cpu.hash(SHAPE).1);
    let other = (SHAPE.0 + 1, SHAPE.1);
    for _ in 0..MAX_OTHERS {
        assert!(!cpu.hash(other).1);
    }
    // The look begins again, because its own shape did not come any more.
    assert!(cpu.hash(other).1);
    assert_eq!(cpu.looks, 2);
    assert!(!cpu.hash(SHAPE).1);
}

#[test]
fn threads_share_a_look() {
    let mut cpu = Simulated::new(&[1.0, 0.5]);
    cpu.until_due(FIRST_LOOK);
    let candidates = || vec![0, 1];
    let turn = || cpu.tuner.turn(CLASS, SHAPE, candidates).unwrap();
    for _ in 0..SAMPLES {
        let (one, other) = (turn(), turn());
        assert_eq!((one.kernel, other.kernel), (0, 1));
        assert_eq!(cpu.tuner.best(CLASS), None);
        cpu.tuner.record(other, 0.5 * BATCH as f64);
        cpu.tuner.record(one, BATCH as f64);
    }
    assert_eq!(cpu.tuner.best(CLASS), Some(1));
    assert!(cpu.tuner.turn(CLASS, SHAPE, candidates).is_none());
}

#[test]
fn no_thread_waits_for_a_look() {
    let mut cpu = Simulated::new(&[1.0, 0.5]);
    cpu.until_due(FIRST_LOOK);
    let turn = cpu.tuner.turn(CLASS, SHAPE, || vec![0, 1]).unwrap();
    let class = &cpu.tuner.classes[CLASS];
    let look = class.try_lock().unwrap();
    assert!(cpu.tuner.turn(CLASS, SHAPE, || vec![0, 1]).is_none());
    cpu.tuner.record(turn, 1.0);
    assert!(cpu.tuner.timings().is_empty());
    assert!(look.candidates.iter().all(|it| it.samples.is_empty()));
    drop(look);
    cpu.look();
    assert_eq!(cpu.current(), 1);
}

#[test]
fn a_sample_of_an_earlier_look_is_dropped() {
    let mut cpu = Simulated::new(&[1.0, 0.5]);
    cpu.until_due(FIRST_LOOK);
    let candidates = || vec![0, 1];
    let late = cpu.tuner.turn(CLASS, SHAPE, candidates).unwrap();
    cpu.look();
    assert_eq!(cpu.current(), 1);
    cpu.until_due(NEXT_LOOK);
    let next = cpu.tuner.turn(CLASS, SHAPE, candidates).unwrap();
    cpu.tuner.record(late, 0.0);
    assert_eq!(cpu.tuner.classes[CLASS].try_lock().unwrap().candidates[0].samples.len(), 0);
    cpu.tuner.record(next, 1.0);
    assert_eq!(cpu.tuner.classes[CLASS].try_lock().unwrap().candidates[0].samples.len(), 1);
}

#[test]
fn one_kernel_is_not_compared_with_itself() {
    let mut cpu = Simulated::new(&[1.0]);
    cpu.until_due(FIRST_LOOK);
    assert_eq!(cpu.hash(SHAPE), (0, false));
    assert_eq!(cpu.tuner.due.load(Ordering::Relaxed), 0);
    assert!(cpu.tuner.timings().is_empty());
}

const CLASS: usize = CLASSES - 1;
const SHAPE: Shape = (16, 64 << 10);
const BATCH: usize = SHAPE.0 * SHAPE.1;
