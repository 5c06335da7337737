//! The end that only the larger of two images has.

use std::ffi::OsStr;

use blkmap::Map;

use crate::blkhash::source::Data;
use crate::problem::Problem;
use crate::progress::Reporter;

/// The end of one side of a comparison.
#[derive(Clone, Copy)]
pub enum End<'a> {
    Map(&'a Map, &'a OsStr),
    Image(&'a Data),
    /// Digests of ranges of an image of this size, which do not tell zeros.
    Ranges(u64),
}

impl End<'_> {
    /// Returns the size of the image in bytes.
    pub fn size(self) -> u64 {
        match self {
            Self::Map(map, _) => map.commit().image_size(),
            Self::Image(data) => data.size(),
            Self::Ranges(size) => size,
        }
    }

    fn has_zeros_from(self, offset: u64, reporter: &Reporter) -> Result<bool, Problem> {
        match self {
            Self::Map(map, name) => {
                blkmap::has_zero_tail(map, offset).map_err(|error| Problem::from(error).about(name))
            }
            Self::Image(data) => data.has_zeros_from(offset, reporter),
            Self::Ranges(_) => Ok(false),
        }
    }
}

/// Returns whether the larger of two images has only zeros past the end of the smaller one. The error names the
/// side.
pub fn is_zero(sides: [End<'_>; 2], reporter: &Reporter) -> Result<bool, Problem> {
    let [left, right] = sides.map(End::size);
    let longer = if left > right { sides[0] } else { sides[1] };
    longer.has_zeros_from(left.min(right), reporter)
}
