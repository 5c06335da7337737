//! Reasons why a destination is not written to.

use std::io;
use std::ops::Range;

use blkimage::{FileKind, Format};

/// The reason why a destination is refused. Only [`Removed`](Self::Removed) comes after it was written to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// It cannot be opened.
    #[error("cannot be opened")]
    Open(#[source] io::Error),
    /// It is the URL of an object on an HTTP or S3 server.
    #[error("is a URL, and objects on HTTP and S3 servers are read only")]
    Url,
    /// The name promises something else, and a copy is raw.
    #[error("has the name of {0}, and the copy is raw")]
    Name(&'static FileKind),
    /// The file holds an image of another format, and the copy is raw.
    #[error("is a {0} image, and the copy is raw")]
    OtherFormat(Format),
    /// It is a new file in the folder of devices, which is in memory.
    #[error("is no device")]
    NoDevice,
    /// It is a device, and the system does not tell which devices share bytes with it.
    #[error("is a device, and {} does not tell what else uses it", blksys::NAME)]
    UnknownUses,
    /// It is a folder, a pipe or the like.
    #[error("is neither a regular file nor a block device")]
    Kind,
    /// A device became a file, or the reverse.
    #[error("became another file while it was opened")]
    OtherKind,
    /// Another process has locked the file.
    #[error("is being written by another process")]
    Busy,
    /// It is another file that is read or written.
    #[error("is {0}")]
    Other(String),
    /// The source is a disk and the destination its partition, a loop device and its file, or the like.
    #[error("overlaps the source: one of them is a part of the other, or is stored in it")]
    Overlaps,
    /// It is a file of the source.
    #[error("is a file of the source")]
    Source,
    /// The source has no bytes, and the destination is a device or an export.
    #[error("would stay as it is: the source is empty")]
    Empty,
    /// The file exists, and is not empty.
    #[error("exists")]
    Exists,
    /// A device or an export holds this.
    #[error("holds {0}")]
    Holds(String),
    /// It is mounted, or another process may write to it.
    #[error("is in use, or cannot be read")]
    Used(#[source] blkimage::Error),
    /// The server cannot be reached, or the content cannot be read.
    #[error("cannot be read")]
    Image(#[source] blkimage::Error),
    /// Zeros of an export cannot be deallocated for certain.
    #[error("no server tells whether it deallocates")]
    Deallocation,
    /// The file exists, and the map of a copy to resume does not say what it has of it.
    #[error("exists, and the map has no checkpoint")]
    NoCheckpoint,
    /// The file has another size than a copy to resume.
    #[error("has {length} bytes, so it is not the interrupted copy")]
    OtherLength {
        /// Size of the file in bytes.
        length: u64,
    },
    /// The file was created, and the map says that a part of it was written before.
    #[error("is new, and the map has a checkpoint of a copy to something else")]
    New,
    /// The log is not of a copy of this source. Names the first block that differs, if it was compared.
    #[error("is not the log of a copy of the source as it is now{}", .0.as_ref().map(Unlike::text).unwrap_or_default())]
    OtherSource(Option<Unlike>),
    /// The destination does not hold what the log says that was written.
    #[error("holds something else than what was written{}", .0.text())]
    NotCopied(Unlike),
    /// The log cannot be read, or is damaged.
    #[error("cannot be read")]
    Log(#[source] blksum::Error),
    /// The log is a file of the source.
    #[error("is a file of the source")]
    LogOfSource,
    /// The log exists, and is no map.
    #[error("exists, and is not a block map")]
    LogFormat,
    /// The log exists and is finished, and the copy is to begin anew.
    #[error("exists")]
    LogFinished,
    /// The log is not finished, and the copy is to begin anew.
    #[error("is not finished")]
    LogUnfinished,
    /// The log has other blocks than the copy.
    #[error("has another digest or block size than the copy")]
    LogParameters,
    /// The log is of a source of another size.
    #[error("is the map of {then} bytes, and the source has {size}")]
    LogSize {
        /// Size in the log, in bytes.
        then: u64,
        /// Size of the source in bytes.
        size: u64,
    },
    /// The source cannot be read to compare it with the log.
    #[error("cannot be read")]
    Unreadable(#[source] blksum::Error),
    /// The destination cannot be read to compare it with the log.
    #[error("cannot be read")]
    Content(#[source] blksum::Error),
    /// The name leads to another file than the one that was written.
    #[error("was removed or replaced while it was written")]
    Removed,
}

impl Refused {
    /// Returns whether it is the log that is refused, and not the destination.
    pub fn is_of_log(&self) -> bool {
        matches!(
            self,
            Self::OtherSource(_)
                | Self::Log(_)
                | Self::LogOfSource
                | Self::LogFormat
                | Self::LogFinished
                | Self::LogUnfinished
                | Self::LogParameters
                | Self::LogSize { .. }
        )
    }

    /// Tells errors of the log from errors of what is compared with it.
    pub(super) fn of_log(
        error: blksum::Error,
        of_other: impl FnOnce(blksum::Error) -> Self,
    ) -> Self {
        match error {
            blksum::Error::Map(_) => Self::Log(error),
            error => of_other(error),
        }
    }
}

/// The first bytes that differ from the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unlike(pub Range<u64>);

impl Unlike {
    fn text(&self) -> String {
        format!(": {} bytes at {} differ", self.0.end - self.0.start, self.0.start)
    }
}
