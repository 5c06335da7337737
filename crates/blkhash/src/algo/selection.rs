//! The implementations of an algorithm: which exist, which this CPU can run, and which are used.

use std::sync::OnceLock;

use super::guess::{Guess, guess};
use super::kernels::{Entry, Policy};
use super::self_test;
use super::state::{State, entries, family};
use crate::cpu::Feature;
use crate::{Algorithm, Error};

/// One way to compute an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Implementation {
    /// The algorithm that it computes.
    pub algorithm: Algorithm,
    /// Its name without the algorithm's.
    pub variant: &'static str,
    /// Number of inputs that it hashes side by side.
    pub lanes: usize,
    /// The CPU feature that it needs.
    pub feature: Option<Feature>,
    /// The assumed cost: core cycles for a KiB of every lane, however many lanes are filled. Only
    /// the ratios to other implementations of the algorithm matter.
    pub cost: u32,
    /// The CPU on which the cost was measured.
    pub measured_on: &'static str,
    /// Whether it may be used.
    pub status: Status,
}

/// Whether an implementation may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Passed its self-test.
    Ready,
    /// Needs a feature that the CPU lacks.
    Missing,
    /// Needs a feature that was disabled.
    Disabled,
    /// Computed a wrong digest in its self-test, and is not used.
    Failed,
}

impl Implementation {
    /// Returns the full name, made of the algorithm and the variant.
    pub fn name(&self) -> String {
        format!("{}-{}", self.algorithm, self.variant)
    }
}

/// Returns whether `BLKHASH_IMPLEMENTATION` asks for a random implementation for each batch.
pub(super) fn is_random(algorithm: Algorithm) -> bool {
    let selection = selection(algorithm);
    selection.policy == Policy::Random && selection.implementations.len() > 1
}

/// Returns all implementations of `algorithm`, the narrowest first.
pub fn implementations(algorithm: Algorithm) -> &'static [Implementation] {
    &selection(algorithm).implementations
}

/// Returns the initial state of a hash with the selected implementations.
pub(super) fn start(algorithm: Algorithm) -> State {
    selection(algorithm).start.clone()
}

/// Returns the initial state of a hash with the named implementation.
pub(super) fn forced(algorithm: Algorithm, name: &str) -> Result<State, Error> {
    let found = implementations(algorithm).iter().find(|known| known.name() == name);
    let unusable = |reason: &str| Error::UnusableImplementation(name.to_owned(), reason.to_owned());
    let known = found.ok_or_else(|| {
        let names: Vec<_> = implementations(algorithm).iter().map(Implementation::name).collect();
        unusable(&format!("{algorithm} has {}", names.join(", ")))
    })?;
    match (known.status, known.feature) {
        (Status::Ready, _) => Ok(State::only(algorithm, known.variant)),
        (Status::Failed, _) => Err(unusable("it failed its self-test")),
        (Status::Missing | Status::Disabled, feature) => {
            let feature = feature.map_or("a feature", Feature::name);
            Err(unusable(&format!("this CPU has no {feature}, or it was switched off")))
        }
    }
}

/// The selected implementations of an algorithm.
struct Selection {
    start: State,
    implementations: Vec<Implementation>,
    policy: Policy,
}

fn selection(algorithm: Algorithm) -> &'static Selection {
    static SELECTIONS: [OnceLock<Selection>; Algorithm::ALL.len()] =
        [const { OnceLock::new() }; Algorithm::ALL.len()];
    SELECTIONS[algorithm as usize].get_or_init(|| select(algorithm, status))
}

fn select(algorithm: Algorithm, status: impl Fn(Algorithm, &Entry) -> Status) -> Selection {
    let implementations: Vec<_> = entries(algorithm)
        .iter()
        .map(|entry| {
            let Guess { cost, measured_on } = guess(family(algorithm), entry.name, entry.cost);
            Implementation {
                algorithm,
                variant: entry.name,
                lanes: entry.lanes,
                feature: entry.feature,
                cost,
                measured_on,
                status: status(algorithm, entry),
            }
        })
        .collect();
    let demanded = std::env::var("BLKHASH_IMPLEMENTATION").unwrap_or_default();
    let wanted = wanted(&implementations, &demanded);
    let policy = match wanted {
        Some(_) => Policy::Guess,
        None if names(&demanded).any(|name| name == RANDOM) => Policy::Random,
        None => Policy::Learn,
    };
    let accept = |entry: &Entry| {
        implementations.iter().any(|known| {
            known.variant == entry.name
                && known.status == Status::Ready
                && wanted.is_none_or(|wanted| wanted == entry.name)
        })
    };
    let start = State::with_kernels(algorithm, &accept, policy);
    Selection { start, implementations, policy }
}

/// Returns the implementation that the list `demanded` has for this algorithm, if it is usable.
fn wanted(implementations: &[Implementation], demanded: &str) -> Option<&'static str> {
    let known = implementations.iter().find(|known| {
        known.status == Status::Ready && names(demanded).any(|name| name == known.name())
    })?;
    Some(known.variant)
}

fn names(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim)
}

/// The name in `BLKHASH_IMPLEMENTATION` that chooses implementations at random for each batch.
const RANDOM: &str = "random";

