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
/// use blkimage::{Format, OpenOptions, Source};
///
/// # fn main() -> blkimage::Result<()> {
/// let options = OpenOptions::new().format(Format::Qcow2).snapshot("before".to_owned());
/// let image = options.open("disk.qcow2")?;
/// let extent = image.extent(0, image.size())?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
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

impl OpenOptions {
    /// The defaults: any format, references beneath the image's folder, locks and changes looked for.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says what the image is, instead of looking at its content.
    #[must_use]
    pub fn format(mut self, format: impl Into<Option<Format>>) -> Self {
        self.format = format.into();
        self
    }

    /// Opens an internal snapshot, by id or name.
    #[must_use]
    pub fn snapshot(mut self, snapshot: impl Into<Option<String>>) -> Self {
        self.snapshot = snapshot.into();
        self
    }

    /// Says which files the image may name.
    #[must_use]
    pub fn follow(mut self, follow: Follow) -> Self {
        self.follow = follow;
        self
    }

    /// Says what a backing file is whose format the image does not record.
    #[must_use]
    pub fn backing_format(mut self, backing_format: impl Into<Option<Format>>) -> Self {
        self.backing_format = backing_format.into();
        self
    }

    /// Says what to make of holes in raw files.
    #[must_use]
    pub fn holes(mut self, holes: Holes) -> Self {
        self.holes = holes;
        self
    }

    /// Says whether to read through the page cache.
    #[must_use]
    pub fn cache(mut self, cache: Cache) -> Self {
        self.cache = cache;
        self
    }

    /// Reads the image although a process may be writing to it.
    #[must_use]
    pub fn force_share(mut self, force_share: bool) -> Self {
        self.force_share = force_share;
        self
    }

    /// Says how to talk to NBD servers.
    #[cfg(feature = "nbd")]
    #[must_use]
    pub fn nbd(mut self, nbd: NbdOptions) -> Self {
        self.nbd = nbd;
        self
    }

    /// Names the program that reads the formats which are not read here.
    #[cfg(feature = "qemu-nbd")]
    #[must_use]
    pub fn nbd_server(mut self, nbd_server: impl Into<Option<PathBuf>>) -> Self {
        self.nbd_server = nbd_server.into();
        self
    }

    /// Limits the bytes of an image beyond those that its files store.
    #[cfg(feature = "qemu-nbd")]
    #[must_use]
    pub fn max_unstored(mut self, max_unstored: impl Into<Option<u64>>) -> Self {
        self.max_unstored = max_unstored.into();
        self
    }

    /// Gives what unlocks encrypted images.
    #[cfg(feature = "qemu-nbd")]
    #[must_use]
    pub fn secret(mut self, secret: impl Into<Option<Secret>>) -> Self {
        self.secret = secret.into();
        self
    }
}

/// What to make of the holes that a file system reports in a raw image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
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
#[non_exhaustive]
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
#[non_exhaustive]
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
