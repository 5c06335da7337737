//! `blkhash bench image`: what one image's storage gives, what digests cost on it, and which of the
//! two a checksum waits for.
//!
//! The beginning of the image is hashed with every digest in turn, several times over, from the
//! page cache, and read past the cache where there is storage below it.

mod beginning;
mod report;

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use blkbench::Spread;
use blkhash::{Algorithm, BlockSize, Construction, Parameters};
use blkimage::{Cache, Image, Location, OpenOption, OpenOptions, Source};
use blksum::{Progress, Tuning};

use self::beginning::Beginning;
use self::report::{Bound, Report, Row};
use super::super::args::{BenchImage, Threads};
use super::super::print;
use super::noise::longer;
use crate::problem::{Failure, Outcome, Problem};
use crate::progress::Steps;

/// Measures and prints.
pub fn run(args: &BenchImage) -> Result<Outcome, Failure> {
    for digest in args.digests() {
        parameters(digest).map_err(|error| Failure::usage(error.to_string()))?;
    }
    if args.opening.is_given(OpenOption::Cache) {
        return Err(Failure::usage("--cache: both the page cache and the storage are measured"));
    }
    super::super::warn(args.digests());
    let options = args.opening.confine([&args.image.clone().into_os_string()])?;
    // The checksums of a mounted device are of no use.
    let force_share = options.force_share || crate::image::open::is_device(&args.image);
    match measure(args, &options.force_share(force_share)) {
        Ok(report) if args.json => print(&report::json(&report)),
        Ok(report) => print(&report::text(&report, &longer(args.time))),
        Err(error) => {
            let name = args.image.as_os_str();
            Problem::of_pass(&error, name).report(name);
            Ok(Outcome::Errors)
        }
    }
}

fn measure(args: &BenchImage, options: &OpenOptions) -> Result<Report, blksum::Error> {
    let location = Location::new(args.image.as_os_str());
    let open = |cache| options.clone().cache(cache).open_location(location);
    let image = open(Cache::Yes)?;
    let threads = threads(args);
    let most = threads.iter().copied().max().unwrap_or(1);
    let beginning = beginning(&image, most, args.time)?;
    let cases: Vec<(Algorithm, usize)> = args
        .digests()
        .into_iter()
        .flat_map(|digest| threads.iter().map(move |count| (digest, *count)))
        .collect();

    let steps = Steps::new("measuring", (cases.len() * ROUNDS) as u64);
    let mut rates = vec![Vec::new(); cases.len()];
    for _ in 0..ROUNDS {
        for (&(digest, threads), rates) in cases.iter().zip(&mut rates) {
            rates.push(rate(&beginning, digest, threads)?);
            steps.advance();
        }
    }
    let spreads: Vec<Spread> = rates.into_iter().map(Spread::of).collect();
    let reading = |threads| {
        let found =
            cases.iter().zip(&spreads).find(|(case, _)| **case == (Algorithm::Null, threads));
        found.map_or(0.0, |(_, spread)| spread.median)
    };
    let storage = if is_in_memory(&args.image) {
        None
    } else {
        let direct = open(Cache::No)?;
        let beginning = self::beginning(&direct, most, args.time)?;
        let mut rates = Vec::new();
        for _ in 0..ROUNDS {
            rates.push(rate(&beginning, Algorithm::Null, most)?);
        }
        Some(Spread::of(rates)).filter(|storage| storage.median < NOT_THE_CACHE * reading(most))
    };
    drop(steps);

    let rows = cases.iter().zip(&spreads).map(|(&(digest, threads), &rate)| Row {
        digest: digest.name(),
        threads,
        rate,
        bound: Bound::of(rate.median, reading(threads), storage.map(|storage| storage.median)),
    });
    Ok(Report {
        name: args.image.clone().into_os_string(),
        format: image.format(),
        virtual_size: image.virtual_size(),
        beginning: beginning.source.size(),
        data: beginning.data,
        storage,
        rows: rows.collect(),
    })
}

/// The numbers of threads to measure, without repetition.
fn threads(args: &BenchImage) -> Vec<usize> {
    let mut threads: Vec<usize> = args.threads.iter().map(|Threads(count)| *count).collect();
    if threads.is_empty() {
        threads = vec![1, Tuning::default().threads];
    }
    threads.sort_unstable();
    threads.dedup();
    threads
}

/// The beginning of the image, as much as is read in `time`, and read once already.
fn beginning<'a>(
    image: &'a Image,
    threads: usize,
    time: Duration,
) -> Result<Beginning<'a>, blksum::Error> {
    let probe = Beginning::new(image, PROBE_SIZE)?;
    rate(&probe, Algorithm::Null, threads)?;
    let wanted = (rate(&probe, Algorithm::Null, threads)? * time.as_secs_f64()) as u64;
    let wanted = wanted.clamp(PROBE_SIZE, MAX_WINDOW).next_multiple_of(PROBE_SIZE);
    let beginning = Beginning::new(image, wanted)?;
    rate(&beginning, Algorithm::Null, threads)?;
    Ok(beginning)
}

/// Bytes of data in a second.
fn rate(
    beginning: &Beginning<'_>,
    digest: Algorithm,
    threads: usize,
) -> Result<f64, blksum::Error> {
    let parameters = parameters(digest)?;
    let tuning = Tuning::default().with_threads(threads);
    let started = Instant::now();
    blksum::checksum(&beginning.source, &parameters, &tuning, &Progress::new())?;
    Ok(beginning.data as f64 / started.elapsed().as_secs_f64())
}

fn parameters(digest: Algorithm) -> Result<Parameters, blkhash::Error> {
    Parameters::new(digest, Construction::default(), BlockSize::DEFAULT)
}

/// Whether the file is in a file system that has nothing but the page cache.
fn is_in_memory(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| blksys::file_system(&file).is_memory)
}

/// Each case is measured that many times, in turns with the others.
const ROUNDS: usize = 5;

/// The data that tells how fast the image can be read.
const PROBE_SIZE: u64 = 64 << 20;

/// The most data that is read each time: it must fit the page cache.
const MAX_WINDOW: u64 = 4 << 30;

/// What is read past the page cache at more than this share of the cache's rate came from it.
const NOT_THE_CACHE: f64 = 0.8;
