//! Checks an image of ISO 9660 against the MD5 that it states of itself, as `checkisomd5` of isomd5sum does.
//!
//! MD5 has no blocks that several threads could hash, and its state is looked at between fragments, so this is one loop.

use std::ops::Range;

use blkhash::{Algorithm, Digest, State};
use blkimage::{Announcer, ExtentKind, Implanted, Source};

use crate::{Error, Progress, Tuning};

/// What an image of ISO 9660 has instead of the content of which it states the MD5.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImplantedCheck {
    /// The MD5 of the content, with spaces in place of the text that states it. If the image is cut, the MD5 of all
    /// there is.
    pub md5: Digest,
    /// Where the first difference is. `None` if all sums match.
    pub difference: Option<ImplantedDifference>,
}

/// Where an image of ISO 9660 differs first from the content of which it states the MD5.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImplantedDifference {
    /// In these bytes, which are fragment `number` of `count`. It may be in the stated sum as well.
    Fragment {
        /// The bytes.
        range: Range<u64>,
        /// Number of the fragment, from 1.
        number: usize,
        /// Number of fragments.
        count: usize,
    },
    /// In the sums of fragments, because the MD5 of all fragments matches.
    Sums,
    /// The image ends after this number of bytes, which match as far as there are sums of them.
    Cut(u64),
}

/// Checks the content of an image against the MD5 that it states, and the sums of its fragments.
///
/// # Errors
///
/// Fails if the image cannot be read, changed, or has more zeros than [`Tuning::max_zeros`] allows, if
/// [`Tuning::implementation`] cannot run here, or if [`Progress::cancel`] was called. A difference is no error.
pub fn check_implanted(
    source: &dyn Source,
    implanted: &Implanted,
    tuning: &Tuning,
    progress: &Progress,
) -> Result<ImplantedCheck, Error> {
    let end = implanted.length.min(source.size());
    progress.set_total(end);
    let mut pass = Pass {
        source,
        tuning,
        progress,
        state: tuning.digester(Algorithm::Md5)?.start(),
        buf: vec![0; tuning.clamped_read_size()],
        announcer: Announcer::default(),
        zeros: 0,
    };
    let (mut offset, mut difference) = (0, None);
    let count = implanted.fragments.len() + 1;
    for (index, fragment) in implanted.fragments.iter().enumerate() {
        if fragment.end > end {
            break;
        }
        pass.hash(offset..fragment.end)?;
        if !fragment.matches(pass.state.clone().finalize().as_bytes()) && difference.is_none() {
            let range = offset..fragment.end;
            difference = Some(ImplantedDifference::Fragment { range, number: index + 1, count });
        }
        offset = fragment.end;
    }
    pass.hash(offset..end)?;
    source.check_unchanged()?;
    let md5 = pass.state.finalize();
    let is_equal = md5.as_bytes() == implanted.md5;
    let last = || ImplantedDifference::Fragment { range: offset..end, number: count, count };
    let difference = match difference {
        None if end < implanted.length => Some(ImplantedDifference::Cut(end)),
        None => (!is_equal).then(last),
        Some(_) if is_equal => Some(ImplantedDifference::Sums),
        found => found,
    };
    Ok(ImplantedCheck { md5, difference })
}

/// A pass over the content, in order.
struct Pass<'a> {
    source: &'a dyn Source,
    tuning: &'a Tuning,
    progress: &'a Progress,
    state: State,
    buf: Vec<u8>,
    announcer: Announcer,
    /// Number of zero bytes that the image does not store.
    zeros: u64,
}

impl Pass<'_> {
    /// Hashes the bytes of `range`, and spaces in place of the text that states the MD5.
    fn hash(&mut self, range: Range<u64>) -> Result<(), Error> {
        let mut offset = range.start;
        while offset < range.end {
            if self.progress.is_cancelled() {
                return Err(Error::Cancelled);
            }
            self.announcer.advance(self.source, offset);
            let limit = range.end - offset;
            let extent = self.source.extent(offset, limit)?;
            let length = extent.length;
            if length == 0 || length > limit {
                return Err(Error::Extent { offset, length, limit });
            }
            let length = length.min(self.buf.len() as u64);
            let buf = &mut self.buf[..length as usize];
            if extent.kind == ExtentKind::Data {
                self.source.read_exact_at(buf, offset)?;
                self.progress.advance(length, length);
            } else {
                buf.fill(0);
                self.zeros += length;
                if let Some(limit) = self.tuning.max_zeros
                    && self.zeros > limit
                {
                    return Err(Error::Zeros { limit });
                }
                self.progress.advance(length, 0);
            }
            let blank = Implanted::BLANK;
            let within = |at: u64| at.clamp(offset, offset + length) - offset;
            buf[within(blank.start) as usize..within(blank.end) as usize].fill(b' ');
            self.state.update(buf);
            offset += length;
        }
        Ok(())
    }
}
