//! Limits of a search, and the reasons why something is not tried.

use std::fmt;

use blkhash::BlockSize;

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
    pub const SHORT: Self = Self { size: MAX_SIZE, zeros: MAX_ZEROS, folds: MAX_FOLDS };

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

/// Maximum size of content for which the unusual digests of a value are tried.
/// Limit in bytes.
const MAX_SIZE: u64 = GIB;

/// Maximum number of zeros that the digests of one pass of a search hash for `linear`, which takes half a minute.
/// Limit in bytes.
const MAX_ZEROS: u64 = 64 * GIB;

/// Maximum number of blocks of zeros that the checksums of one pass of a search fold.
/// Limit in blocks.
const MAX_FOLDS: u64 = 1 << 29;

const GIB: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_the_caller_sets_is_the_only_one() {
        assert_eq!(Limits::SHORT.unless_set(None), Limits::SHORT);
        assert_eq!(Limits::SHORT.all_digests().unless_set(Some(1)), Limits::NONE);
        let text = Untried::Digests(Limits::SHORT.size).to_string();
        assert!(text.ends_with("of more than 1 GiB"));
    }
}
