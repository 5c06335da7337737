//! The choice of an implementation for each number of blocks, and the reasons for it.

use blkhash::{Algorithm, Digester, Feature, Implementation, Status, implementations};

use crate::implementation::obstacle;

/// The use of an implementation.
#[derive(Debug)]
pub struct Choice {
    /// The implementation.
    pub implementation: Implementation,
    /// Numbers of blocks for which it is chosen, as ranges. The last range may be open.
    pub batches: Vec<(usize, Option<usize>)>,
    /// Reason why it is not chosen.
    pub reason: Option<String>,
}

/// Returns the implementations of `algorithm` and their use.
pub fn choices(algorithm: Algorithm) -> Vec<Choice> {
    let all = implementations(algorithm);
    let most = all.iter().map(|known| known.lanes).max().unwrap_or(1);
    let digester = Digester::new(algorithm);
    let best: Vec<&str> =
        (1..=most).map(|count| digester.implementation_for(count).variant).collect();
    let asked_for = std::env::var("BLKHASH_IMPLEMENTATION").unwrap_or_default();
    let only = digester.implementation_for(1).name();
    let forced = asked_for.split(',').any(|name| name.trim() == only);
    all.iter()
        .map(|known| {
            let batches = ranges(&best, known.variant);
            let others = if forced { ANOTHER_DEMANDED } else { OTHERS_FIRST };
            let unused = || obstacle(known).unwrap_or_else(|| others.to_owned());
            let reason = batches.is_empty().then(unused);
            Choice { implementation: *known, batches, reason }
        })
        .collect()
}

impl Choice {
    /// Describes when the implementation is used, or why it is not.
    pub fn describe(&self) -> String {
        let feature = self.implementation.feature.map_or("what it needs", Feature::name);
        match (&self.reason, self.implementation.status) {
            (None, _) => format!("used{}", self.ranges()),
            (Some(_), Status::Missing) => format!("not on this CPU: needs {feature}"),
            (Some(_), Status::Disabled) => {
                format!("not used: BLKHASH_CPU_DISABLE switches {feature} off")
            }
            (Some(reason), Status::Failed) => format!("not used: {reason}"),
            (Some(reason), Status::Ready) => format!("available: {reason}"),
        }
    }

    /// Describes for how many blocks at a time it is used. Returns an empty text for any number.
    fn ranges(&self) -> String {
        let ranges = self.batches.iter().map(|range| match range {
            (1, None) => String::new(),
            (first, None) => format!("{first} or more"),
            (first, Some(last)) if first == last => first.to_string(),
            (first, Some(last)) => format!("{first} to {last}"),
        });
        let ranges = ranges.collect::<Vec<_>>().join(", ");
        match ranges.as_str() {
            "" => ranges,
            "1" => " for 1 block at a time".to_owned(),
            _ => format!(" for {ranges} blocks at a time"),
        }
    }

    /// Returns the assumed cycles per byte with all lanes filled.
    pub fn assumed_cycles(&self) -> f64 {
        f64::from(self.implementation.cost) / (self.implementation.lanes as f64 * KIB)
    }

    /// Returns its rank among `all` of its algorithm with all lanes filled, from 1.
    pub fn rank(&self, all: &[Self]) -> usize {
        let cost = Self::assumed_cycles;
        1 + all.iter().filter(|other| cost(other) < cost(self)).count()
    }
}

/// Returns the names of the CPUs on which the assumed cycles of `choices` were measured. `None` if
/// there is only one, or if they were not measured for this architecture and only give an order.
pub fn assumed_of(choices: &[Choice]) -> Option<String> {
    if choices.len() < 2 || !cfg!(target_arch = "x86_64") {
        return None;
    }
    let mut names: Vec<&str> = Vec::new();
    for choice in choices {
        if !names.contains(&choice.implementation.measured_on) {
            names.push(choice.implementation.measured_on);
        }
    }
    Some(names.join(" and "))
}

/// Returns the batch sizes for which `variant` is the best. `best` begins with the best for a batch of
/// 1. The range that ends with the largest batch is open, because larger batches are split.
fn ranges(best: &[&str], variant: &str) -> Vec<(usize, Option<usize>)> {
    let mut ranges: Vec<(usize, Option<usize>)> = Vec::new();
    for count in (1..=best.len()).filter(|count| best[count - 1] == variant) {
        match ranges.last_mut() {
            Some((_, last)) if *last == Some(count - 1) => *last = Some(count),
            _ => ranges.push((count, Some(count))),
        }
    }
    if let Some((_, last)) = ranges.last_mut().filter(|(_, last)| *last == Some(best.len())) {
        *last = None;
    }
    ranges
}

const OTHERS_FIRST: &str = "others are preferred";

const ANOTHER_DEMANDED: &str = "BLKHASH_IMPLEMENTATION names another";

const KIB: f64 = 1024.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_batches() {
        let best = ["a", "b", "b", "a", "c", "c"];
        assert_eq!(ranges(&best, "a"), [(1, Some(1)), (4, Some(4))]);
        assert_eq!(ranges(&best, "b"), [(2, Some(3))]);
        assert_eq!(ranges(&best, "c"), [(5, None)]);
        assert_eq!(ranges(&["a"], "a"), [(1, None)]);
        assert_eq!(ranges(&best, "d"), []);
    }

    #[test]
    fn every_state_in_words() {
        let of = |status, batches: &[(usize, Option<usize>)], reason: Option<&str>| {
            let mut implementation = implementations(Algorithm::Sha256)[0];
            (implementation.status, implementation.feature) = (status, Some(Feature::Avx512));
            let reason = reason.map(str::to_owned);
            Choice { implementation, batches: batches.to_vec(), reason }.describe()
        };
        assert_eq!(of(Status::Ready, &[(1, None)], None), "used");
        assert_eq!(of(Status::Ready, &[(1, Some(1))], None), "used for 1 block at a time");
        assert_eq!(
            of(Status::Ready, &[(1, Some(1)), (4, Some(6)), (9, None)], None),
            "used for 1, 4 to 6, 9 or more blocks at a time"
        );
        assert_eq!(of(Status::Ready, &[], Some(OTHERS_FIRST)), "available: others are preferred");
        assert_eq!(of(Status::Missing, &[], Some("x")), "not on this CPU: needs avx512");
        assert_eq!(
            of(Status::Disabled, &[], Some("x")),
            "not used: BLKHASH_CPU_DISABLE switches avx512 off"
        );
        assert_eq!(of(Status::Failed, &[], Some("x")), "not used: x");
    }

    #[test]
    fn something_is_chosen_for_every_batch() {
        for &algorithm in Algorithm::ALL {
            let choices = choices(algorithm);
            assert_eq!(choices.iter().filter(|choice| choice.covers(1)).count(), 1);
            assert_eq!(choices.iter().filter(|choice| choice.covers(1000)).count(), 1);
        }
    }

    impl Choice {
        fn covers(&self, count: usize) -> bool {
            let covers = |range: &(usize, Option<usize>)| {
                range.0 <= count && range.1.is_none_or(|last| count <= last)
            };
            self.batches.iter().any(covers)
        }
    }
}
