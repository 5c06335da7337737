//! The state of a search: what is left to try, and what was found.

use std::fmt;
use std::vec;

use blkhash::{BlockSize, Construction, Digest, Parameters};
use blkimage::Format;

use super::limits::{Amount, Untried};
use super::search::{Pass, Search, Subject};
use super::shape::Doubt;
use super::value::Value;
use crate::{Content, ImageTag, Tag};

/// What some values can be of one image, in the order of [`Search::passes`].
///
/// [`next`](Self::next) returns the next pass that is needed, and [`take`](Self::take) takes its result.
pub struct Candidates<'a> {
    search: &'a Search,
    values: &'a [Value],
    passes: vec::IntoIter<Pass>,
    found: Found,
}

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Found {
    /// The first match.
    pub matched: Option<Match>,
    /// A match that proves nothing, and the reason.
    pub doubted: Option<(Reading, Doubt)>,
    /// Everything that was compared.
    pub tried: Vec<Reading>,
    /// Why something was not.
    pub untried: Vec<Untried>,
}

/// A value that matched, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Match {
    /// Index of the value.
    pub value: usize,
    /// The checksum that it is.
    pub reading: Reading,
}

/// A possible meaning of a value: a checksum with these parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// The bytes that are hashed.
    pub subject: Subject,
    /// How they are hashed.
    pub parameters: Parameters,
}

impl<'a> Candidates<'a> {
    /// Lists what the values can be.
    pub fn new(search: &'a Search, values: &'a [Value]) -> Self {
        let passes = search.passes(values).into_iter();
        Self { search, values, passes, found: Found::default() }
    }

    /// Returns whether a value is of the parts of a file.
    pub fn has_parts(&self) -> bool {
        self.values.iter().any(|value| value.parts.is_some())
    }

    /// Adds what values of parts can be of a file with this many bytes.
    pub fn add_parts(&mut self, length: u64) {
        let mut passes: Vec<_> = self.passes.by_ref().collect();
        for pass in self.values.iter().filter_map(|value| self.search.parts(value, length)) {
            let size = pass.parameters[0].block_size();
            if self.search.block_size.is_none() && length > u64::from(size) {
                self.leave_out(Untried::PartSizes(size));
            }
            passes.push(pass);
        }
        self.passes = passes.into_iter();
    }

    /// Puts all that can be tried of a stream, which is read once, in one pass: what is likely of the content.
    pub fn in_one_pass(&mut self) {
        let content = self.passes.by_ref().filter(|pass| pass.subject == Subject::Content);
        let parameters: Vec<_> = content.take(2).flat_map(|pass| pass.parameters).collect();
        let pass = Pass { subject: Subject::Content, parameters };
        self.passes = vec![pass].into_iter();
        if self.has_parts() {
            self.leave_out(Untried::Pipe);
        }
    }

    /// Records why something is not tried.
    pub fn leave_out(&mut self, reason: Untried) {
        if !self.found.untried.contains(&reason) {
            self.found.untried.push(reason);
        }
    }

    /// Returns the next pass, without what was tried and what takes more than the limits. `amount` returns how much it
    /// hashes, or `None` if it is not possible. `None` if nothing is left, or the search is over: a value has no
    /// second meaning.
    pub fn next(&mut self, mut amount: impl FnMut(&Pass) -> Option<Amount>) -> Option<Pass> {
        let is_over = self.found.doubted.is_some() && self.values.len() == 1;
        if is_over || self.found.matched.is_some() {
            return None;
        }
        for mut pass in self.passes.by_ref() {
            let subject = pass.subject;
            pass.parameters.retain(|it| !self.found.tried.contains(&Reading::of(subject, *it)));
            if pass.parameters.is_empty() {
                continue;
            }
            let Some(amount) = amount(&pass) else { continue };
            let pass = self.search.within(self.values, pass, amount, &mut self.found.untried);
            if !pass.parameters.is_empty() {
                return Some(pass);
            }
        }
        None
    }

