//! Options for opening images.

#[cfg(feature = "qemu-nbd")]
use std::path::PathBuf;

#[cfg(feature = "http")]
use blkhttp::HttpOptions;

#[cfg(feature = "compressed")]
use crate::compression::Compression;
use crate::error::Result;
use crate::holes::Holes;
use crate::names;
use crate::probe::Format;
#[cfg(feature = "qemu-nbd")]
use crate::secret::Secret;
#[cfg(feature = "nbd")]
use crate::storage::nbd::options::NbdOptions;

/// Options for opening an image.
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
    /// Format of the image. `None` detects it from the content.
    pub format: Option<Format>,
    /// Compression of the file as a whole. `None` goes by its name and its content, which must agree. If
    /// [`format`](Self::format) is set or [`follow`](Self::follow) is [`Follow::None`], it is none then.
    #[cfg(feature = "compressed")]
    pub compression: Option<Compression>,
    /// Internal snapshot to read instead of the current content, by id or name.
    pub snapshot: Option<String>,
    /// Files that the image may refer to.
    pub follow: Follow,
    /// Format of a backing file if the image does not record it. `None` refuses such an image.
    pub backing_format: Option<Format>,
    /// Size of the content of vpc (vhd) images.
    pub vpc_size: VpcSize,
    /// Treatment of holes in files.
    pub holes: Holes,
    /// Use of the page cache.
    pub cache: Cache,
    /// Whether to read the image although another process may be writing to it.
    pub force_share: bool,
    /// Options of connections to NBD servers.
    #[cfg(feature = "nbd")]
    pub nbd: NbdOptions,
    /// Options of connections to HTTP and S3 servers.
    #[cfg(feature = "http")]
    pub http: HttpOptions,
    /// The reader of the format of an image.
    #[cfg(feature = "qemu-nbd")]
    pub reader: Reader,
    /// Program that serves images that are not read natively: a path, or a name to look up in `PATH`.
    /// `None` is `qemu-nbd`.
    #[cfg(feature = "qemu-nbd")]
    pub nbd_server: Option<PathBuf>,
    /// Maximum number of bytes by which the size of an image may exceed the size of its files, for
    /// formats that do not report empty ranges (luks, bochs and cloop) and compressed files, which are
    /// read in full. `None` is 1 TiB.
    pub max_zeros: Option<u64>,
    /// Maximum number of bytes of a dictionary or window that a compressed file may ask for, and of content that is decoded
    /// ahead. `None` is 256 MiB.
    #[cfg(feature = "compressed")]
    pub max_memory: Option<u64>,
    /// Secret that unlocks encrypted images.
    #[cfg(feature = "qemu-nbd")]
    pub secret: Option<Secret>,
}

impl OpenOptions {
    /// Returns the default options: the format is detected, references are followed beneath the image's
    /// folder, and locks and changes are checked.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the format of the image instead of detecting it from the content.
    #[must_use]
    pub fn format(mut self, format: impl Into<Option<Format>>) -> Self {
        self.format = format.into();
        self
    }

    /// Sets the compression of the file as a whole instead of going by its name and its content.
    #[cfg(feature = "compressed")]
    #[must_use]
    pub fn compression(mut self, compression: impl Into<Option<Compression>>) -> Self {
        self.compression = compression.into();
        self
    }

    /// Opens an internal snapshot, by id or name.
    #[must_use]
    pub fn snapshot(mut self, snapshot: impl Into<Option<String>>) -> Self {
        self.snapshot = snapshot.into();
        self
    }

    /// Sets which files the image may refer to.
    #[must_use]
    pub fn follow(mut self, follow: Follow) -> Self {
        self.follow = follow;
        self
    }

    /// Sets the format of a backing file if the image does not record it.
    #[must_use]
    pub fn backing_format(mut self, backing_format: impl Into<Option<Format>>) -> Self {
        self.backing_format = backing_format.into();
        self
    }

    /// Sets which of its two sizes a vpc (vhd) image has.
    #[must_use]
    pub fn vpc_size(mut self, vpc_size: VpcSize) -> Self {
        self.vpc_size = vpc_size;
        self
    }

    /// Sets the treatment of holes in files.
    #[must_use]
    pub fn holes(mut self, holes: Holes) -> Self {
        self.holes = holes;
        self
    }

