//! Copies to files and block devices of this host.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use blkimage::{Cache, Format, Image, OpenOptions, lock_for_reading, lock_for_writing};

use super::{Destination, Syncer, Zeroing};
use crate::Error;

/// A regular file or a block device, open for reading and writing.
#[derive(Debug)]
pub struct Local {
    file: File,
    name: PathBuf,
    /// Size of the blocks of a device in bytes. `None` for a file.
    device: Option<u64>,
    cannot_zero: AtomicBool,
}

impl Local {
    /// Copies to this file, which has `name` in errors. What it holds is left alone until the copy begins.
    ///
    /// # Errors
    ///
    /// Fails if it is neither a regular file nor a block device.
    pub fn new(file: File, name: &Path) -> io::Result<Self> {
        let kind = file.metadata()?.file_type();
        let device = match () {
            () if kind.is_block_device() => Some(blksys::block_size(&file)?),
            () if kind.is_file() => None,
            () => return Err(io::Error::other("is neither a regular file nor a block device")),
        };
        Ok(Self { file, name: name.to_owned(), device, cannot_zero: AtomicBool::new(false) })
    }

    fn punch(&self, offset: u64, length: u64, how: Zeroing) -> io::Result<bool> {
        // Zeros of a device are written by the device or by the kernel, and may be deallocated.
        match (self.device, how) {
            (Some(_), Zeroing::Any) => blksys::write_zeros(&self.file, offset, length),
            _ => blksys::punch_hole(&self.file, offset, length),
        }
    }

    /// Keeps every QEMU from opening the destination while it is written, and from writing to it until this is dropped.
    ///
    /// # Errors
    ///
    /// Fails if another process may write to it or relies on what it holds, as far as its locks tell, if it is mounted, or cannot
    /// be opened for reading.
    pub fn claim(&self) -> blkimage::Result<()> {
        self.open(&OpenOptions::new())?;
        lock_for_writing(&self.file, &self.name)
    }

    fn write_zeros(&self, mut offset: u64, end: u64) -> io::Result<()> {
        while offset < end {
            let length = (end - offset).min(ZEROS.len() as u64);
            self.file.write_all_at(&ZEROS[..length as usize], offset)?;
            offset += length;
        }
        Ok(())
    }

    fn open(&self, options: &OpenOptions) -> blkimage::Result<Image> {
        let error = |error| {
            blkimage::Error::new(blkimage::ErrorKind::Open, &self.name, "cannot open")
                .because(error)
        };
        options.clone().format(Format::Raw).open_file(
            self.file.try_clone().map_err(error)?,
            &self.name,
            0,
        )
    }
}

impl Destination for Local {
    fn begin(&mut self, size: Option<u64>, keeps: bool) -> Result<bool, Error> {
        let failed = |source| Error::Destination { what: "cannot be resized", source };
        if self.device.is_some() {
            let found = self.open(&OpenOptions::new().force_share(true));
            let found = found.map_err(|error| Error::ReadBack(error.into()))?.virtual_size();
            return match size {
                Some(needed) if found < needed => Err(Error::Small { size: found, needed }),
                _ => Ok(false),
            };
        }
        // Fails before anything is lost if there can be no file of this size.
        if let Some(size) = size {
            self.file.set_len(size).map_err(failed)?;
        }
        if !keeps {
            self.file.set_len(0).map_err(failed)?;
            self.file.set_len(size.unwrap_or(0)).map_err(failed)?;
        }
        Ok(!keeps)
    }

    fn can_resize(&self) -> bool {
        self.device.is_none()
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn zero(&self, offset: u64, length: u64, how: Zeroing) -> io::Result<bool> {
        if self.cannot_zero.load(Relaxed) {
            return Ok(false);
        }
        let unit = self.device.unwrap_or(1);
        let (first, last) = (offset.next_multiple_of(unit), (offset + length) / unit * unit);
        if first >= last {
            return Ok(false);
        }
        if !self.punch(first, last - first, how)? {
            self.cannot_zero.store(true, Relaxed);
            return Ok(false);
        }
        self.write_zeros(offset, first)?;
        self.write_zeros(last, offset + length)?;
        Ok(true)
    }

    fn share(&self, file: BorrowedFd<'_>) -> bool {
        self.device.is_none() && blksys::share_storage(file, &self.file)
    }

    fn end(&self, size: u64) -> io::Result<()> {
        if self.device.is_none() {
            self.file.set_len(size)?;
        }
        self.file.sync_all()
    }

    fn syncer(&self) -> io::Result<Syncer> {
        let file = self.file.try_clone()?;
        Ok(Box::new(move || file.sync_all()))
    }

    fn current(&self) -> blkimage::Result<Image> {
        // What the page cache holds may not be what is stored.
        let _ = self.file.sync_data();
        blksys::drop_cached(&self.file);
        self.open(&OpenOptions::new().force_share(true).cache(Cache::Yes))
    }

    fn read_back(&self) -> blkimage::Result<Image> {
        lock_for_reading(&self.file);
        // Some file systems read through the page cache although they accept O_DIRECT.
        blksys::drop_cached(&self.file);
        self.open(&OpenOptions::new().cache(if blksys::file_system(&self.file).is_memory {
            Cache::Yes
        } else {
            Cache::No
        }))
    }
}

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