    /// Compares the checksums of a pass with the values. Returns whether one is equal. `doubt` returns why a checksum
    /// proves nothing, as [`Shape::doubt`](super::Shape::doubt) does.
    ///
    /// # Errors
    ///
    /// Fails if `doubt` does.
    pub fn take<E>(
        &mut self,
        subject: Subject,
        checksums: &[(Parameters, Digest)],
        doubt: impl Fn(&Parameters) -> Result<Option<Doubt>, E>,
    ) -> Result<bool, E> {
        let mut is_any_equal = false;
        for (parameters, digest) in checksums {
            let reading = Reading::of(subject, *parameters);
            self.found.tried.push(reading);
            let is_equal = |value: &Value| value.digest == digest.as_bytes();
            let Some(value) = self.values.iter().position(is_equal) else { continue };
            is_any_equal = true;
            let is_sure = self.search.construction.is_some() || self.values[value].parts.is_some();
            match if is_sure { None } else { doubt(parameters)? } {
                Some(doubt) => self.found.doubted = Some((reading, doubt)),
                None => {
                    self.found.matched.get_or_insert(Match { value, reading });
                }
            }
        }
        Ok(is_any_equal)
    }

    /// Returns what was found so far.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// Ends the search.
    pub fn into_found(self) -> Found {
        self.found
    }
}

impl Search {
    /// Returns what is tried in a pass over this amount. What takes more than the limits is left out, and the reason is
    /// added to `untried`.
    pub fn within(
        &self,
        values: &[Value],
        pass: Pass,
        amount: Amount,
        untried: &mut Vec<Untried>,
    ) -> Pass {
        let Pass { subject, mut parameters } = pass;
        let mut leave_out = |reason| {
            if !untried.contains(&reason) {
                untried.push(reason);
            }
        };
        if amount.size > self.limits.size {
            let first = |value: &Value| self.digests(value).first().copied();
            let first: Vec<_> = values.iter().filter_map(first).collect();
            let count = parameters.len();
            parameters.retain(|it| first.contains(&it.algorithm()));
            if parameters.len() < count {
                leave_out(Untried::Digests(self.limits.size));
            }
        }
        let has_blocks = |it: &Parameters| it.construction().has_blocks();
        let blocks = |it: &Parameters| amount.zeros / u64::from(it.block_size());
        let folds: u64 = parameters.iter().filter(|it| has_blocks(it)).map(blocks).sum();
        let linear = parameters.iter().filter(|it| !has_blocks(it)).count() as u64;
        let is_few_folds = folds <= self.limits.folds;
        let is_few_zeros = amount.zeros.saturating_mul(linear) <= self.limits.zeros;
        if !is_few_folds {
            leave_out(Untried::Folds);
        }
        if !is_few_zeros {
            leave_out(match subject {
                Subject::Content => Untried::Linear,
                Subject::Bytes => Untried::Bytes,
            });
        }
        parameters.retain(|it| if has_blocks(it) { is_few_folds } else { is_few_zeros });
        Pass { subject, parameters }
    }
}

impl Found {
    /// Lists everything that was compared in words, as constructions and digests.
    pub fn describe_tried(&self) -> String {
        let (mut ways, mut digests) = (Vec::new(), Vec::new());
        for reading in &self.tried {
            let mut way = reading.way();
            if let Some(size) = reading.unusual_block_size() {
                way += &format!(" with blocks of {size:#}");
            }
            let digest = reading.parameters.algorithm().to_string();
            for (list, word) in [(&mut ways, way), (&mut digests, digest)] {
                if !list.contains(&word) {
                    list.push(word);
                }
            }
        }
        format!("{}, with {}", and(&ways), and(&digests))
    }
}

impl Reading {
    /// Creates a meaning.
    pub fn of(subject: Subject, parameters: Parameters) -> Self {
        Self { subject, parameters }
    }

