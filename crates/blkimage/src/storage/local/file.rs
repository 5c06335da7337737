//! A file or block device of this host: reads, locks and change detection.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::access::Access;
use super::device::Device;
use super::direct::Bounce;
use super::holes::Holes;
use super::page_cache_bypass::PageCacheBypass;
use super::{stamps, volume};
use crate::buffer::ALIGNMENT;
use crate::error::{Error, ErrorKind, Result, escaped};
use crate::hint::Hint;
use crate::options::Cache;
use crate::qemu_locks;
use crate::storage::local::mapped::Windows;
use crate::storage::{ReadMethod, Storage};
use crate::sys::{self, Found, NodeType, Stamp};
use crate::{Dirty, Extent, ExtentKind, FileId, Lent, Origin, OriginKind, VolumeId};

/// A regular file or a block device.
pub(crate) struct LocalFile {
    file: File,
    size: u64,
    stamp: Stamp,
    device: Option<Device>,
    access: Access,
    is_direct: AtomicBool,
    bounce: Bounce,
    holes: Option<Holes>,
    windows: Windows,
    bypass: Option<PageCacheBypass>,
    /// Set by the first query.
    volume: OnceLock<Option<VolumeId>>,
}

impl LocalFile {
    pub fn new(file: File, name: &Path, access: Access) -> Result<Self> {
        let open_error = |e: io::Error| Error::new(ErrorKind::Open, name, "cannot open").because(e);
        let stamp = sys::stamp(&file).map_err(open_error)?;
        check_type(stamp.node_type, name)?;
        let file_system = sys::file_system(&file);
        let stamp = stamps::settled(&file, stamp, name, access, file_system)?;
        if !access.force_share && qemu_locks::has_writer(&file) {
            return Err(Error::new(ErrorKind::InUse, name, qemu_locks::MAY_WRITE)
                .with_hint(Hint::ForceShare));
        }
        let is_device = stamp.node_type == NodeType::BlockDevice;
        let size =
            if is_device { sys::device_size(&file).map_err(open_error)? } else { stamp.size };
        let device = (is_device && !access.force_share).then(|| Device::new(&file, stamp.device));
        let is_large = !is_device && !access.force_share && size >= MIN_FILE_SYSTEM;
        let writer = match &device {
            Some(device) => device.writer().map(str::to_owned),
            None => is_large
                .then(|| sys::writer_of_file(stamp.identity))
                .flatten()
                .map(|reason| escaped(reason.as_bytes())),
        };
        if let Some(reason) = writer {
            return Err(Error::new(ErrorKind::InUse, name, reason).with_hint(Hint::ForceShare));
        }
        // A file of procfs or sysfs, whose content is generated on read, may have no size.
        if size == 0 && file.read_at(&mut [0], 0).map_err(open_error)? > 0 {
            let reason = "has content and no size: it can only be read as a pipe";
            return Err(Error::new(ErrorKind::FileType, name, reason));
        }
        let wants_direct = match access.cache {
            Cache::Auto => is_device || file_system.is_network,
            Cache::Yes => false,
            Cache::No => true,
        };
        let is_direct = wants_direct && !access.shared && sys::set_direct(&file);
        let may_bypass = access.cache == Cache::Auto && !wants_direct && !access.shared;
        let bypass = (may_bypass && file_system.is_disk)
            .then(|| PageCacheBypass::new(&file, size))
            .flatten();
        if !is_direct && bypass.is_none() && !access.shared && size >= MIN_SEQUENTIAL {
            sys::advise_sequential(&file);
        }
        let holes = (!is_device && !access.shared).then(|| Holes::new(&file, size, file_system));
        let is_direct = AtomicBool::new(is_direct);
        Ok(Self {
            file,
            size,
            stamp,
            device,
            access,
            is_direct,
            bounce: Bounce::default(),
            holes,
            windows: Windows::default(),
            bypass,
            volume: OnceLock::new(),
        })
    }

    /// Returns the device and inode, which identify the file.
    pub fn identity(&self) -> (u64, u64) {
        self.stamp.identity
    }

    /// Returns warnings for the user about a file that can be read.
    pub fn warnings(&self) -> &[String] {
        self.device.as_ref().map_or(&[], Device::warnings)
    }
}

