//! The one entry point: from a path, a descriptor or memory to an [`Image`].
//!
//! The backing chain is followed here, in a loop with a limit, and nowhere else.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::error::{Error, ErrorKind, Result, excerpt};
use crate::formats::qcow2::{Header, Qcow2};
use crate::formats::raw::Raw;
use crate::formats::served::{self, Export, Served};
use crate::image::{Image, Layer};
use crate::options::{Follow, OpenOptions};
use crate::probe::{self, Format};
use crate::references::{self, Folder, Reference};
use crate::storage::local::file::{Access, LocalFile, check_type};
use crate::storage::nbd::Nbd;
use crate::storage::{HostFile, Storage};
use crate::sys::{self, Found, NodeType};

impl OpenOptions {
    /// Opens the image at `path`, a regular file or a block device, and everything it refers to.
    ///
    /// Nothing else is opened, also where a file is replaced at the same time: neither a FIFO nor a
    /// character device, nor a file that the kernel makes up as it is read, as in procfs.
    pub fn open(&self, path: &Path) -> Result<Image> {
        let mut chain = Chain::new(self);
        let found = chain.find(path)?;
        let file = chain.open_found(&found, path)?;
        chain.finish(file, Folder::Of(path.to_path_buf()), 0)
    }

    /// As [`open`](Self::open) if the image is raw, and so refers to no other file; None if it is not, or
    /// if `accepts` refuses its device and inode or its size. A file that is refused is not opened.
    pub fn open_if_raw(
        &self,
        path: &Path,
        accepts: impl FnOnce((u64, u64), u64) -> bool,
    ) -> Result<Option<Image>> {
        let mut chain = Chain::new(self);
        let found = chain.find(path)?;
        if !accepts(found.stamp.identity, found.stamp.size) {
            return Ok(None);
        }
        let file = chain.open_found(&found, path)?;
        match chain.top_format(&file, 0)? {
            Format::Raw => chain.finish_as(Format::Raw, file, Folder::Unknown, 0).map(Some),
            _ => Ok(None),
        }
    }

    /// Opens the image in an open descriptor, for example a standard input that is a file.
    ///
    /// `name` is what errors call it. The content begins at `start`, and is raw then unless that is
    /// 0. References start at the folder of the path by which the system knows the descriptor, if
    /// that still leads to the same file. The descriptor's offset is not moved.
    pub fn open_file(&self, file: File, name: &Path, start: u64) -> Result<Image> {
        let error = |e| Error::new(ErrorKind::Open, name, "cannot open").because(e);
        let stamp = sys::stamp(&file).map_err(error)?;
        check_type(stamp.node_type, name)?;
        let leads_here = |path: &PathBuf| {
            sys::stamp_of(path).is_ok_and(|found| {
                found.node_type == NodeType::Regular && found.identity == stamp.identity
            })
        };
        let folder = match sys::path_of(&file).ok().filter(leads_here) {
            Some(path) => Folder::Of(path),
            None => Folder::Unknown,
        };
        let mut chain = Chain::new(self);
        let file = match sys::reopen(&file) {
            Some(own) => chain.disk(own, name, false)?,
            None => chain.disk(file, name, true)?,
        };
        chain.finish(file, folder, start)
    }

    /// Opens the export of an NBD server. It is raw unless [`OpenOptions::format`] says otherwise: a
    /// guest can write any header into it. It cannot refer to other files.
    pub fn open_uri(&self, uri: &str) -> Result<Image> {
        let export = Nbd::open(uri, &self.nbd)?;
        let format = Some(self.format.unwrap_or(Format::Raw));
        Self { format, ..self.clone() }.open_storage(Box::new(export), uri)
    }

    /// Opens an image in any storage. It cannot refer to other files.
    pub fn open_storage(&self, storage: Box<dyn Storage>, name: &str) -> Result<Image> {
        let options = Self { follow: Follow::None, ..self.clone() };
        let chain = Chain::new(&options);
        let file = HostFile::new(name.into(), storage, chain.bytes_read.clone());
        chain.finish(Arc::new(file), Folder::Unknown, 0)
    }
}

/// A chain as it is being opened.
struct Chain<'a> {
    options: &'a OpenOptions,
    layers: Vec<Layer>,
    warnings: Vec<String>,
    /// Device and inode of every image of the chain.
    identities: Vec<(u64, u64)>,
    bytes_read: Arc<AtomicU64>,
}

impl<'a> Chain<'a> {
    fn new(options: &'a OpenOptions) -> Self {
        let (layers, warnings, identities) = Default::default();
        Self { options, layers, warnings, identities, bytes_read: Arc::default() }
    }