fn status(algorithm: Algorithm, entry: &Entry) -> Status {
    match entry.feature {
        Some(feature) if !feature.is_present() => Status::Missing,
        Some(feature) if feature.is_disabled() => Status::Disabled,
        _ if self_test::passes(&State::only(algorithm, entry.name)) => Status::Ready,
        _ => Status::Failed,
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::Digester;

    #[test]
    fn implementations_that_fail_their_self_test_are_not_used() {
        let algorithm = Algorithm::Blake2b256;
        for failing in &entries(algorithm)[1..] {
            let selection = select(algorithm, |algorithm, entry| {
                if entry == failing { Status::Failed } else { status(algorithm, entry) }
            });
            for count in 1..=16 {
                let kernel = selection.start.kernel_for(count).unwrap();
                assert_ne!(kernel, failing, "{count} inputs");
            }
            let known = selection.implementations.iter().find(|it| it.variant == failing.name);
            assert_eq!(known.unwrap().status, Status::Failed);
        }
    }

    #[test]
    fn a_name_that_is_unknown_or_of_another_algorithm_is_refused() {
        for name in ["sha256-soft", "blake2b512-x8", "soft", ""] {
            let error = Digester::with_implementation(Algorithm::Blake2b512, name).unwrap_err();
            assert!(error.to_string().contains("blake2b512-soft"), "{error}");
        }
    }

    #[test]
    fn disabling_all_features_leaves_portable_kernels() {
        let child = report(&[("BLKHASH_CPU_DISABLE", "sha,avx2, avx512,sha2,sha512")]);
        for algorithm in with_kernels() {
            for count in COUNTS {
                let name = chosen(&child, algorithm, count);
                let is_portable = |entry: &Entry| {
                    entry.feature.is_none() && name == format!("{algorithm}-{}", entry.name)
                };
                assert!(entries(algorithm).iter().any(is_portable), "{name}");
            }
            for entry in entries(algorithm) {
                let Some(feature) = entry.feature else { continue };
                let expected = if feature.is_present() { "disabled" } else { "missing" };
                let line = format!("{algorithm}-{} {expected}", entry.name);
                assert!(child.lines().any(|it| it == line), "no '{line}' in {child}");
            }
        }
    }

    #[test]
    fn disabling_one_feature_leaves_the_others() {
        let child = report(&[("BLKHASH_CPU_DISABLE", "avx512")]);
        for algorithm in with_kernels() {
            for count in COUNTS {
                assert!(!chosen(&child, algorithm, count).contains("avx512"));
            }
            for entry in entries(algorithm) {
                let is_left = entry.feature.is_none_or(|feature| {
                    feature.is_present()
                        && feature != Feature::Avx512
                        && !feature.parts().contains(&Feature::Avx512)
                });
                let line = format!("{algorithm}-{} ready", entry.name);
                assert_eq!(child.lines().any(|it| it == line), is_left, "{line}");
            }
        }
    }

    #[test]
    fn an_implementation_can_be_demanded_for_one_algorithm() {
        let child = report(&[("BLKHASH_IMPLEMENTATION", "xxh64-soft, sha256-soft,sha256-none")]);
        let free = report(&[]);
        // Which algorithms have several implementations depends on the architecture. SHA-256 always has.
        for (algorithm, count) in with_kernels().flat_map(|each| COUNTS.map(|count| (each, count)))
        {
            let found = chosen(&child, algorithm, count);
            match algorithm {
                Algorithm::Xxh64 => assert_eq!(found, "xxh64-soft"),
                Algorithm::Sha256 => assert_eq!(found, "sha256-soft"),
                _ => assert_eq!(found, chosen(&free, algorithm, count)),
            }
        }
        assert!(with_kernels().any(|algorithm| algorithm == Algorithm::Sha256));
    }

    /// Runs this program as a child with these variables, and returns what it chose. `BLKHASH_TEST_RUNNER` may
    /// name an emulator of this CPU and its options.
    fn report(variables: &[(&str, &str)]) -> String {
        let program = std::env::current_exe().unwrap().into_os_string().into_string().unwrap();
        let runner = std::env::var("BLKHASH_TEST_RUNNER").unwrap_or_default();
        let mut words = runner.split_whitespace().chain([&*program]);
        let output = Command::new(words.next().unwrap())
            .args(words)
            .args([
                "--exact",
                "algo::selection::tests::tell_what_is_chosen",
                "--ignored",
                "--nocapture",
            ])
            .env_remove("BLKHASH_CPU_DISABLE")
            .env_remove("BLKHASH_IMPLEMENTATION")
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    #[ignore = "other tests run it as a child"]
    fn tell_what_is_chosen() {
        println!();
        for algorithm in with_kernels() {
            let digester = Digester::new(algorithm);
            for count in COUNTS {
                println!("{algorithm} {count} {}", digester.implementation_for(count).name());
            }
            for known in implementations(algorithm) {
                println!("{} {}", known.name(), format!("{:?}", known.status).to_lowercase());
            }
        }
    }

    fn chosen(report: &str, algorithm: Algorithm, count: usize) -> String {
        let start = format!("{algorithm} {count} ");
        let line = report.lines().find_map(|line| line.strip_prefix(&start));
        line.unwrap_or_else(|| panic!("no '{start}' in {report}")).to_owned()
    }

    /// Returns the algorithms with kernels of our own.
    fn with_kernels() -> impl Iterator<Item = Algorithm> {
        Algorithm::ALL.iter().copied().filter(|algorithm| entries(*algorithm).len() > 1)
    }

    const COUNTS: [usize; 6] = [1, 2, 4, 8, 15, 16];
}
