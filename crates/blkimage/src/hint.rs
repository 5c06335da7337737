//! Advice about errors and warnings as data: each program writes an option in its own way.

use std::io;

use crate::compression::Compression;
use crate::recognise::way::Way;

/// The option for opening an image with which an error or a warning does not occur.
///
/// [`describe`](Self::describe) has the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Hint {
    /// `follow`: [`Follow::Beneath`](crate::Follow::Beneath) allows files beneath the folder of the image,
    /// [`Follow::Any`](crate::Follow::Any) all.
    Follow,
    /// `follow`: only [`Follow::Any`](crate::Follow::Any) allows the file.
    FollowAny,
    /// `backing_format`: the image cannot record the format of its backing file.
    BackingFormat,
    /// `backing_format`. The image can also record the format, as `qemu-img rebase -u -F` does.
    RecordFormat,
    /// `vpc_size`: another value gives the image another size.
    VpcSize,
    /// `vpc_size`: [`VpcSize::Current`](crate::VpcSize::Current) is the size that the image states.
    CurrentSize,
    /// `force_share`: reads an image that is in use.
    ForceShare,
    /// `format`: the content does not tell which one it is.
    Format,
    /// `format`: [`Format::Raw`](crate::Format::Raw) reads the bytes of the file itself.
    Raw,
    /// `format`: [`Format::Raw`](crate::Format::Raw) reads the content as a disk, with the compression that was undone.
    RawContent {
        /// The compression that was undone.
        compression: Option<Compression>,
    },
    /// The way to a disk in the file, or `format` as in [`Hint::RawContent`].
    NoDisk {
        /// The way.
        way: Way,
        /// The compression that was undone.
        compression: Option<Compression>,
    },
    /// `secret`, or `format` as in [`Hint::Raw`].
    Secret,
    /// `reader`: [`Reader::Auto`](crate::Reader::Auto) does not need the program. Or `format` as in [`Hint::Raw`].
    Reader,
    /// `max_zeros`: a higher limit.
    MaxZeros,
    /// `max_memory`: a higher limit.
    MaxMemory,
    /// A program that downloads the object at a URL, to read it as a file.
    Download,
    /// `timeout`: a server was silent for longer.
    Timeout,
}

impl Hint {
    /// Returns the option for an error of reading from a server, or of writing to it.
    pub fn of_io(error: &io::Error) -> Option<Self> {
        // An error of the system is about its own patience.
        let is_late = error.kind() == io::ErrorKind::TimedOut && error.raw_os_error().is_none();
        is_late.then_some(Self::Timeout)
    }
}