    /// The file that a path names, which is not opened yet.
    fn find<'b>(&self, path: &'b Path) -> Result<Found<'b>> {
        let error = |e| Error::new(ErrorKind::Open, path, "cannot open").because(e);
        let found = sys::find(path).map_err(error)?;
        check_type(found.stamp.node_type, path)?;
        if found.is_made_up() {
            let reason = "is made up by the kernel as it is read: it can only be read as a pipe";
            return Err(Error::new(ErrorKind::FileType, path, reason));
        }
        Ok(found)
    }

    fn open_found(&mut self, found: &Found<'_>, path: &Path) -> Result<Arc<HostFile>> {
        let error = |e| Error::new(ErrorKind::Open, path, "cannot open").because(e);
        self.disk(found.open().map_err(error)?, path, false)
    }

    /// A file of this host as an image of the chain.
    fn disk(&mut self, file: File, name: &Path, shared: bool) -> Result<Arc<HostFile>> {
        let OpenOptions { cache, force_share, .. } = *self.options;
        let disk = LocalFile::new(file, name, Access { cache, force_share, shared })?;
        if self.identities.contains(&disk.identity()) {
            let reason = "is a part of its own backing chain";
            return Err(Error::new(ErrorKind::Reference, name, reason));
        }
        let warnings = disk.warnings().iter();
        let warnings = warnings.map(|it| Error::new(ErrorKind::InUse, name, it).to_string());
        self.warnings.extend(warnings);
        self.identities.push(disk.identity());
        Ok(Arc::new(HostFile::new(name.into(), Box::new(disk), self.bytes_read.clone())))
    }

    fn finish(self, file: Arc<HostFile>, folder: Folder, start: u64) -> Result<Image> {
        let format = self.top_format(&file, start)?;
        self.finish_as(format, file, folder, start)
    }

    fn finish_as(
        mut self,
        format: Format,
        file: Arc<HostFile>,
        folder: Folder,
        start: u64,
    ) -> Result<Image> {
        let top = format;
        let mut next = Some((file, folder, format));
        while let Some((file, folder, format)) = next.take() {
            self.check_length(&file, 0)?;
            next = match format {
                Format::Raw => {
                    let start = if self.layers.is_empty() { start } else { 0 };
                    self.layers.push(Layer::Raw(Raw::new(file, start, self.options.holes)));
                    None
                }
                Format::Qcow2 => self.push_qcow2(&file, &folder)?,
                other => {
                    self.push_served(&file, folder, other)?;
                    None
                }
            };
        }
        Ok(Image::new(self.layers, top, self.warnings, self.bytes_read))
    }

    /// Fails if there is no place for one more image beneath the layers and `others`.
    fn check_length(&self, file: &HostFile, others: usize) -> Result<()> {
        if self.layers.len() + others < MAX_CHAIN {
            return Ok(());
        }
        let reason = format!("backing chain is longer than {MAX_CHAIN} files");
        Err(file.error(ErrorKind::Reference, reason))
    }

    fn top_format(&self, file: &HostFile, start: u64) -> Result<Format> {
        let wanted = self.options.format;
        let format = match wanted {
            Some(format) => format,
            None if start == 0 => probe::probe_file(file)?,
            None => probe::probe_at(file, start)?,
        };
        if start != 0 && format != Format::Raw {
            let reason = format!("a {format} image must begin at the start of its file");
            return Err(file.error(ErrorKind::Format, reason).at(start));
        }
        if self.options.snapshot.is_some() && format != Format::Qcow2 {
            let reason = format!("a {format} image has no snapshots that can be read");
            return Err(file.error(ErrorKind::Snapshot, reason));
        }
        Ok(format)
    }

    fn push_qcow2(
        &mut self,
        file: &Arc<HostFile>,
        folder: &Folder,
    ) -> Result<Option<(Arc<HostFile>, Folder, Format)>> {
        let header = Header::read(file)?;
        if header.is_corrupt {
            let warning = file.error(
                ErrorKind::Corrupt,
                "is marked as corrupt: what can be read may not be what was written",
            );
            self.warnings.push(warning.to_string());
        }
        let data_file = match &header.data_file {
            Some(name) => Some(self.follow(file, folder, "data file", name)?.0),
            None => None,
        };
        let snapshot = if self.layers.is_empty() { self.options.snapshot.as_deref() } else { None };
        let qcow2 = Qcow2::new(file.clone(), &header, data_file, snapshot)?;
        if snapshot.is_some() && qcow2.size != header.size {
            let reason = format!(
                "was resized after the snapshot was taken: the checksum is that of the snapshot's {} \
                 bytes, and qemu-img convert -l gives {}",
                qcow2.size, header.size
            );
            self.warnings.push(file.error(ErrorKind::Snapshot, reason).to_string());
        }
        self.layers.push(Layer::Qcow2(Box::new(qcow2)));

        let Some(name) = &header.backing_file else { return Ok(None) };
        let format =
            self.backing_format(file, name, header.backing_format.as_deref(), RECORD_IT)?;
        let (backing, folder) = self.follow(file, folder, "backing file", name)?;
        Ok(Some((backing, folder, format)))
    }

    /// The last layer: an image that a server reads, with everything beneath it.
    fn push_served(&mut self, top: &Arc<HostFile>, folder: Folder, format: Format) -> Result<()> {
        let mut export = Export::new(self.options);
        let mut next = Some((top.clone(), folder, format));
        let mut vpc = None;
        while let Some((file, folder, format)) = next.take() {
            self.check_length(&file, export.depth())?;
            if format == Format::Qcow2 {
                let reason = "is a qcow2 image beneath one of another format, which is not read: \
                              convert the image on top with qemu-img";
                return Err(file.error(ErrorKind::Unsupported, reason));
            }
            let named = served::examine(&file, format)?;
            let mut extents: Vec<(&[u8], Arc<HostFile>)> = Vec::new();
            for extent in named.extents() {
                let known = extents.iter().find(|(name, _)| *name == extent.name);
                let opened = match known {
                    Some((_, opened)) => opened.clone(),
                    None => self.follow(&file, &folder, "extent", &extent.name)?.0,
                };
                extent.check(&opened)?;
                extents.push((&extent.name, opened));
            }
            let extents = extents.into_iter().map(|(_, opened)| opened).collect();
            vpc = vpc.or(named.vpc);
            export.push(file.clone(), format, &named, extents)?;
            if let Some(backing) = &named.backing {
                let recorded = backing.format.map(|format| format.name().as_bytes());
                let format = self.backing_format(&file, &backing.name, recorded, GIVE_IT)?;
                let (below, folder) = self.follow(&file, &folder, "backing file", &backing.name)?;
                next = Some((below, folder, format));
            }
        }
        let served = export.start(self.bytes_read.clone())?;
        if let Some(doubt) = vpc.and_then(|vpc| vpc.doubt(served.raw.size())) {
            self.warnings.push(top.error(ErrorKind::Format, doubt).to_string());
        }
        if !format.tells_extents() {
            self.check_unstored(top, &served)?;
        }
        self.layers.push(Layer::Served(Box::new(served)));
        Ok(())
    }

    /// Fails if an image that is read in full, since nothing tells where it is empty, has far more
    /// content than its files can hold.
    fn check_unstored(&self, top: &HostFile, served: &Served) -> Result<()> {
        let stored: u64 = served.files.iter().map(|file| file.size()).fold(0, u64::saturating_add);
        let limit = self.options.max_unstored.unwrap_or(DEFAULT_MAX_UNSTORED);
        let size = served.raw.size();
        if size.saturating_sub(stored) <= limit {
            return Ok(());
        }
        let reason = format!(
            "has {size} bytes of content and stores {stored}: all of it would be read, since its \
             format does not tell where it is empty"
        );
        Err(top.error(ErrorKind::Size, reason))
    }

    fn follow(
        &mut self,
        image: &HostFile,
        folder: &Folder,
        what: &'static str,
        name: &[u8],
    ) -> Result<(Arc<HostFile>, Folder)> {
        let reference = Reference { what, name };
        let opened = references::open(self.options.follow, image, folder, reference)?;
        Ok((self.disk(opened.file, &opened.name, false)?, opened.folder))
    }

    /// The format of a backing file is never guessed: a guest can write any header into a raw one.
    fn backing_format(
        &self,
        image: &HostFile,
        name: &[u8],
        recorded: Option<&[u8]>,
        advice: &str,
    ) -> Result<Format> {
        let refuse = |reason: String| {
            let reason = format!("names the backing file \"{}\", {reason}", excerpt(name));
            Err(image.error(ErrorKind::Reference, reason))
        };
        let Some(recorded) = recorded.filter(|recorded| !recorded.is_empty()) else {
            return match self.options.backing_format {
                Some(format) => Ok(format),
                None => refuse(format!("whose format is not recorded: {advice}")),
            };
        };
        let format = std::str::from_utf8(recorded).ok().and_then(|name| name.parse().ok());
        match format {
            Some(format) => Ok(format),
            None => refuse(format!("whose format \"{}\" is not known", excerpt(recorded))),
        }
    }
}

/// What to do where a qcow2 image does not record the format of its backing file.
const RECORD_IT: &str = "record it with qemu-img rebase -u -F, or give --backing-format";

/// The same for formats that have no place for it.
const GIVE_IT: &str = "give --backing-format";

/// Files in a chain. The longest that tools make have tens; each costs memory and a lookup a run.
const MAX_CHAIN: usize = 200;

/// Half an hour of zeros through qemu-nbd.
const DEFAULT_MAX_UNSTORED: u64 = 1 << 40;

#[cfg(test)]
mod tests;
