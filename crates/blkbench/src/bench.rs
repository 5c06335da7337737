//! Measuring: who, how often, on what, in which order.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use serde::Serialize;

use crate::clock::{Elapsed, Start};
use crate::contestant::Contestant;
use crate::counter::{self, CoreCycles};
use crate::input::{Buffer, Walk};
use crate::machine::Machine;
use crate::stats::Spread;
use crate::{clock, cores};

/// What to measure, and how much of it.
#[derive(Clone, Debug)]
pub struct Bench {
    /// Length of a block in bytes.
    pub block_size: usize,
    /// Blocks that a contestant gets at a time.
    pub batch: usize,
    /// The circumstances, each of them measured with every contestant.
    pub scenarios: Vec<Scenario>,
    /// How much each contestant does in each scenario.
    pub amount: Amount,
}

/// How much a contestant does.
#[derive(Clone, Copy, Debug)]
pub enum Amount {
    /// As much as it can for so long, all repetitions together.
    Time(Duration),
    /// So many blocks on each thread, or a few more to make batches of them.
    Blocks(u64),
}

/// Circumstances of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Scenario {
    /// Threads that do the same at the same time, each on blocks of its own.
    pub threads: usize,
    /// Where the blocks are.
    pub memory: Memory,
}

/// Where blocks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Memory {
    /// The same batch again and again: in the cache, if it fits.
    Hot,
    /// Ever other blocks of a buffer that is larger than the cache.
    Cold,
}

/// Everything that was measured.
#[derive(Clone, Debug)]
pub struct Report {
    /// What it was measured on.
    pub machine: Machine,
    /// And how.
    pub conditions: Conditions,
    /// One row for each contestant and scenario, scenario by scenario.
    pub rows: Vec<Row>,
}

/// How it was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Conditions {
    /// Length of a block in bytes.
    pub block_size: usize,
    /// Blocks at a time.
    pub batch: usize,
    /// Samples of each row.
    pub repetitions: usize,
    /// What a tick is.
    pub ticks: &'static str,
    /// Ticks in a nanosecond, as measured.
    pub ticks_per_nanosecond: f64,
    /// Why there are no core cycles; `None` if there are.
    pub core_cycles_missing: Option<String>,
    /// Whether every thread stayed on a processor of its own.
    pub pinned: bool,
    /// Bytes of the buffer that cold blocks come from.
    pub cold_buffer: Option<usize>,
    /// What is odd about this run, in words.
    pub notes: Vec<String>,
}

/// What a contestant did in a scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What it computes.
    pub group: String,
    /// Its own name.
    pub name: String,
    /// Its name in other layouts.
    #[serde(skip)]
    pub row_name: Option<String>,
    /// The circumstances.
    #[serde(flatten)]
    pub scenario: Scenario,
    /// Blocks it took in all.
    pub blocks: u64,
    /// Ticks for a block on one thread.
    pub ticks: Spread,
    /// Core cycles for a block on one thread.
    pub core_cycles: Option<Spread>,
    /// MiB in a second on all threads; `None` if it does not read.
    pub speed: Option<Spread>,
    /// Ticks for a block, in proportion to those of the reference in the same scenario.
    pub ratio: Option<f64>,
    /// What it was computed from.
    pub samples: Vec<Sample>,
}

/// One measurement.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sample {
    /// Blocks on all threads.
    pub blocks: u64,
    /// Ticks, the sum of all threads.
    pub ticks: u64,
    /// Core cycles, the sum of all threads.
    pub core_cycles: Option<u64>,
    /// From the start of the threads, which is common, to the end of the last one.
    pub nanoseconds: u64,
}

impl Bench {
    /// Samples of each row, unless there are not enough blocks for them.
    pub const REPETITIONS: usize = 10;

    /// Measures `contestants`, and tells `progress` how much is done, from 0 to 1.
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

/// A run in progress: what all samples share.
struct Run<'a> {
    bench: &'a Bench,
    repetitions: usize,
    cpus: Vec<usize>,
    /// One for each thread.
    hot: Vec<Buffer>,
    cold: Option<(usize, Buffer)>,
    core_cycles_missing: Option<String>,
    notes: Vec<String>,
}

impl<'a> Run<'a> {
    fn new(bench: &'a Bench, machine: &Machine) -> Self {
        let threads = bench.scenarios.iter().map(|scenario| scenario.threads).max().unwrap_or(1);
        let cpus = cores::allowed();
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

    /// How many calls make a sample. Finding it out also warms everything up.
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
                            // Where it is refused, the header says so.
                            let _ = cores::pin(cpu);
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

/// How many bytes cold blocks come from, and what is odd about that.
fn cold_size(machine: &Machine, at_least: usize) -> (usize, Option<String>) {
    let cache = machine.last_level_cache;
    let wanted = cache.map_or(MAX_COLD, |cache| 2 * cache).max(MIN_COLD);
    let memory = machine.available_memory.map_or(u64::MAX, |memory| memory / 4);
    let size = wanted.min(MAX_COLD).min(memory);
    let size = (size as usize & !((1 << 20) - 1)).max(at_least);
    let note = cache.filter(|&cache| (size as u64) < 2 * cache).map(|cache| {
        let cache = crate::text::size(cache);
        format!("the cold buffer is less than twice the last-level cache of {cache}: part of it may stay there")
    });
    (size, note)
}

fn can_pin(cpu: usize) -> bool {
    thread::scope(|scope| scope.spawn(|| cores::pin(cpu)).join().unwrap_or(false))
}

/// Long enough for clocks to rise and caches to fill.
const WARM_UP: Duration = Duration::from_millis(5);

/// Calls that take nothing would never fill their time.
const MAX_CALLS: u64 = 1 << 24;

/// The largest buffer for cold blocks.
const MAX_COLD: u64 = 1 << 30;

/// The smallest one.
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
    fn every_contestant_does_what_was_asked_for() {
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
        // One more batch for each sample and thread warms up.
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
        // A busy machine makes memory look slower than it is, and so the run shorter.
        assert!(nanoseconds > 1_000_000, "{nanoseconds}");
        assert!(report.conditions.ticks_per_nanosecond > 0.1);
    }
}
