//! The fastest algorithm on this CPU for each use: files in one stream, images as blksum hashes them, and btrfs.

use std::time::{Duration, Instant};

use blkbench::Bench;
use blkbench::text;
use blkhash::{Algorithm, BlockSize, Construction, Digester, Parameters, Strength};
use blkimage::{Format, OpenOptions};
use blksum::{Progress, Tuning};

use super::contestants::implementation;
use super::file_system::{self, is_hard};
use super::tools::content;
use crate::blkhash::kernel;
use crate::json;
use crate::records::bench::Fastest;

/// The measurements for each use.
pub struct Answers {
    uses: Vec<Use>,
}

struct Use {
    name: &'static str,
    how: String,
    candidates: Vec<Candidate>,
}

#[derive(Clone, Debug, PartialEq)]
struct Candidate {
    name: &'static str,
    is_hard: bool,
    /// MiB in a second.
    speed: f64,
}

impl Answers {
    /// Measures `algorithms`, each for about `time`.
    pub fn measure(algorithms: &[Algorithm], time: Duration) -> Self {
        let threads = Tuning::default().threads;
        let plural = if threads == 1 { "" } else { "s" };
        let uses = vec![
            Use {
                name: "files",
                how: "one stream, one thread".to_owned(),
                candidates: files(algorithms, time / 3),
            },
            Use {
                name: "images",
                how: format!("as blksum does, {threads} thread{plural}"),
                candidates: images(algorithms, threads),
            },
            Use {
                name: "btrfs",
                how: "as its kernel does".to_owned(),
                candidates: file_systems(algorithms, time),
            },
        ];
        Self { uses }
    }

    /// Returns a table, and the answer in the last lines.
    pub fn text(&self) -> String {
        let uses = || self.uses.iter().filter(|it| !it.candidates.is_empty());
        let cell = |found: Option<&Candidate>| {
            found.map_or("-".to_owned(), |it| format!("{} {:.0} MiB/s", it.name, it.speed))
        };
        let rows: Vec<Vec<String>> = uses()
            .map(|it| {
                let (any, hard) = (cell(it.fastest(false)), cell(it.fastest(true)));
                vec![it.name.to_owned(), any, hard, it.how.clone()]
            })
            .collect();
        if rows.is_empty() {
            return String::new();
        }
        let heads = ["Fastest for", "Errors", "Forgery", "How"];
        let answer = |is_hard| {
            let one = |it: &Use| Some(format!("{} {}", it.name, it.fastest(is_hard)?.name));
            uses().filter_map(one).collect::<Vec<_>>().join(", ")
        };
        let mut text = format!("\n{}", text::table(&heads, &rows));
        let (any, hard) = (answer(false), answer(true));
        if !hard.is_empty() {
            text += &format!("Against forgery: {hard}\n");
        }
        text + &format!("Fastest on this CPU: {any}\n")
    }

    /// Returns an object for each use and purpose.
    pub fn json(&self) -> String {
        let mut lines = String::new();
        for it in &self.uses {
            for (purpose, is_hard) in [("errors", false), ("forgery", true)] {
                if let Some(found) = it.fastest(is_hard) {
                    lines += &json::line(&Fastest {
                        kind: "fastest",
                        r#use: it.name,
                        against: purpose,
                        algorithm: found.name,
                        mib_per_second: found.speed,
                    });
                }
            }
        }
        lines
    }
}

impl Use {
    /// Returns the fastest candidate, or the fastest that cannot be forged. The first one of those that differ by no
    /// more than two runs of a benchmark do, so that the answer stays the same.
    fn fastest(&self, is_hard: bool) -> Option<&Candidate> {
        let mut candidates = self.candidates.iter().filter(|it| it.is_hard || !is_hard);
        let best = candidates.clone().map(|it| it.speed).max_by(f64::total_cmp)?;
        candidates.find(|it| it.speed >= best * (1.0 - NOISE))
    }
}

