//! How images are opened.

use std::fmt;
#[cfg(feature = "qemu-nbd")]
use std::path::PathBuf;
use std::str::FromStr;

use crate::error::Result;
use crate::probe::Format;
#[cfg(feature = "qemu-nbd")]
use crate::secret::Secret;
#[cfg(feature = "nbd")]
use crate::storage::nbd::options::NbdOptions;

/// How to open an image.
///
/// ```no_run
/// use blkimage::{OpenOptions, Source};
///
/// # fn main() -> blkimage::Result<()> {
/// let image = OpenOptions::default().open("disk.qcow2".as_ref())?;
/// let extent = image.extent(0, image.size())?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// What the image is; None looks at its content.
    pub format: Option<Format>,
    /// An internal snapshot of the image, by id or name, instead of its current content.
    pub snapshot: Option<String>,
    /// Which files the image may name.
    pub follow: Follow,
    /// What a backing file is whose format the image does not record; None refuses it.
    pub backing_format: Option<Format>,
    /// What to make of holes in raw files.
    pub holes: Holes,
    /// Whether to read through the page cache.
    pub cache: Cache,
    /// Read it although a process may be writing to it.
    pub force_share: bool,
    /// How to talk to NBD servers.
    #[cfg(feature = "nbd")]
    pub nbd: NbdOptions,
    /// The program that reads the formats which are not read here: a path, or a name that is looked
    /// up in `PATH`; None is `qemu-nbd`.
    #[cfg(feature = "qemu-nbd")]
    pub nbd_server: Option<PathBuf>,
    /// The most bytes that an image may have beyond those that its files store, where its format does
    /// not tell which they are (vhdx, bochs, cloop and dmg), so that all are read; None is 1 TiB.
    #[cfg(feature = "qemu-nbd")]
    pub max_unstored: Option<u64>,
    /// What unlocks encrypted images.
    #[cfg(feature = "qemu-nbd")]
    pub secret: Option<Secret>,
}

/// What to make of the holes that a file system reports in a raw image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Holes {
    /// They are zeros and need not be read.
    #[default]
    Trust,
    /// Read them all the same; one that is not zero is an error.
    Verify,
    /// Do not ask for holes.
    Ignore,
}

/// Whether host files are read through the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Cache {
    /// Local regular files are, as far as it holds them already; block devices and network file
    /// systems, which another host may have written to, are read directly.
    #[default]
    Auto,
    /// Always.
    Yes,
    /// Never, unless the file system cannot do without.
    No,
}

/// Which files may be opened because an image names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Follow {
    /// Regular files beneath the folder of the image that names them. Symbolic links there are
    /// followed as long as they stay there; the folder is that of the name the image was opened by.
    #[default]
    Beneath,
    /// Any regular file and any block device.
    Any,
    /// None.
    None,
}

/// A name that is none of those of [`Holes`] or [`Cache`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownName;

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown name")
    }
}

impl std::error::Error for UnknownName {}

impl FromStr for Holes {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        match name {
            "trust" => Ok(Self::Trust),
            "verify" => Ok(Self::Verify),
            "ignore" => Ok(Self::Ignore),
            _ => Err(UnknownName),
        }
    }
}

impl FromStr for Cache {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        match name {
            "auto" => Ok(Self::Auto),
            "yes" => Ok(Self::Yes),
            "no" => Ok(Self::No),
            _ => Err(UnknownName),
        }
    }
}

impl FromStr for Follow {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        match name {
            "beneath" => Ok(Self::Beneath),
            "any" => Ok(Self::Any),
            "none" => Ok(Self::None),
            _ => Err(UnknownName),
        }
    }
}
