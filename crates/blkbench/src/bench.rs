//! Measuring: the contestants, their input, and the order and number of samples.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use blkrecord::record;

use crate::clock;
use crate::clock::{Elapsed, Start};
use crate::contestant::Contestant;
use crate::counter::{self, CoreCycles};
use crate::input::{Buffer, Walk};
use crate::machine::{Machine, available_memory};
use crate::stats::Spread;

/// The parameters of a run.
#[derive(Clone, Debug)]
pub struct Bench {
    /// Length of a block in bytes.
    pub block_size: usize,
    /// Number of blocks that a contestant gets at a time.
    pub batch: usize,
    /// The scenarios. Every contestant is measured in each of them.
    pub scenarios: Vec<Scenario>,
    /// The amount of work of each contestant in each scenario.
    pub amount: Amount,
}

/// An amount of work.
#[derive(Clone, Copy, Debug)]
pub enum Amount {
    /// As many blocks as fit in this time, for all repetitions together.
    Time(Duration),
    /// At least this number of blocks on each thread, in whole batches.
    Blocks(u64),
}

/// The circumstances of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// Number of threads that do the same at the same time, each on its own blocks.
    pub threads: usize,
    /// The place of the blocks.
    pub memory: Memory,
}

/// The place of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// The same batch again and again. It is in the cache if it fits.
    Hot,
    /// Different blocks each time, from a buffer that is larger than the cache if possible.
    Cold,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The machine that ran the benchmark.
    pub machine: Machine,
    /// The parameters and conditions of the run.
    pub conditions: Conditions,
    /// The rows, one for each contestant and scenario, ordered by scenario.
    pub rows: Vec<Row>,
}

record! {
    /// The parameters and conditions of a run.
    #[derive(Clone, Debug)]
    pub struct Conditions {
        /// bytes of a block
        pub block_size: usize,
        /// blocks that an implementation gets at a time
        pub batch: usize,
        /// samples of each row
        pub repetitions: usize,
        /// what a tick is: `cycles of the time stamp counter` or `nanoseconds`
        pub ticks: &'static str,
        /// the rate of ticks, as measured
        pub ticks_per_nanosecond: f64,
        /// why there are no core cycles; null if there are
        pub core_cycles_missing: Option<String>,
        /// whether every thread stayed on a processor of its own
        pub pinned: bool,
        /// bytes of the buffer that blocks come from with `--cold`; null without
        pub cold_buffer: Option<usize>,
        /// what is unusual about the run
        pub notes: Vec<String>,
    }
}

/// The figures of a contestant in a scenario.
#[derive(Clone, Debug)]
pub struct Row {
    /// The name of what is computed.
    pub group: String,
    /// The name of the contestant.
    pub name: String,
    /// The name of the contestant in other layouts.
    pub row_name: Option<String>,
    /// The scenario.
    pub scenario: Scenario,
    /// Total number of blocks.
    pub blocks: u64,
    /// Ticks per block on one thread.
    pub ticks: Spread,
    /// Core cycles per block on one thread.
    pub core_cycles: Option<Spread>,
    /// MiB per second on all threads; `None` if the contestant does not read its input.
    pub speed: Option<Spread>,
    /// Ticks per block, relative to the reference in the same scenario.
    pub ratio: Option<f64>,
    /// The samples from which the figures are computed.
    pub samples: Vec<Sample>,
}

record! {
    /// One measurement.
    #[derive(Clone, Copy, Debug)]
    pub struct Sample {
        /// blocks on all threads
        pub blocks: u64,
        /// ticks, the sum of all threads
        pub ticks: u64,
        /// core cycles, the sum of all threads
        pub core_cycles: Option<u64>,
        /// from the common start of the threads to the end of the last one
        pub nanoseconds: u64,
    }
}

impl Bench {
    /// Number of samples of each row, if there are enough blocks.
    pub const REPETITIONS: usize = 10;

    /// Returns the parameters of a run on one thread, with blocks in the cache.
    pub fn hot(block_size: usize, batch: usize, time: Duration) -> Self {
        let scenarios = vec![Scenario { threads: 1, memory: Memory::Hot }];
        Self { block_size, batch, scenarios, amount: Amount::Time(time) }
    }