/// Measures one stream in the cache.
fn files(algorithms: &[Algorithm], time: Duration) -> Vec<Candidate> {
    let contestants: Vec<_> = algorithms
        .iter()
        .map(|algorithm| implementation(*Digester::new(*algorithm).implementation_for(1)))
        .collect();
    let rows = Bench::hot(STREAM, 1, time).run(&contestants, |_| {}).rows;
    let speed = |(algorithm, row): (&Algorithm, blkbench::Row)| {
        Some(candidate(*algorithm, row.speed?.median))
    };
    algorithms.iter().zip(rows).filter_map(speed).collect()
}

/// Hashes an image in memory with the pipeline of blksum.
fn images(algorithms: &[Algorithm], threads: usize) -> Vec<Candidate> {
    let memory = Box::new(blkimage::Memory(content(IMAGE)));
    let Ok(image) = OpenOptions::new().format(Format::Raw).open_storage(memory, "memory") else {
        return Vec::new();
    };
    let tuning = Tuning::default().with_threads(threads);
    let speed = |algorithm: &Algorithm| {
        let parameters =
            Parameters::new(*algorithm, Construction::default(), BlockSize::DEFAULT).ok()?;
        let mut best = f64::MAX;
        for _ in 0..ROUNDS {
            let started = Instant::now();
            blksum::checksum(&image, &parameters, &tuning, &Progress::new()).ok()?;
            best = best.min(started.elapsed().as_secs_f64());
        }
        Some(candidate(*algorithm, IMAGE as f64 / MIB / best))
    };
    algorithms.iter().filter_map(speed).collect()
}

/// Measures the checksums of btrfs as its kernel computes them.
fn file_systems(algorithms: &[Algorithm], time: Duration) -> Vec<Candidate> {
    let all = file_system::measure(&kernel::drivers(), time).into_iter();
    let all = all.filter(|it| algorithms.contains(&it.kind.algorithm()));
    all.filter_map(|it| {
        Some(Candidate { name: it.kind.name(), is_hard: is_hard(it.kind), speed: it.speed()? })
    })
    .collect()
}

fn candidate(algorithm: Algorithm, speed: f64) -> Candidate {
    let is_hard = algorithm.properties().strength == Strength::Cryptographic;
    Candidate { name: algorithm.name(), is_hard, speed }
}

/// Bytes of a stream that fit the second-level cache.
const STREAM: usize = 256 << 10;

/// Bytes of an image. More than any cache near a core, and little enough for the slowest digest.
const IMAGE: usize = 32 << 20;

/// Number of times that an image is hashed. The best one counts.
const ROUNDS: usize = 2;

/// Speeds that differ by less are taken as equal.
const NOISE: f64 = 0.05;

const MIB: f64 = (1 << 20) as f64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_in_the_last_lines() {
        let candidate = |name, is_hard, speed| Candidate { name, is_hard, speed };
        let all = |name, candidates| Use { name, how: String::new(), candidates };
        let answers = Answers {
            uses: vec![
                all("files", vec![candidate("xxh3", false, 9e3), candidate("blake3", true, 2e3)]),
                all("images", vec![candidate("sha1", false, 1.0), candidate("sha256", true, 5.0)]),
                all("btrfs", vec![]),
            ],
        };
        let expected = "\nAgainst forgery: files blake3, images sha256\n\
                        Fastest on this CPU: files xxh3, images sha256\n";
        assert!(answers.text().ends_with(expected), "{}", answers.text());
        assert_eq!(answers.json().lines().count(), 4);
        assert_eq!(Answers { uses: vec![] }.text(), "");
    }

    #[test]
    fn the_first_of_equals_is_the_fastest() {
        let candidate = |name, speed| Candidate { name, is_hard: false, speed };
        let candidates = vec![candidate("a", 90.0), candidate("b", 98.0), candidate("c", 100.0)];
        let it = Use { name: "files", how: String::new(), candidates };
        assert_eq!(it.fastest(false).map(|it| it.name), Some("b"));
        assert_eq!(it.fastest(true), None);
    }

    #[test]
    fn every_use_is_measured() {
        let algorithms = [Algorithm::Sha256, Algorithm::Crc32c];
        let answers = Answers::measure(&algorithms, Duration::from_millis(1));
        for it in &answers.uses[..2] {
            assert_eq!(it.candidates.len(), 2, "{}", it.name);
            assert!(it.fastest(true).is_some_and(|it| it.name == "sha256" && it.speed > 0.0));
        }
    }
}
