//! Expert Witness images (`.E01`).

use crate::chain::{Candidate, Chain, OpenedLayer};
use crate::error::{ErrorKind, Result};

/// Opens the first segment of an image, and all others.
pub(crate) fn open(_chain: &mut Chain<'_>, image: &Candidate) -> Result<OpenedLayer> {
    Err(image.file.error(ErrorKind::Unsupported, "is an ewf image"))
}