    /// Measures `contestants`, and calls `progress` with the part that is done, from 0 to 1.
    pub fn run(&self, contestants: &[Contestant], mut progress: impl FnMut(f64)) -> Report {
        let machine = Machine::this();
        let run = Run::new(self, &machine);
        let mut rows = Vec::new();
        let steps = (self.scenarios.len() * (run.repetitions + 1)) as f64;
        let mut done = 0.0;
        for &scenario in &self.scenarios {
            let mut positions = vec![0; scenario.threads];
            let calls: Vec<u64> = contestants
                .iter()
                .map(|contestant| run.calls(contestant, scenario, &mut positions))
                .collect();
            let mut samples = vec![Vec::with_capacity(run.repetitions); contestants.len()];
            for _ in 0..run.repetitions {
                done += 1.0;
                progress(done / steps);
                for ((contestant, &calls), samples) in
                    contestants.iter().zip(&calls).zip(&mut samples)
                {
                    samples.push(run.sample(contestant, scenario, calls, &mut positions));
                }
            }
            done += 1.0;
            rows.extend(self.rows(contestants, scenario, samples));
        }
        let conditions = run.conditions(&rows);
        Report { machine, conditions, rows }
    }

    fn rows(
        &self,
        contestants: &[Contestant],
        scenario: Scenario,
        samples: Vec<Vec<Sample>>,
    ) -> impl Iterator<Item = Row> {
        let ticks = |samples: &[Sample]| {
            Spread::of(samples.iter().map(|sample| sample.ticks as f64 / sample.blocks as f64))
        };
        let reference = contestants.iter().position(|contestant| contestant.is_reference);
        let reference = reference.map(|index| ticks(&samples[index]).median);
        let shown = contestants.iter().zip(samples).filter(|(contestant, _)| contestant.is_shown);
        shown.map(move |(contestant, samples)| {
            let ticks = ticks(&samples);
            let cycles: Option<Vec<f64>> = samples
                .iter()
                .map(|sample| Some(sample.core_cycles? as f64 / sample.blocks as f64))
                .collect();
            let speeds = samples.iter().map(|sample| {
                let bytes = sample.blocks as f64 * self.block_size as f64;
                bytes / (1 << 20) as f64 / (sample.nanoseconds.max(1) as f64 / 1e9)
            });
            Row {
                group: contestant.group.clone(),
                name: contestant.name.clone(),
                row_name: contestant.row_name.clone(),
                scenario,
                blocks: samples.iter().map(|sample| sample.blocks).sum(),
                ticks,
                core_cycles: cycles.map(Spread::of),
                speed: contestant.reads.then(|| Spread::of(speeds)),
                ratio: reference.map(|reference| ticks.median / reference),
                samples,
            }
        })
    }
}

/// A run in progress, shared by all samples.
struct Run<'a> {
    bench: &'a Bench,
    repetitions: usize,
    cpus: Vec<usize>,
    /// A buffer for each thread.
    hot: Vec<Buffer>,
    cold: Option<(usize, Buffer)>,
    core_cycles_missing: Option<String>,
    notes: Vec<String>,
}

impl<'a> Run<'a> {
    fn new(bench: &'a Bench, machine: &Machine) -> Self {
        let threads = bench.scenarios.iter().map(|scenario| scenario.threads).max().unwrap_or(1);
        let cpus = blksys::allowed_cores();
        let batch_size = bench.block_size * bench.batch;
        let mut notes = Vec::new();
        let repetitions = match bench.amount {
            Amount::Time(_) => Bench::REPETITIONS as u64,
            Amount::Blocks(blocks) => {
                (blocks / bench.batch as u64).clamp(1, Bench::REPETITIONS as u64)
            }
        };
        let cold = bench.scenarios.iter().any(|scenario| scenario.memory == Memory::Cold);
        let cold = cold.then(|| {
            let (size, note) = cold_size(machine, batch_size * threads);
            notes.extend(note);
            (size, Buffer::noise(size, u64::MAX))
        });
        if threads > cpus.len() && !cpus.is_empty() {
            notes.push(format!("{threads} threads share {} processors", cpus.len()));
        }
        if machine.last_level_cache.is_some_and(|cache| (batch_size * threads) as u64 > cache) {
            notes.push("the batches do not fit the last-level cache: nothing is hot".to_owned());
        }
        if cfg!(debug_assertions) {
            notes.push("not an optimised build: the figures mean nothing".to_owned());
        }
        Self {
            bench,
            repetitions: repetitions as usize,
            cpus,
            hot: (0..threads).map(|thread| Buffer::noise(batch_size, thread as u64)).collect(),
            cold,
            core_cycles_missing: counter::missing(),
            notes,
        }
    }

