//! One layer of a chain: what a format has for the bytes of its guest.
//!
//! A layer says where bytes are and leaves reading them to the [`Image`](crate::Image), unless they
//! are stored in a way that only its format knows. What lies below it is none of its business.

use crate::error::{Error, ErrorKind, Result};
use crate::storage::HostFile;

/// An image of a chain without those beneath it.
///
/// A layer is read by several threads at once.
pub(crate) trait Layer: Send + Sync {
    /// Size of the guest content in bytes.
    fn size(&self) -> u64;

    /// What the layer has for the guest bytes of `range`: one mapping that begins at its offset.
    ///
    /// It need not be maximal. With [`Purpose::Read`] it is an error if what it leads to is not there.
    fn map(&self, range: GuestRange, purpose: Purpose) -> Result<Mapping<'_>>;

    /// Fills `buf` with the guest bytes from `offset` on, for which the layer gave `stored`. Not called
    /// for layers that give no [`MappingKind::Opaque`].
    fn read(&self, stored: Stored, buf: &mut [u8], offset: u64) -> Result<()> {
        let _ = (stored, buf);
        Err(Error::new(ErrorKind::Argument, "", "layer has no encoding of its own").at(offset))
    }

    /// The files that hold the layer, that of the image itself first.
    fn files(&self) -> Vec<&HostFile>;

    /// As [`Source::granularity`](crate::Source::granularity), of this layer.
    fn granularity(&self) -> u64 {
        self.files().iter().map(|file| file.granularity()).max().unwrap_or(1)
    }

    /// As [`Source::queue_depth`](crate::Source::queue_depth), of this layer.
    fn queue_depth(&self) -> usize {
        self.files().iter().map(|file| file.queue_depth()).max().unwrap_or(1)
    }

    /// As [`Source::check_unchanged`](crate::Source::check_unchanged), of this layer.
    fn check_unchanged(&self) -> Result<()> {
        self.files().into_iter().try_for_each(HostFile::check_unchanged)
    }
}

/// Guest bytes that a layer is asked about. They lie below its size, and there is at least one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GuestRange {
    pub offset: u64,
    /// The longest mapping that is of use.
    pub limit: u64,
    /// The same for [`MappingKind::Below`], no less than `limit`: what is known to lie below need not
    /// be asked for again.
    pub far: u64,
}

/// What a mapping is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To tell data from zeros: the host's file system is asked for holes.
    Extent,
    /// To read the bytes.
    Read,
}

/// What a layer has for a run of guest bytes.
#[derive(Clone, Copy)]
pub(crate) struct Mapping<'a> {
    pub kind: MappingKind<'a>,
    /// Never 0.
    pub length: u64,
}

/// Where the bytes of a [`Mapping`] are.
#[derive(Clone, Copy)]
pub(crate) enum MappingKind<'a> {
    /// In the layers below, or zero where there are none.
    Below,
    /// Nowhere: they are zero.
    Zero,
    /// In a file, as they are, from this offset on.
    Host { file: &'a HostFile, offset: u64 },
    /// Where [`Layer::read`] finds them: compressed, for example.
    Opaque(Stored),
}

/// The bytes of a file that a layer makes its own of. Only the layer knows how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub offset: u64,
    pub length: u64,
}
