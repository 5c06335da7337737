//! Which implementation is used for how many blocks, and why the others are not.

use blkhash::{Algorithm, Digester, Implementation, implementations};

use crate::implementation::obstacle;

/// What there is to say of an implementation's use.
#[derive(Debug)]
pub struct Choice {
    /// The implementation.
    pub implementation: Implementation,
    /// The numbers of blocks it is chosen for, as ranges of consecutive ones; the last one may have
    /// no end.
    pub batches: Vec<(usize, Option<usize>)>,
    /// Why it is not chosen.
    pub reason: Option<String>,
}

/// The implementations of `algorithm`, with what they are chosen for.
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
            let slower = if forced { "not asked for" } else { "slower" };
            let unused = || obstacle(known).unwrap_or_else(|| slower.to_owned());
            let reason = batches.is_empty().then(unused);
            Choice { implementation: *known, batches, reason }
        })
        .collect()
}

impl Choice {
    /// When it is chosen, or why it is not.
    pub fn describe(&self) -> String {
        if let Some(reason) = &self.reason {
            return format!("no: {reason}");
        }
        let ranges = self.batches.iter().map(|range| match range {
            (1, None) => "always".to_owned(),
            (first, None) => format!("{first} or more"),
            (first, Some(last)) if first == last => first.to_string(),
            (first, Some(last)) => format!("{first}-{last}"),
        });
        let ranges = ranges.collect::<Vec<_>>().join(", ");
        if ranges == "always" { ranges } else { format!("{ranges} at a time") }
    }
}

/// Where `variant` stands in `best`, which begins with a batch of 1. The last range is open: larger
/// batches are cut into such.
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