    /// Returns whether this is a checksum over blocks of the content that no list of digests has.
    pub fn is_over_blocks_of_content(&self) -> bool {
        let construction = self.parameters.construction();
        let is_safe = construction.has_blocks() && construction != Construction::Concat;
        self.subject == Subject::Content && is_safe
    }

    /// Returns whether this is a checksum of the file as it is, and not of its parts.
    pub fn is_of_file(&self) -> bool {
        self.subject == Subject::Bytes && !self.parameters.construction().has_blocks()
    }

    /// Returns the tag of this checksum in a check file. `content` says what of an image was read.
    pub fn tag(&self, content: Content) -> Tag {
        let parameters = self.parameters;
        match self.subject {
            _ if self.is_of_file() => Tag::File(parameters.algorithm()),
            // Values of parts.
            Subject::Bytes => {
                let content = Content { format: Some(Format::Raw), ..Content::default() };
                Tag::Image(Box::new(ImageTag { parameters, content }))
            }
            Subject::Content => Tag::Image(Box::new(ImageTag { parameters, content })),
        }
    }

    fn way(&self) -> String {
        match self.is_of_file() {
            true => "bytes of the file".to_owned(),
            false => self.parameters.construction().to_string(),
        }
    }

    fn unusual_block_size(&self) -> Option<BlockSize> {
        let (construction, size) = (self.parameters.construction(), self.parameters.block_size());
        let is_usual = !construction.has_blocks() || size == construction.default_block_size();
        (!is_usual).then_some(size)
    }
}

impl fmt::Display for Reading {
    /// Describes how a checksum is computed, without what is the default.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let algorithm = self.parameters.algorithm();
        if algorithm != Parameters::default().algorithm() {
            write!(f, "{algorithm}, ")?;
        }
        f.write_str(&self.way())?;
        match self.unusual_block_size() {
            Some(size) => write!(f, ", blocks of {size:#}"),
            None => Ok(()),
        }
    }
}

fn and(words: &[String]) -> String {
    match words {
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => words.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expect::Limits;

    #[test]
    fn what_takes_long_is_left_out() {
        let values = [Value::new(vec![0; 32]).unwrap()];
        let count = |limits, amount, index: usize| {
            let search = Search { limits, ..Search::default() };
            let pass = search.passes(&values).swap_remove(index);
            let (count, mut untried) = (pass.parameters.len(), Vec::new());
            let left = search.within(&values, pass, amount, &mut untried);
            (count - left.parameters.len(), untried)
        };
        let amount = Amount { size: 2 << 30, zeros: 1 << 40 };
        for index in 0..5 {
            assert_eq!(count(Limits::NONE, amount, index), (0, vec![]));
            assert_eq!(count(Limits::SHORT, Amount::default(), index), (0, vec![]));
        }
        let (less, more) = (1 << 20, 1 << 30);
        let limits = |size, zeros, folds| Limits { size, zeros, folds };
        let (common, others) = (0, 3);
        assert_eq!(count(limits(more, more, u64::MAX), Amount { size: more, zeros: more }, 1).0, 0);
        assert_eq!(count(limits(less, 0, 0), Amount { size: more, zeros: 0 }, common).0, 0);
        let (left_out, why) = count(limits(less, 0, 0), Amount { size: more, zeros: 0 }, others);
        assert!(left_out > 0);
        assert_eq!(why, [Untried::Digests(less)]);
        let zeros = Amount { size: more, zeros: more };
        assert_eq!(count(limits(more, more, 1), zeros, common), (5, vec![Untried::Folds]));
        // linear hashes zeros, and concat folds blocks.
        assert_eq!(count(limits(more, less, u64::MAX), zeros, 1), (1, vec![Untried::Linear]));
        assert_eq!(count(limits(more, less, u64::MAX), zeros, 2), (1, vec![Untried::Bytes]));
    }
}
