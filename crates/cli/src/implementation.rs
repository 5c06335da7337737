//! Finds implementations by name, and warns about those that cannot be used.

use std::env;

use blkhash::{Algorithm, Digester, Error, Feature, Implementation, Status, implementations};

/// Returns the implementation `name` of `algorithm`.
///
/// # Errors
///
/// Fails if the algorithm has no implementation of that name, with a list of those it has, or if this
/// machine cannot run it.
pub fn find(algorithm: Algorithm, name: &str) -> Result<Implementation, Error> {
    Digester::with_implementation(algorithm, name)?;
    let all = implementations(algorithm).iter();
    Ok(*all.clone().find(|known| known.name() == name).expect("it was found before"))
}

/// Returns warnings about implementations of `algorithms` that failed their self-test, and about names
/// without effect in the environment variables.
pub fn warnings(algorithms: impl IntoIterator<Item = Algorithm>) -> Vec<String> {
    let variable = |name| env::var(name).unwrap_or_default();
    let mut warnings = unusable(&variable(IMPLEMENTATION));
    warnings.extend(unknown_features(&variable(DISABLE)));
    let known = algorithms.into_iter().flat_map(implementations);
    let failed = known.filter(|known| known.status == Status::Failed);
    warnings
        .extend(failed.map(|known| {
            format!("warning: {} failed its self-test and is not used", known.name())
        }));
    warnings
}

/// Returns why an implementation cannot be used, or `None` if it can.
pub fn obstacle(implementation: &Implementation) -> Option<String> {
    let feature = implementation.feature.map_or("what it needs", Feature::name);
    match implementation.status {
        Status::Ready => None,
        Status::Missing => Some(format!("CPU lacks {feature}")),
        Status::Disabled => Some(format!("{feature} is switched off")),
        Status::Failed => Some("failed its self-test".to_owned()),
    }
}

/// Returns a warning for each name in `list` that has no effect.
fn unusable(list: &str) -> Vec<String> {
    names(list)
        .filter(|name| *name != RANDOM)
        .filter_map(|name| {
            let reason = match known(name) {
                None => "there is none of that name (blkhash algorithms lists them)".to_owned(),
                Some(known) => obstacle(&known)?,
            };
            Some(format!("warning: {IMPLEMENTATION}: {name}: {reason}"))
        })
        .collect()
}

fn unknown_features(list: &str) -> Vec<String> {
    let is_known = |name: &&str| Feature::ALL.iter().any(|feature| feature.name() == *name);
    let unknown = names(list).filter(|name| !is_known(name));
    let all: Vec<_> = Feature::ALL.iter().map(|feature| feature.name()).collect();
    let all = all.join(", ");
    unknown.map(|name| format!("warning: {DISABLE}: {name}: there is only {all}")).collect()
}

fn names(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|name| !name.is_empty())
}

/// Finds the implementation of any algorithm by name. Looks only at algorithms that the name begins
/// with, because each look runs a self-test.
fn known(name: &str) -> Option<Implementation> {
    let begins = |algorithm: &&Algorithm| {
        name.strip_prefix(algorithm.name()).is_some_and(|rest| rest.starts_with('-'))
    };
    let candidates = Algorithm::ALL.iter().filter(begins).flat_map(|known| implementations(*known));
    candidates.copied().find(|known| known.name() == name)
}

const IMPLEMENTATION: &str = "BLKHASH_IMPLEMENTATION";
/// The name that stands for a random implementation for each batch.
const RANDOM: &str = "random";
const DISABLE: &str = "BLKHASH_CPU_DISABLE";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_effect() {
        assert_eq!(unusable(" sha256-soft , blake3-blake3,random,"), [""; 0]);
        let unknown = unusable("sha256-none,soft");
        assert_eq!(unknown.len(), 2);
        assert!(unknown[0].contains("sha256-none: there is none"), "{unknown:?}");
        assert_eq!(unknown_features("avx2,sse").len(), 1);
    }

    #[test]
    fn implementations_are_found_by_their_own_algorithm() {
        assert_eq!(find(Algorithm::Sha256, "sha256-soft").unwrap().lanes, 1);
        let message = find(Algorithm::Sha256, "sha224-soft").unwrap_err().to_string();
        assert!(message.contains("sha256-soft"), "{message}");
    }
}