    /// Sets the use of the page cache.
    #[must_use]
    pub fn cache(mut self, cache: Cache) -> Self {
        self.cache = cache;
        self
    }

    /// Reads the image although another process may be writing to it.
    #[must_use]
    pub fn force_share(mut self, force_share: bool) -> Self {
        self.force_share = force_share;
        self
    }

    /// Sets the options of connections to NBD servers.
    #[cfg(feature = "nbd")]
    #[must_use]
    pub fn nbd(mut self, nbd: NbdOptions) -> Self {
        self.nbd = nbd;
        self
    }

    /// Sets the options of connections to HTTP and S3 servers.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn http(mut self, http: HttpOptions) -> Self {
        self.http = http;
        self
    }

    /// Sets how the format of an image is read.
    #[cfg(feature = "qemu-nbd")]
    #[must_use]
    pub fn reader(mut self, reader: Reader) -> Self {
        self.reader = reader;
        self
    }

    /// Sets the program that serves images that are not read natively.
    #[cfg(feature = "qemu-nbd")]
    #[must_use]
    pub fn nbd_server(mut self, nbd_server: impl Into<Option<PathBuf>>) -> Self {
        self.nbd_server = nbd_server.into();
        self
    }

    /// Limits by how many bytes the size of an image may exceed the size of its files.
    #[must_use]
    pub fn max_zeros(mut self, max_zeros: impl Into<Option<u64>>) -> Self {
        self.max_zeros = max_zeros.into();
        self
    }

    /// Limits the memory for decompressing files.
    #[cfg(feature = "compressed")]
    #[must_use]
    pub fn max_memory(mut self, max_memory: impl Into<Option<u64>>) -> Self {
        self.max_memory = max_memory.into();
        self
    }

    /// Sets the secret that unlocks encrypted images.
    #[cfg(feature = "qemu-nbd")]
    #[must_use]
    pub fn secret(mut self, secret: impl Into<Option<Secret>>) -> Self {
        self.secret = secret.into();
        self
    }
}

/// The reader of the format of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reader {
    /// By this library if it can, and otherwise by a program.
    #[default]
    Auto,
    /// By `qemu-nbd`, for all formats except raw. For comparisons.
    Qemu,
}

names!(Reader { Auto = "auto", Qemu = "qemu" });

/// Use of the page cache for host files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cache {
    /// Local regular files are read through the page cache, except for large files that it does not
    /// hold yet. Block devices and files of network file systems, which another host may have written
    /// to, are read with direct I/O.
    #[default]
    Auto,
    /// All files are read through the page cache.
    Yes,
    /// No file is read through the page cache, except where direct I/O is not possible.
    No,
}

names!(Cache { Auto = "auto", Yes = "yes", No = "no" });

/// Files that may be opened because an image names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Follow {
    /// Regular files beneath the folder of the image that names them. Symbolic links are followed as
    /// long as their targets lie there. The folder is that of the path by which the image was opened.
    #[default]
    Beneath,
    /// Any regular file and any block device.
    Any,
    /// No files.
    None,
}

names!(Follow { Beneath = "beneath", Any = "any", None = "none" });

/// Size of the content of a vpc (vhd) image.
///
/// Such an image records two sizes. Virtual PC shows its guests the geometry, Hyper-V the current size.
/// The parent of a differencing image always has the current size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum VpcSize {
    /// The size that QEMU 10.0 uses: the geometry if Virtual PC or QEMU without `force_size` created the image, and the
    /// current size otherwise. Earlier versions of QEMU use the geometry of more images.
    #[default]
    Auto,
    /// Cylinders x heads x sectors, and the current size if the geometry is the largest one.
    Geometry,
    /// The size in bytes that the footer states.
    Current,
}

names!(VpcSize { Auto = "auto", Geometry = "geometry", Current = "current" });

/// Default number of bytes by which a compressed file, or an image that qemu-nbd reads, may have more content than it
/// stores. They take about half an hour to read through qemu-nbd.
/// Limit in bytes.
#[cfg(any(feature = "compressed", feature = "qemu-nbd"))]
pub(crate) const DEFAULT_MAX_ZEROS: u64 = 1 << 40;
