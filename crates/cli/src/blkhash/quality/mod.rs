//! `blkhash bench --quality`: measures which errors the non-cryptographic checksums detect.
//!
//! All noise comes from fixed seeds. Figures other than times are the same in every run.

mod avalanche;
mod collisions;
mod detection;
mod forgery;
mod hash;
mod linear;
mod report;

use blkhash::{Algorithm, Strength};
use serde::Serialize;

use self::avalanche::{Avalanche, avalanche};
use self::collisions::{Collisions, collisions};
use self::detection::{Errors, detection, shortest_undetected};
use self::forgery::{Forgery, forge};
use self::hash::{Hash, bit_order};
use self::linear::Syndromes;
use super::args;
use super::bench::Filter;
use super::suggest::instead_of;
use crate::problem::{Failure, Outcome};

/// Measures and prints.
pub fn run(args: &args::Bench) -> Result<Outcome, Failure> {
    let filter = Filter::new(&args.filter).map_err(Failure::usage)?;
    let algorithms: Vec<Algorithm> = measurable().collect();
    let names: Vec<(String, String)> = algorithms
        .iter()
        .flat_map(|algorithm| blkhash::implementations(*algorithm))
        .map(|known| (known.algorithm.name().to_owned(), known.name()))
        .collect();
    if let Some(wanted) = filter.unmatched(&names).first() {
        let algorithms: Vec<_> = algorithms.iter().map(|algorithm| algorithm.name()).collect();
        let reason = format!("--filter '{wanted}' matches nothing that --quality measures");
        return Err(Failure::usage(format!("{reason}: {}", instead_of(wanted, &algorithms))));
    }
    let accepted = |algorithm: &Algorithm| {
        names.iter().any(|(name, implementation)| {
            name == algorithm.name() && filter.accepts(name, implementation)
        })
    };
    let wanted: Vec<Algorithm> = algorithms.into_iter().filter(accepted).collect();
    super::warn(wanted.iter().copied());
    let found: Vec<Quality> = wanted.into_iter().map(measure).collect();
    let text = if args.json { report::json(&found) } else { report::text(&found) };
    super::print(&text)
}

/// Returns the algorithms that are designed for error detection only.
fn measurable() -> impl Iterator<Item = Algorithm> {
    let detects_errors =
        |algorithm: &Algorithm| algorithm.properties().strength == Strength::ErrorDetection;
    Algorithm::ALL.iter().copied().filter(detects_errors)
}

/// The measured properties of an algorithm.
#[derive(Clone, Debug, Serialize)]
struct Quality {
    algorithm: &'static str,
    bits: usize,
    /// Whether the change of the checksum depends only on the errors, not on the block.
    linear: bool,
    avalanche: Avalanche,
    errors: Vec<Errors>,
    /// Length in bits of the shortest undetected burst, if known.
    shortest_undetected_burst: Option<usize>,
    collisions: Collisions,
    forgery: Option<Forgery>,
}

fn measure(algorithm: Algorithm) -> Quality {
    let hash = Hash::new(algorithm);
    let order = bit_order(algorithm);
    let syndromes = Syndromes::of(&hash, order);
    let shortest = syndromes.as_ref().and_then(|known| shortest_undetected(&hash, known));
    Quality {
        algorithm: algorithm.name(),
        bits: hash.bits,
        linear: syndromes.is_some(),
        avalanche: avalanche(&hash),
        errors: detection(&hash, order, syndromes.as_ref()),
        shortest_undetected_burst: shortest.map(|(length, _)| length),
        collisions: collisions(&hash),
        forgery: forge(&hash, order, syndromes.as_ref()),
    }
}

#[cfg(test)]
mod tests;
