//! Advice about errors and warnings as data: each program writes an option in its own way.

use std::io;

use crate::compression::Compression;
use crate::options::OpenOption;
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
    /// [`NbdOptions::timeout`](crate::NbdOptions): a server was silent for longer.
    Timeout,
}

impl Hint {
    /// Describes what to do. `say` writes an option, with a value or by its name alone, as the users of a program do.
    /// `file` is the name of the file, in the commands that [`Way::Pipe`] has.
    pub fn describe(self, say: impl Fn(OpenOption, Option<&str>) -> String, file: &str) -> String {
        use OpenOption::{BackingFormat, Follow, ForceShare, Format, Reader, Secret, VpcSize};
        let raw = |compression: Option<Compression>| match compression {
            None => format!("{} reads the bytes of the file itself", say(Format, Some("raw"))),
            Some(method) => {
                let raw = say(Format, Some(&format!("raw+{method}")));
                format!("{raw} reads its content as a disk")
            }
        };
        match self {
            Self::Follow => {
                let (beneath, any) = (say(Follow, Some("beneath")), say(Follow, Some("any")));
                format!("{beneath} allows files beneath its folder, {any} all")
            }
            Self::FollowAny => format!("{} allows it", say(Follow, Some("any"))),
            Self::BackingFormat => format!("give {}", say(BackingFormat, None)),
            Self::RecordFormat => {
                let option = say(BackingFormat, None);
                format!("record it with qemu-img rebase -u -F, or give {option}")
            }
            Self::VpcSize => format!("{} gives it another size", say(VpcSize, None)),
            Self::CurrentSize => {
                let current = say(VpcSize, Some("current"));
                format!("{current} reads the size that its header states")
            }
            Self::ForceShare => format!("{} reads it anyway", say(ForceShare, None)),
            Self::Format => format!("say with {} what it is", say(Format, None)),
            Self::Raw => raw(None),
            Self::RawContent { compression } => raw(compression),
            Self::NoDisk { way, compression } => {
                let way = match way {
                    Way::Compression(method) => {
                        let method = say(Format, Some(method.name()));
                        Some(format!("{method} reads its content"))
                    }
                    way => way.describe(file),
                };
                let bytes = raw(compression);
                way.map_or_else(|| bytes.clone(), |way| format!("{way}; {bytes}"))
            }
            Self::Secret => {
                let (secret, raw) = (say(Secret, None), say(Format, Some("raw")));
                format!(
                    "give the secret with {secret}, or use {raw} for the bytes of the file itself"
                )
            }
            Self::Reader => {
                let (reader, raw) = (say(Reader, Some("qemu")), say(Format, Some("raw")));
                format!("leave out {reader}, or use {raw} for the bytes of the file itself")
            }
            Self::MaxZeros => format!("{} allows more", say(OpenOption::MaxZeros, None)),
            Self::MaxMemory => format!("{} allows more", say(OpenOption::MaxMemory, None)),
            Self::Timeout => format!("{} waits longer", say(OpenOption::Timeout, None)),
        }
    }

    /// Returns the option for an error of reading from a server, or of writing to it.
    pub fn of_io(error: &io::Error) -> Option<Self> {
        // An error of the system is about its own patience.
        let is_late = error.kind() == io::ErrorKind::TimedOut && error.raw_os_error().is_none();
        is_late.then_some(Self::Timeout)
    }
}
