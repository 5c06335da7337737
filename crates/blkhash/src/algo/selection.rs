//! The implementations of an algorithm: which there are, which this CPU can run, which are used.

use std::sync::OnceLock;

use super::State;
use super::kernels::{Entry, Kernel};
use super::{blake2b, self_test, sha256, xxh64};
use crate::cpu::Feature;
use crate::{Algorithm, Error};

/// One way to compute an algorithm.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Implementation {
    /// What it computes.
    pub algorithm: Algorithm,
    /// Its name behind that of the algorithm.
    pub variant: &'static str,
    /// Inputs that it hashes side by side.
    pub lanes: usize,
    /// What the CPU must have.
    pub feature: Option<Feature>,
    /// Whether it may be used.
    pub status: Status,
}

/// Whether an implementation may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It passed its self-test.
    Ready,
    /// The CPU lacks what it needs.
    Missing,
    /// What it needs was switched off.
    Disabled,
    /// It computed a wrong digest in its self-test, and is left out.
    Failed,
}

impl Implementation {
    /// Its full name: that of the algorithm and of the variant.
    pub fn name(&self) -> String {
        format!("{}-{}", self.algorithm, self.variant)
    }
}

/// Every implementation of `algorithm`, the narrowest first.
pub fn implementations(algorithm: Algorithm) -> &'static [Implementation] {
    &selection(algorithm).implementations
}

/// A hash that has taken nothing yet, with the implementations that are to be used.
pub(super) fn start(algorithm: Algorithm) -> State {
    selection(algorithm).start.clone()
}

/// A hash that has taken nothing yet, with one implementation.
pub(super) fn forced(algorithm: Algorithm, name: &str) -> Result<State, Error> {
    let found = implementations(algorithm).iter().find(|known| known.name() == name);
    let unusable = |reason: &str| Error::UnusableImplementation(name.to_owned(), reason.to_owned());
    let known = found.ok_or_else(|| {
        let names: Vec<_> = implementations(algorithm).iter().map(Implementation::name).collect();
        unusable(&format!("{algorithm} has {}", names.join(", ")))
    })?;
    match (known.status, known.feature) {
        (Status::Ready, _) => Ok(only(algorithm, known.variant)),
        (Status::Failed, _) => Err(unusable("it failed its self-test")),
        (Status::Missing | Status::Disabled, feature) => {
            let feature = feature.map_or("a feature", Feature::name);
            Err(unusable(&format!("this CPU has no {feature}, or it was switched off")))
        }
    }
}

/// What is used for one algorithm.
struct Selection {
    start: State,
    implementations: Vec<Implementation>,
}

fn selection(algorithm: Algorithm) -> &'static Selection {
    static SELECTIONS: [OnceLock<Selection>; Algorithm::ALL.len()] =
        [const { OnceLock::new() }; Algorithm::ALL.len()];
    SELECTIONS[algorithm as usize].get_or_init(|| select(algorithm))
}

fn select(algorithm: Algorithm) -> Selection {
    let implementations: Vec<_> = entries(algorithm)
        .iter()
        .map(|entry| Implementation {
            algorithm,
            variant: entry.name,
            lanes: entry.lanes,
            feature: entry.feature,
            status: status(algorithm, entry),
        })
        .collect();
    let wanted = wanted(&implementations);
    let accept = |entry: &Entry| {
        implementations.iter().any(|known| {
            known.variant == entry.name
                && known.status == Status::Ready
                && wanted.is_none_or(|wanted| wanted == entry.name)
        })
    };
    let start = State::with_kernels(algorithm, &accept);
    Selection { start, implementations }
}

/// The implementation that `BLKHASH_IMPLEMENTATION`, a list of names, has for this algorithm, if it
/// can be used.
fn wanted(implementations: &[Implementation]) -> Option<&'static str> {
    let names = std::env::var("BLKHASH_IMPLEMENTATION").ok()?;
    let known = implementations.iter().find(|known| {
        known.status == Status::Ready && names.split(',').any(|name| name.trim() == known.name())
    })?;
    Some(known.variant)
}

fn status(algorithm: Algorithm, entry: &Entry) -> Status {
    match entry.feature {
        Some(feature) if !feature.is_present() => Status::Missing,
        Some(feature) if feature.is_disabled() => Status::Disabled,
        _ if self_test::passes(&only(algorithm, entry.name)) => Status::Ready,
        _ => Status::Failed,
    }
}

/// A hash that has taken nothing yet, with one implementation, whether it may be used or not.
pub(super) fn only(algorithm: Algorithm, variant: &str) -> State {
    State::with_kernels(algorithm, &|entry| entry.name == variant)
}

/// What there is for an algorithm: our own kernels, or the crate that computes it.
pub(super) fn entries(algorithm: Algorithm) -> &'static [Entry] {
    const fn library(name: &'static str) -> Entry {
        Entry { name, lanes: 1, feature: None, cost: 1 }
    }
    match algorithm {
        Algorithm::Xxh64 => xxh64::Kernel::ENTRIES,
        Algorithm::Sha224 | Algorithm::Sha256 => sha256::Kernel::ENTRIES,
        Algorithm::Blake2b256 | Algorithm::Blake2b512 => blake2b::Kernel::ENTRIES,
        Algorithm::Null => const { &[library("nop")] },
        Algorithm::Crc32 | Algorithm::Crc32c | Algorithm::Crc64 | Algorithm::Crc64Nvme => {
            const { &[library("crc_fast")] }
        }
        Algorithm::Xxh3 | Algorithm::Xxh128 => const { &[library("xxhash_rust")] },
        Algorithm::SipHash => const { &[library("siphasher")] },
        Algorithm::Md5 => const { &[library("md5")] },
        Algorithm::Sha1 => const { &[library("sha1")] },
        Algorithm::Sha384 | Algorithm::Sha512 | Algorithm::Sha512_224 | Algorithm::Sha512_256 => {
            const { &[library("sha2")] }
        }
        Algorithm::Sha3_224 | Algorithm::Sha3_256 | Algorithm::Sha3_384 | Algorithm::Sha3_512 => {
            const { &[library("sha3")] }
        }
        Algorithm::Blake2s256 => const { &[library("blake2s_simd")] },
        Algorithm::Blake3 => const { &[library("blake3")] },
    }
}