    fn conditions(self, rows: &[Row]) -> Conditions {
        let samples =
            || rows.iter().filter(|row| row.scenario.threads == 1).flat_map(|row| &row.samples);
        let ticks: u64 = samples().map(|sample| sample.ticks).sum();
        let nanoseconds: u64 = samples().map(|sample| sample.nanoseconds).sum();
        Conditions {
            block_size: self.bench.block_size,
            batch: self.bench.batch,
            repetitions: self.repetitions,
            ticks: clock::TICKS,
            ticks_per_nanosecond: if nanoseconds > 0 {
                ticks as f64 / nanoseconds as f64
            } else {
                0.0
            },
            core_cycles_missing: self.core_cycles_missing,
            pinned: self.hot.len() <= self.cpus.len() && self.cpus.iter().all(|&cpu| can_pin(cpu)),
            cold_buffer: self.cold.map(|(size, _)| size),
            notes: self.notes,
        }
    }

    /// Returns the number of calls for a sample. The calls made to find it also warm up.
    fn calls(&self, contestant: &Contestant, scenario: Scenario, positions: &mut [usize]) -> u64 {
        let share = match self.bench.amount {
            Amount::Time(time) => time / self.repetitions as u32,
            Amount::Blocks(blocks) => {
                return blocks.div_ceil((self.repetitions * self.bench.batch) as u64).max(1);
            }
        };
        let enough = WARM_UP.min(share / 4);
        let mut calls = 1;
        loop {
            let sample = self.sample(contestant, scenario, calls, positions);
            let time = Duration::from_nanos(sample.nanoseconds.max(1));
            if time >= enough || calls >= MAX_CALLS {
                let fitting = calls as f64 * share.as_secs_f64() / time.as_secs_f64();
                return (fitting as u64).clamp(1, MAX_CALLS);
            }
            calls *= 4;
        }
    }