impl Storage for LocalFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at_most(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        if self.is_direct.load(Relaxed) {
            match self.bounce.read_at_most(&self.file, buf, offset) {
                // Some file systems accept the flag and refuse the reads.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    sys::clear_direct(&self.file)?;
                    self.is_direct.store(false, Relaxed);
                }
                result => return result,
            }
        }
        let bypass = self.bypass.as_ref();
        let past_cache = bypass.and_then(|bypass| bypass.read_at_most(&self.file, buf, offset));
        past_cache.unwrap_or_else(|| self.file.read_at(buf, offset))
    }

    /// Lends nothing with `force_share`. Content that may change is copied, so that every
    /// byte is read only once.
    fn lend(&self, offset: u64, length: usize) -> Option<Lent> {
        if self.access.force_share || self.is_direct.load(Relaxed) {
            return None;
        }
        self.windows.lend(&self.file, self.size, offset, length)
    }

    fn stored(&self) -> Option<u64> {
        match self.stamp.node_type {
            NodeType::BlockDevice => Some(self.size),
            _ => sys::stored(&self.file),
        }
    }

    fn read_method(&self) -> ReadMethod {
        match (self.is_direct.load(Relaxed), &self.bypass) {
            (true, _) => ReadMethod::Direct,
            (false, Some(_)) => ReadMethod::ResidentPageCache,
            (false, None) => ReadMethod::PageCache,
        }
    }

    fn extent(&self, offset: u64, limit: u64) -> io::Result<Extent> {
        let Some(holes) = &self.holes else {
            return Ok(Extent { offset, length: limit, kind: ExtentKind::Data });
        };
        let extent = holes.extent(&self.file, self.size, offset)?;
        Ok(Extent { length: limit.min(extent.length), ..extent })
    }

    fn changed(&self) -> Option<String> {
        if self.access.force_share {
            return None;
        }
        let now = match sys::stamp(&self.file) {
            Ok(now) => now,
            Err(error) => return Some(format!("cannot tell whether it changed: {error}")),
        };
        let is_same = if now.node_type == NodeType::BlockDevice {
            now.identity == self.stamp.identity
                && sys::device_size(&self.file).is_ok_and(|size| size == self.size)
        } else {
            now == self.stamp
        };
        if !is_same {
            return Some("changed while it was read".into());
        }
        if self.device.as_ref().is_some_and(|device| device.is_written(&self.file)) {
            return Some("was written to while it was read".into());
        }
        qemu_locks::has_writer(&self.file)
            .then(|| "was opened for writing by another process while it was read".into())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }

    fn file_id(&self) -> Option<FileId> {
        Some(FileId::new(self.stamp))
    }

    /// Returns none with `force_share`, because a place on the volume proves nothing about a file that may change.
    fn volume(&self) -> Option<VolumeId> {
        let may_share = self.stamp.node_type == NodeType::Regular && !self.access.force_share;
        let find = || volume::of(&self.file, self.stamp);
        *self.volume.get_or_init(|| may_share.then(find).flatten())
    }

    fn volume_origins(&self, offset: u64, limit: u64, dirty: Dirty) -> Vec<Origin> {
        match self.volume() {
            Some(id) => volume::origins(id, &self.file, offset, limit, dirty),
            None => vec![Origin { offset, length: limit, kind: OriginKind::Other }],
        }
    }

    fn granularity(&self) -> u64 {
        if self.is_direct.load(Relaxed) { ALIGNMENT as u64 } else { 1 }
    }
}

/// Fails unless the file is a regular file or a block device.
pub(crate) fn check_type(node_type: NodeType, name: &Path) -> Result<()> {
    let (kind, reason) = match node_type {
        NodeType::Regular | NodeType::BlockDevice => return Ok(()),
        NodeType::Directory => (ErrorKind::Directory, "is a directory"),
        NodeType::Pipe => (ErrorKind::Pipe, "is a pipe"),
        NodeType::Other => (ErrorKind::FileType, "is neither a regular file nor a block device"),
    };
    Err(Error::new(kind, name, reason))
}

/// Looks up the file at `path` without opening it.
pub(crate) fn find(path: &Path) -> Result<Found<'_>> {
    let error = |e| Error::new(ErrorKind::Open, path, "cannot open").because(e);
    let found = sys::find(path).map_err(error)?;
    check_type(found.stamp.node_type, path)?;
    if found.is_made_up() {
        let reason = "is generated by the kernel when it is read: read it through a pipe";
        return Err(Error::new(ErrorKind::FileType, path, reason));
    }
    Ok(found)
}

/// Minimum size of a file whose other uses are looked up. A smaller one holds no mounted file system,
/// and reading it is faster than the lookup.
const MIN_FILE_SYSTEM: u64 = 1 << 20;

/// Minimum size of a file for the advice. The default read-ahead covers smaller ones.
const MIN_SEQUENTIAL: u64 = 1 << 20;
