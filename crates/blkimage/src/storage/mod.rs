//! The host bytes of one file, from which formats read.

pub(crate) mod ahead;
pub(crate) mod local;
#[cfg(feature = "nbd")]
pub(crate) mod nbd;
pub(crate) mod part;
mod read_method;
pub(crate) mod remote;
mod served_object;
#[cfg(feature = "http")]
pub(crate) mod web;

use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub use self::read_method::ReadMethod;
pub use self::served_object::ServedObject;

use crate::error::{Error, ErrorKind, Result};
use crate::hint::Hint;
use crate::holes::Holes;
use crate::warnings::Warning;
use crate::{Dirty, Extent, ExtentKind, FileId, Lent, Origin, OriginKind, VolumeId};

/// The bytes of one file, in any kind of storage.
pub trait Storage: Send + Sync {
    /// Returns the size in bytes when the storage was opened.
    fn size(&self) -> u64;

    /// Reads at most `buf.len()` bytes from `offset` on. Returns 0 at the end of the file.
    ///
    /// # Errors
    ///
    /// Fails if the bytes cannot be read. After [`io::ErrorKind::Interrupted`], the caller tries again.
    fn read_at_most(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Fills `buf` from `offset` on.
    ///
    /// # Errors
    ///
    /// Fails with [`io::ErrorKind::UnexpectedEof`] if the file ends early, and if the bytes cannot be read.
    fn read_exact_at(&self, mut buf: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buf.is_empty() {
            match self.read_at_most(buf, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    buf = buf.get_mut(count..).ok_or(io::ErrorKind::InvalidData)?;
                    offset += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Lends the `length` bytes from `offset` on if they are in memory. May lend fewer.
    fn lend(&self, offset: u64, length: usize) -> Option<Lent> {
        let _ = (offset, length);
        None
    }

    /// Returns the extent that begins at `offset`, at most `limit` bytes long. The range is within
    /// [`size`](Self::size). If the kind is unknown, returns [`ExtentKind::Data`].
    ///
    /// Offsets come in any order, because an image may store its content in any order.
    ///
    /// # Errors
    ///
    /// Fails if the bytes no longer exist.
    fn extent(&self, offset: u64, limit: u64) -> io::Result<Extent> {
        Ok(Extent { offset, length: limit, kind: ExtentKind::Data })
    }

    /// Returns the extents that a bitmap of changed blocks marks, sorted and not adjacent. `None` without a bitmap.
    ///
    /// # Errors
    ///
    /// Fails if the bitmap cannot be read, or has too many extents.
    fn dirty_extents(&self) -> io::Result<Option<Vec<Range<u64>>>> {
        Ok(None)
    }

    /// Checks what can only be checked once bytes were read, such as the checksum at the end of a compressed
    /// stream, or the digest of a blob.
    /// Called after the last read.
    ///
    /// # Errors
    ///
    /// Fails if bytes that were read before are invalid.
    fn verify(&self) -> io::Result<()> {
        Ok(())
    }

    /// Returns whether bytes are read from the start to the end of the storage only.
    fn reads_forward(&self) -> bool {
        false
    }

    /// Returns the reason if the bytes may have changed since the storage was opened.
    fn changed(&self) -> Option<String> {
        None
    }

    /// Returns the open file of this host that holds exactly these bytes, if any. It may be
    /// passed to other programs.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Returns the identity of the file of this host that holds exactly these bytes at the same
    /// offsets, if any. Bytes of storages with the same identity are equal, and need not be read to be
    /// compared. A storage that wraps another one and returns its bytes may forward this.
    fn file_id(&self) -> Option<FileId> {
        None
    }

    /// Returns the volume on which the file of [`file_id`](Self::file_id) may share extents with other files, if any.
    fn volume(&self) -> Option<VolumeId> {
        None
    }

    /// Returns where the bytes of the file are on its volume, from `offset` on, for `limit` bytes or fewer: one run
    /// after the other, at least one. The range is within [`size`](Self::size). See
    /// [`Source::volume_origins`](crate::Source::volume_origins). By default, nothing is known.
    fn volume_origins(&self, offset: u64, limit: u64, dirty: Dirty) -> Vec<Origin> {
        let _ = dirty;
        vec![Origin { offset, length: limit, kind: OriginKind::Other }]
    }

    /// Returns the granularity of cheap reads in bytes, a power of two.
    fn granularity(&self) -> u64 {
        1
    }

    /// Returns the number of reads that should be in flight for full speed: 1 if a read keeps its
    /// thread busy, more if it waits for a remote server.
    fn queue_depth(&self) -> usize {
        1
    }

    /// Announces that these bytes will be read once, soon, and in about the order of the calls. Never blocks.
    ///
    /// A storage far away requests them at once, so that many requests are in flight although reads block. Bytes may be read
    /// without having been announced, and some may be announced again or not be read. By default, does nothing.
    fn will_need(&self, offset: u64, length: u64) {
        let _ = (offset, length);
    }

    /// Returns the number of bytes that should be announced ahead of reads. It may change while bytes are read, but 0 means
    /// that announcing never has an effect.
    fn read_ahead(&self) -> u64 {
        0
    }

    /// Bytes that the content takes where it is stored; `None` if that is unknown.
    fn stored(&self) -> Option<u64> {
        None
    }

    /// Returns the method of reading the content.
    fn read_method(&self) -> ReadMethod {
        ReadMethod::Other
    }

    /// Returns what is known of the object on an HTTP or S3 server that holds the content. `None` for any other storage.
    fn object(&self) -> Option<ServedObject> {
        None
    }
}

impl<S: Storage + ?Sized> Storage for Arc<S> {
    fn size(&self) -> u64 {
        (**self).size()
    }

    fn read_at_most(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        (**self).read_at_most(buf, offset)
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        (**self).read_exact_at(buf, offset)
    }

    fn lend(&self, offset: u64, length: usize) -> Option<Lent> {
        (**self).lend(offset, length)
    }

    fn extent(&self, offset: u64, limit: u64) -> io::Result<Extent> {
        (**self).extent(offset, limit)
    }

    fn dirty_extents(&self) -> io::Result<Option<Vec<Range<u64>>>> {
        (**self).dirty_extents()
    }

    fn verify(&self) -> io::Result<()> {
        (**self).verify()
    }

    fn reads_forward(&self) -> bool {
        (**self).reads_forward()
    }

    fn changed(&self) -> Option<String> {
        (**self).changed()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        (**self).descriptor()
    }

    fn file_id(&self) -> Option<FileId> {
        (**self).file_id()
    }

    fn volume(&self) -> Option<VolumeId> {
        (**self).volume()
    }

    fn volume_origins(&self, offset: u64, limit: u64, dirty: Dirty) -> Vec<Origin> {
        (**self).volume_origins(offset, limit, dirty)
    }

    fn granularity(&self) -> u64 {
        (**self).granularity()
    }

    fn queue_depth(&self) -> usize {
        (**self).queue_depth()
    }

    fn will_need(&self, offset: u64, length: u64) {
        (**self).will_need(offset, length);
    }

    fn read_ahead(&self) -> u64 {
        (**self).read_ahead()
    }

    fn stored(&self) -> Option<u64> {
        (**self).stored()
    }

    fn read_method(&self) -> ReadMethod {
        (**self).read_method()
    }

    fn object(&self) -> Option<ServedObject> {
        (**self).object()
    }
}

/// A storage in memory.
#[derive(Clone, Debug, Default)]
pub struct Memory(pub Vec<u8>);

impl Storage for Memory {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at_most(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.0.len());
        let rest = &self.0[start..];
        let count = rest.len().min(buf.len());
        buf[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

/// One file of a chain: its name and its storage. Counts the bytes that are read, and treats holes as
/// the options say.
pub(crate) struct HostFile {
    name: PathBuf,
    storage: Box<dyn Storage>,
    holes: Holes,
    bytes_read: Arc<AtomicU64>,
}

impl HostFile {
    pub fn new(name: PathBuf, storage: Box<dyn Storage>, bytes_read: Arc<AtomicU64>) -> Self {
        Self { name, storage, holes: Holes::Trust, bytes_read }
    }

    #[must_use]
    pub fn with_holes(self, holes: Holes) -> Self {
        Self { holes, ..self }
    }

    pub fn name(&self) -> &Path {
        &self.name
    }

    pub fn size(&self) -> u64 {
        self.storage.size()
    }

    /// Returns the identity of the file. `None` if it has none, or if all of its bytes have to be read.
    pub fn id(&self) -> Option<FileId> {
        self.storage.file_id().filter(|_| self.holes != Holes::Verify)
    }

    /// Returns the volume on which the file may share extents. `None` if there is none, or what the file system says of
    /// extents is not trusted.
    pub fn volume(&self) -> Option<VolumeId> {
        self.storage.volume().filter(|_| self.holes == Holes::Trust)
    }

    /// Returns the places of bytes on the [`volume`](Self::volume), as [`Storage::volume_origins`] does.
    pub fn volume_origins(&self, offset: u64, limit: u64, dirty: Dirty) -> Vec<Origin> {
        let origins = self.storage.volume_origins(offset, limit, dirty);
        let mut end = offset;
        let is_in_order = origins.iter().all(|origin| {
            let follows = origin.offset == end && origin.length > 0;
            end = origin.end();
            follows && end - offset <= limit
        });
        match is_in_order && !origins.is_empty() {
            true => origins,
            false => vec![Origin { offset, length: limit, kind: OriginKind::Other }],
        }
    }

    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.storage.descriptor()
    }

    pub fn granularity(&self) -> u64 {
        self.storage.granularity()
    }

    pub fn queue_depth(&self) -> usize {
        self.storage.queue_depth()
    }

    /// Announces reads as [`Storage::will_need`] does. Ignores what is past the end.
    pub fn will_need(&self, offset: u64, length: u64) {
        let length = length.min(self.size().saturating_sub(offset));
        if length > 0 {
            self.storage.will_need(offset, length);
        }
    }

    pub fn read_ahead(&self) -> u64 {
        self.storage.read_ahead()
    }

    pub fn stored(&self) -> Option<u64> {
        self.storage.stored()
    }

    pub fn read_method(&self) -> ReadMethod {
        self.storage.read_method()
    }

    pub fn object(&self) -> Option<ServedObject> {
        self.storage.object()
    }

    /// Fills all of `buf`, or fails.
    pub fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        self.storage.read_exact_at(buf, offset).map_err(|error| self.read_error(error, offset))?;
        self.bytes_read.fetch_add(buf.len() as u64, Relaxed);
        if self.holes == Holes::Verify { self.verify_holes(buf, offset) } else { Ok(()) }
    }

    /// Lends bytes whose holes need not be verified.
    pub fn lend(&self, offset: u64, length: usize) -> Option<Lent> {
        if self.holes == Holes::Verify {
            return None;
        }
        let lent = self.storage.lend(offset, length)?;
        self.bytes_read.fetch_add(lent.as_ref().len() as u64, Relaxed);
        Some(lent)
    }

    /// Returns the first `limit` bytes of the file, or all of a shorter file.
    pub fn read_head(&self, limit: usize) -> Result<Vec<u8>> {
        let length = self.size().min(limit as u64) as usize;
        let mut head = vec![0; length];
        self.read_exact_at(&mut head, 0)?;
        Ok(head)
    }

    /// Returns the extent that begins at `offset`, at most `limit` bytes long. The range is within the file. Without
    /// trust in holes, everything is data.
    pub fn extent(&self, offset: u64, limit: u64) -> Result<Extent> {
        match self.holes {
            Holes::Trust => self.reported_extent(offset, limit),
            Holes::Verify | Holes::Ignore => {
                Ok(Extent { offset, length: limit, kind: ExtentKind::Data })
            }
        }
    }

    fn reported_extent(&self, offset: u64, limit: u64) -> Result<Extent> {
        let extent = self.storage.extent(offset, limit).map_err(|e| self.read_error(e, offset))?;
        if extent.offset != offset || extent.length == 0 || extent.length > limit {
            return Ok(Extent { offset, length: limit, kind: ExtentKind::Data });
        }
        Ok(extent)
    }

    /// Returns the extents that a bitmap marks, like [`Storage::dirty_extents`].
    pub fn dirty_extents(&self) -> Result<Option<Vec<Range<u64>>>> {
        self.storage.dirty_extents().map_err(|error| self.read_error(error, 0))
    }

    /// Fails if `buf`, read from `offset` on, is not zero in a hole.
    fn verify_holes(&self, buf: &[u8], offset: u64) -> Result<()> {
        // A file that grew may have more, about which the storage is not asked.
        let length = self.size().saturating_sub(offset).min(buf.len() as u64) as usize;
        let mut done = 0;
        while done < length {
            let start = offset + done as u64;
            let extent = self.reported_extent(start, (length - done) as u64)?;
            let bytes = &buf[done..done + extent.length as usize];
            if extent.kind == ExtentKind::Zero
                && let Some(position) = bytes.iter().position(|byte| *byte != 0)
            {
                let reason = "the file system reports a hole and its content is not zero";
                return Err(self.error(ErrorKind::Holes, reason).at(start + position as u64));
            }
            done += bytes.len();
        }
        Ok(())
    }

    /// Returns whether the file is read from start to end only.
    pub fn reads_forward(&self) -> bool {
        self.storage.reads_forward()
    }

    pub fn check_unchanged(&self) -> Result<()> {
        // A change meanwhile is the reason why bytes are invalid.
        let verified = self.verify();
        match self.storage.changed() {
            Some(reason) => Err(self.error(ErrorKind::Changed, reason)),
            None => verified,
        }
    }

    /// Fails if bytes that were read are invalid, as [`Storage::verify`] does.
    pub fn verify(&self) -> Result<()> {
        self.storage.verify().map_err(|error| read_error(&self.name, error, None))
    }

    pub fn error(&self, kind: ErrorKind, reason: impl Into<String>) -> Error {
        Error::new(kind, &self.name, reason)
    }

    pub fn warning(&self, reason: impl Into<String>) -> Warning {
        Warning::new(&self.name, reason)
    }

    pub fn corrupt(&self, reason: impl Into<String>) -> Error {
        self.error(ErrorKind::Corrupt, reason)
    }

    fn read_error(&self, error: io::Error, offset: u64) -> Error {
        read_error(&self.name, error, Some(offset))
    }
}

/// The error of a storage whose bytes do not match a digest that was stated.
#[derive(Debug)]
pub(crate) struct DigestMismatch(pub String);

impl fmt::Display for DigestMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DigestMismatch {}

/// Returns the error of the file `name` for the error of reading its storage.
pub(crate) fn read_error(name: &Path, error: io::Error, offset: Option<u64>) -> Error {
    use io::ErrorKind::{FileTooLarge, InvalidData, NotSeekable, OutOfMemory, Unsupported};
    #[cfg(feature = "http")]
    if let Some(found) = web::of_read(name, &error) {
        return offset.into_iter().fold(found, Error::at);
    }
    if error.kind() == io::ErrorKind::UnexpectedEof {
        let reason = "file was truncated while it was read";
        let error = Error::new(ErrorKind::Truncated, name, reason);
        return offset.into_iter().fold(error, Error::at);
    }
    // Storages that decode say what is wrong. The system's errors have no such text.
    let new = |kind, error: &io::Error| Error::new(kind, name, error.to_string());
    match error.kind() {
        _ if error.get_ref().is_none() => {}
        InvalidData
            if error
                .get_ref()
                .is_some_and(<dyn std::error::Error + Send + Sync>::is::<DigestMismatch>) =>
        {
            return new(ErrorKind::Corrupt, &error).of_mismatch();
        }
        InvalidData => return new(ErrorKind::Corrupt, &error),
        NotSeekable | Unsupported => return new(ErrorKind::Unsupported, &error),
        OutOfMemory => return new(ErrorKind::Size, &error).with_hint(Hint::MaxMemory),
        FileTooLarge => return new(ErrorKind::Size, &error).with_hint(Hint::MaxZeros),
        _ => {}
    }
    let failed = Error::new(ErrorKind::Io, name, "cannot be read").because(error);
    offset.into_iter().fold(failed, Error::at)
}