    /// Measures `calls` calls on every thread.
    fn sample(
        &self,
        contestant: &Contestant,
        scenario: Scenario,
        calls: u64,
        positions: &mut [usize],
    ) -> Sample {
        let barrier = Barrier::new(scenario.threads);
        let results: Vec<(Elapsed, Option<u64>)> = thread::scope(|scope| {
            let threads: Vec<_> = positions
                .iter_mut()
                .enumerate()
                .map(|(thread, position)| {
                    let barrier = &barrier;
                    scope.spawn(move || {
                        if let Some(&cpu) = self.cpus.get(thread) {
                            // The report shows it if this fails.
                            let _ = blksys::pin_to_core(cpu);
                        }
                        self.sample_thread(contestant, scenario, thread, calls, position, barrier)
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("a contestant does not panic"))
                .collect()
        });
        let slowest = results.iter().map(|(elapsed, _)| elapsed.time).max().unwrap_or_default();
        Sample {
            blocks: calls * (self.bench.batch * scenario.threads) as u64,
            ticks: results.iter().map(|(elapsed, _)| elapsed.ticks).sum(),
            core_cycles: results.iter().map(|(_, cycles)| *cycles).sum(),
            nanoseconds: slowest.as_nanos() as u64,
        }
    }

    fn sample_thread(
        &self,
        contestant: &Contestant,
        scenario: Scenario,
        thread: usize,
        calls: u64,
        position: &mut usize,
        barrier: &Barrier,
    ) -> (Elapsed, Option<u64>) {
        let blocks = match (scenario.memory, &self.cold) {
            (Memory::Cold, Some((_, buffer))) => {
                let mut blocks = buffer.blocks(self.bench.block_size);
                let share = blocks.len() / scenario.threads;
                blocks.drain(..thread * share);
                blocks.truncate(share);
                blocks
            }
            _ => self.hot[thread].blocks(self.bench.block_size),
        };
        let mut walk = Walk::new(&blocks, self.bench.batch, *position);
        let mut work = contestant.work();
        work(walk.batch());
        let mut cycles = match self.core_cycles_missing {
            None => CoreCycles::start().ok(),
            Some(_) => None,
        };
        barrier.wait();
        let cycles_before = cycles.as_mut().and_then(CoreCycles::read);
        let start = Start::now();
        for _ in 0..calls {
            work(walk.batch());
        }
        let elapsed = start.elapsed();
        let cycles_after = cycles.as_mut().and_then(CoreCycles::read);
        *position = walk.position();
        let cycles = cycles_before.zip(cycles_after).map(|(before, after)| after - before);
        (elapsed, cycles)
    }
}

/// Returns the size of the buffer for cold blocks, with a note if it is too small.
fn cold_size(machine: &Machine, at_least: usize) -> (usize, Option<String>) {
    let cache = machine.last_level_cache;
    let wanted = cache.map_or(MAX_COLD, |cache| 2 * cache).max(MIN_COLD);
    let memory = available_memory().map_or(u64::MAX, |memory| memory / 4);
    let size = wanted.min(MAX_COLD).min(memory);
    let size = (size as usize & !((1 << 20) - 1)).max(at_least);
    let note = cache.filter(|&cache| (size as u64) < 2 * cache).map(|cache| {
        let cache = crate::text::size(cache);
        format!("the cold buffer is less than twice the last-level cache of {cache}: part of it may stay there")
    });
    (size, note)
}

fn can_pin(cpu: usize) -> bool {
    thread::scope(|scope| scope.spawn(|| blksys::pin_to_core(cpu)).join().unwrap_or(false))
}

/// Long enough for clock rates to rise and caches to fill.
const WARM_UP: Duration = Duration::from_millis(5);

/// A limit for calls that take no time.
const MAX_CALLS: u64 = 1 << 24;

/// Maximum size of the buffer for cold blocks.
const MAX_COLD: u64 = 1 << 30;

/// Minimum size of the buffer for cold blocks.
const MIN_COLD: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    fn counting(name: &str, calls: &Arc<AtomicU64>) -> Contestant {
        let calls = Arc::clone(calls);
        Contestant::new("count", name, move || {
            let calls = Arc::clone(&calls);
            Box::new(move |blocks| {
                calls.fetch_add(blocks.len() as u64, Ordering::Relaxed);
            })
        })
    }

    #[test]
    fn every_contestant_does_the_amount_of_work() {
        let calls = Arc::new(AtomicU64::new(0));
        let mut reference = counting("a", &calls);
        (reference.is_reference, reference.is_shown) = (true, false);
        let other = Arc::new(AtomicU64::new(0));
        let contestants =
            [reference, counting("b", &other), Contestant::nop(), Contestant::memcpy()];
        let scenarios = vec![
            Scenario { threads: 1, memory: Memory::Hot },
            Scenario { threads: 2, memory: Memory::Cold },
        ];
        let bench = Bench { block_size: 512, batch: 4, scenarios, amount: Amount::Blocks(100) };
        let mut last = 0.0;
        let report = bench.run(&contestants, |progress| last = progress);
        assert!(last > 0.5 && last <= 1.0);
        let names: Vec<_> =
            report.rows.iter().map(|row| (row.name.as_str(), row.scenario.threads)).collect();
        assert_eq!(
            names,
            [
                ("b", 1),
                ("NULL-NOP", 1),
                ("NULL-MEMCPY", 1),
                ("b", 2),
                ("NULL-NOP", 2),
                ("NULL-MEMCPY", 2)
            ]
        );
        for row in &report.rows {
            assert_eq!(row.blocks, 10 * 12 * row.scenario.threads as u64, "{}", row.name);
            assert_eq!(row.samples.len(), 10);
            assert_eq!(row.speed.is_none(), row.name == "NULL-NOP");
            assert!(row.ratio.is_some());
        }
        // Each sample and thread warms up with one more batch.
        assert_eq!(other.load(Ordering::Relaxed), 10 * (12 + 4) + 2 * 10 * (12 + 4));
        assert_eq!(calls.load(Ordering::Relaxed), other.load(Ordering::Relaxed));
        assert!(report.conditions.cold_buffer.is_some());
    }

    #[test]
    fn time_bounds_the_run() {
        let scenarios = vec![Scenario { threads: 1, memory: Memory::Hot }];
        let amount = Amount::Time(Duration::from_millis(50));
        let bench = Bench { block_size: 4096, batch: 1, scenarios, amount };
        let report = bench.run(&[Contestant::memcpy()], |_| {});
        let nanoseconds: u64 = report.rows[0].samples.iter().map(|sample| sample.nanoseconds).sum();
        // On a busy machine memory looks slower, which makes the run shorter.
        assert!(nanoseconds > 1_000_000, "{nanoseconds}");
        assert!(report.conditions.ticks_per_nanosecond > 0.1);
    }
}
