//! Looks for the first byte that is not zero.

use blkhash::is_zero;
use blkimage::{Announcer, Buffer, ExtentKind, Source};

use crate::tuning::MAX_BUFFER;
use crate::{Error, Progress, Tuning};

/// Returns the offset of the first byte of `source` at or after `from` that is not zero, or `None` if
/// there is none. For example, `from` is the size of a shorter image that was compared with this one.
///
/// Reads only extents of data, up to the first byte that is not zero, on the caller's thread. Adds the
/// bytes after `from` to the total of `progress`.
///
/// # Errors
///
/// Fails if the image cannot be read, if it changed while it was read, or if [`Progress::cancel`] was
/// called.
pub fn first_nonzero(
    source: &dyn Source,
    from: u64,
    tuning: &Tuning,
    progress: &Progress,
) -> Result<Option<u64>, Error> {
    let size = source.size();
    progress.set_total(progress.done() + size.saturating_sub(from));
    let granularity = source.granularity().clamp(1, MAX_BUFFER as u64);
    let step = (tuning.clamped_read_size() as u64).max(granularity);
    let mut buffer = Buffer::default();
    let mut announcer = Announcer::default();
    let mut position = from;
    let mut found = None;
    while position < size && found.is_none() {
        if progress.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let limit = size - position;
        let extent = source.extent(position, limit)?;
        if extent.offset != position || extent.length == 0 || extent.length > limit {
            return Err(Error::Extent { offset: extent.offset, length: extent.length, limit });
        }
        if extent.kind == ExtentKind::Zero {
            position += extent.length;
            progress.advance(extent.length, 0);
            continue;
        }
        let length = extent.length.min(step - position % step);
        buffer.grow(step as usize);
        let bytes = &mut buffer.as_mut()[..length as usize];
        // The first bytes are rarely zero, and the rest is not read then.
        if position > from {
            announcer.advance(source, position);
        }
        source.read_exact_at(bytes, position)?;
        if !is_zero(bytes) {
            let index = bytes.iter().position(|byte| *byte != 0);
            found = index.map(|index| position + index as u64);
        }
        position += length;
        progress.advance(length, length);
    }
    // The rest need not be read.
    progress.advance(size.saturating_sub(position), 0);
    source.check_unchanged()?;
    Ok(found)
}
