//! Limits of a search, and the reasons why something is not tried.

use std::fmt;

use blkhash::{BlockSize, Parameters};

use super::search::{Pass, Search, Subject};
use super::value::Value;

/// How much a search hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Size in bytes up to which all digests of the length of a value are tried. Only the most common one is tried for
    /// larger content.
    pub size: u64,
    /// Zeros that are not stored and hashed all the same, in bytes, for all checksums of a pass together.
    pub zeros: u64,
    /// Blocks of zeros whose digests are folded, for all checksums of a pass together.
    pub folds: u64,
}

/// The amount that a pass hashes, in bytes. The default is for an amount that is not known, which is below all limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Size of the content.
    pub size: u64,
    /// Zeros that are not stored.
    pub zeros: u64,
}

/// Why something was not tried. The text leaves out which argument of the caller tries it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Untried {
    /// The less common digests, because the content is larger than [`Limits::size`], which this is.
    Digests(u64),
    /// Constructions over blocks, because of [`Limits::folds`].
    Folds,
    /// `linear`, because of [`Limits::zeros`].
    Linear,
    /// The bytes of the file, because of [`Limits::zeros`].
    Bytes,
    /// A value of parts, because the size of a pipe is not known.
    Pipe,
    /// A value of parts, because a part of the image was selected, and the value is of the whole file.
    Selection,
    /// Parts of another size than this one.
    PartSizes(BlockSize),
    /// A pass that failed, for this reason.
    Failed(String),
}

impl Limits {
    /// Tries everything.
    pub const NONE: Self = Self { size: u64::MAX, zeros: u64::MAX, folds: u64::MAX };

    /// Limits each step to about half a minute.
    pub const SHORT: Self = Self { size: GIB, zeros: 64 * GIB, folds: 1 << 29 };

    /// Tries all digests, which takes many times as long as one checksum.
    pub fn all_digests(self) -> Self {
        Self { size: u64::MAX, ..self }
    }

    /// Leaves zeros to `max_zeros` of a [`Tuning`](crate::Tuning), if the caller has set it.
    pub fn unless_set(self, max_zeros: Option<u64>) -> Self {
        match max_zeros {
            None => self,
            Some(_) => Self { size: self.size, ..Self::NONE },
        }
    }
}

impl Default for Limits {
    /// Returns [`Limits::NONE`].
    fn default() -> Self {
        Self::NONE
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

impl fmt::Display for Untried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Digests(limit) => {
                let limit = *limit as f64 / GIB as f64;
                return write!(
                    f,
                    "other digests of this length take long for an image of more than {limit} GiB"
                );
            }
            Self::Folds => "other digests take long for so many zeros",
            Self::Linear => "linear of so many zeros takes long",
            Self::Bytes => "the bytes of so large a file take long",
            Self::Pipe => "a value of parts needs the size of a file, and this is a pipe",
            Self::Selection => "a value of parts is of the whole file",
            Self::PartSizes(size) => {
                return write!(f, "parts may have another size than {size:#}");
            }
            Self::Failed(reason) => reason,
        };
        f.write_str(text)
    }
}

const GIB: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_limit_that_the_caller_sets_is_the_only_one() {
        assert_eq!(Limits::SHORT.unless_set(None), Limits::SHORT);
        assert_eq!(Limits::SHORT.all_digests().unless_set(Some(1)), Limits::NONE);
        let text = Untried::Digests(Limits::SHORT.size).to_string();
        assert!(text.ends_with("of more than 1 GiB"));
    }
}
