//! An open image: a chain of files, top first, read as one guest view.
//!
//! The chain is a flat list. A run of guest bytes is looked up from the top down. If a layer has no
//! content for it, the next layer is looked up, within its own size. Bytes past the end of a layer are
//! zeros, whatever the layers below hold. Bytes that a layer maps into a hole of a file are zeros, too,
//! for extents and origins alike.

mod announced;
mod known_extent;
mod on_volume;

use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use self::announced::Announced;
use self::known_extent::KnownExtent;
use self::on_volume::OnVolume;
use crate::acquisition::Acquisition;
use crate::backup::Backup;
use crate::bitmap::{Bitmap, DirtyExtents};
use crate::chain::Chain;
use crate::check::{Summary, Visitor};
use crate::error::{Error, ErrorKind, Result, excerpt};
use crate::extent::{Extent, ExtentKind};
use crate::identity::VolumeId;
use crate::layer::{GuestRange, Layer, Mapping, MappingKind, Purpose, Stored};
use crate::location::Location;
use crate::member::Member;
use crate::origin::{self, Dirty, Origin, OriginKind};
use crate::probe::Format;
use crate::snapshot::Snapshot;
use crate::source::Source;
use crate::stated::Stated;
use crate::storage::HostFile;
use crate::storage::ReadMethod;
use crate::storage::ahead::Joined;
use crate::storage::local::mapped::Lent;
use crate::walk::{Walk, Walks};
use crate::warnings::Warning;

/// An open image with every file it refers to.
pub struct Image {
    layers: Vec<Box<dyn Layer>>,
    members: Vec<Member>,
    format: Format,
    size: u64,
    walks: Walks,
    warnings: Vec<Warning>,
    bytes_read: Arc<AtomicU64>,
    /// Whether reads of a file should be announced.
    is_far: bool,
    announced: Announced,
}

impl Image {
    /// Creates the image of a complete chain, which has at least one layer.
    pub(crate) fn new(chain: Chain<'_>, format: Format) -> Self {
        let Chain { layers, members, warnings, bytes_read, .. } = chain;
        let size = layers.first().map_or(0, |layer| layer.size());
        let walks = Walks::new(layers.len());
        let top = layers.first().and_then(|layer| layer.files().first().map(|file| file.name()));
        let warnings = warnings.into_list(top.unwrap_or(Path::new("")));
        let mut files = layers.iter().flat_map(|layer| layer.files());
        let is_far = files.any(|file| file.read_ahead() > 0);
        let announced = Announced::default();
        Self { layers, members, format, size, walks, warnings, bytes_read, is_far, announced }
    }

    /// Returns the format of the image itself, not of the files it refers to.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns whether the file of the image is compressed as a whole, and is decompressed to read it.
    pub fn is_decompressed(&self) -> bool {
        let mut files = self.members.iter().flat_map(Member::files);
        files.any(|file| matches!(file.read_method(), ReadMethod::Decompressed(_)))
    }

    /// Returns the file whose bytes, from its first to its last, are the content. `None` if there is none, or if what the file
    /// system says of holes is not trusted.
    pub fn whole_file(&self) -> Option<BorrowedFd<'_>> {
        let mut files = self.host_files();
        let (file, None) = (files.next()?, files.next()) else { return None };
        let is_whole = self.format == Format::Raw && !self.is_decompressed();
        let is_whole = is_whole && file.size() == self.virtual_size() && file.id().is_some();
        file.descriptor().filter(|_| is_whole)
    }

    /// Returns the size of the guest content in bytes.
    pub fn virtual_size(&self) -> u64 {
        self.size
    }

    /// Returns warnings about an image that can be read.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Returns the number of bytes read so far from all host files, tables included.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Relaxed)
    }

    /// Fails if a file does not match a digest that was stated with it, as of a blob in an OCI image. Blocks until all
    /// bytes of such files are hashed. Every pass over the content checks this at its end; this is for programs that look
    /// at an image without such a pass.
    ///
    /// # Errors
    ///
    /// Fails if a digest does not match, or a file cannot be read.
    pub fn check_digests(&self) -> Result<()> {
        let files = self.layers.iter().flat_map(|layer| layer.files());
        files.into_iter().try_for_each(HostFile::verify)
    }

    /// Checks the structure of the image itself, not of its backing files. Returns `None` if its format has no checks.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or changed. Damage is no error, and is passed to `visitor`.
    pub fn check_structure(&self, visitor: &mut dyn Visitor) -> Result<Option<Summary>> {
        self.layers.first().map_or(Ok(None), |layer| layer.check_structure(visitor))
    }

    /// Returns the checksums that the image states of its content. Returns `None` if it states none.
    ///
    /// Digests of parts are compared when the parts are read. Digests of the whole content are for the caller to
    /// compare.
    ///
    /// # Errors
    ///
    /// Fails if the image cannot be read, or what it states is not valid.
    pub fn stated_checksums(&self) -> Result<Option<Stated>> {
        self.layers.first().map_or(Ok(None), |layer| layer.stated())
    }

    /// Returns what a forensic image says of how it was made. Returns `None` for other images.
    pub fn acquisition(&self) -> Option<&Acquisition> {
        self.layers.first().and_then(|layer| layer.acquisition())
    }

    /// Returns what an image of the used blocks of a file system says of it. Returns `None` for other images.
    pub fn backup(&self) -> Option<&Backup> {
        self.layers.first().and_then(|layer| layer.backup())
    }

    /// The images of the chain, this one first.
    pub fn chain(&self) -> &[Member] {
        &self.members
    }

    /// Returns the internal snapshots of the image itself, in the order in which the image lists them. Returns `None`
    /// if its format has none that can be opened, or another program reads it.
    ///
    /// # Errors
    ///
    /// Fails if the list cannot be read. It has at most 65536 snapshots and 64 MiB.
    pub fn snapshots(&self) -> Result<Option<Vec<Snapshot>>> {
        self.layers.first().map_or(Ok(None), |layer| layer.snapshots())
    }

    /// Returns the bitmaps of changed blocks of the image itself, in the order in which the image lists them. Returns `None`
    /// if its format has none that can be read.
    ///
    /// # Errors
    ///
    /// Fails if the list cannot be read. It has at most 65535 bitmaps and 64 MiB.
    pub fn bitmaps(&self) -> Result<Option<Vec<Bitmap>>> {
        self.layers.first().map_or(Ok(None), |layer| layer.bitmaps())
    }

    /// Returns the extents of the content that the bitmap with this name calls changed, sorted and not adjacent.
    ///
    /// The bitmap covers the current content of the image itself: it knows nothing of writes to backing files. The
    /// bitmap of an export of an NBD server is read if [`NbdOptions::bitmap`](crate::NbdOptions::bitmap) names it.
    ///
    /// # Errors
    ///
    /// Fails if there is no such bitmap, if it is in use, so that it is not complete, if it cannot be read or is damaged,
    /// or has more than 16 Mi extents.
    pub fn dirty_extents(&self, name: &[u8]) -> Result<Vec<Range<u64>>> {
        let found = self.layers.first().map_or(Ok(None), |layer| layer.dirty_extents(name))?;
        found.ok_or_else(|| {
            let file = self.files().next().unwrap_or(Path::new(""));
            let location = Location::new(file.as_os_str());
            let reason = match location.is_uri() && !location.is_url() {
                true => format!("the server has no bitmap {}", excerpt(name)),
                false => format!("a {} image has no bitmaps that can be read", self.format),
            };
            Error::new(ErrorKind::Argument, file, reason)
        })
    }

    /// Returns the extents whose content comes from the first `depth` images of the chain, sorted and not adjacent. All other
    /// content comes from the image below them.
    ///
    /// # Errors
    ///
    /// Fails if the tables of an image cannot be read or are damaged, or there are more than 16 Mi extents.
    pub fn extents_above(&self, depth: usize) -> Result<Vec<Range<u64>>> {
        let layers = &self.layers[..depth.min(self.layers.len())];
        let mut extents = DirtyExtents::new(self.size);
        let mut offset = 0;
        while offset < self.size {
            let mut length = self.size - offset;
            let mut is_above = false;
            for (index, layer) in layers.iter().enumerate() {
                // Past its end, an image in the middle hides those below.
                let Some(left) = layer.size().checked_sub(offset).filter(|left| *left > 0) else {
                    is_above = index > 0;
                    break;
                };
                length = length.min(left);
                let range = GuestRange { offset, limit: length, far: length, is_lowest: false };
                let mapping = layer.map(range, Purpose::Extent)?;
                length = length.min(mapping.length);
                if !matches!(mapping.kind, MappingKind::Below) {
                    is_above = true;
                    break;
                }
            }
            if is_above && extents.push(offset..offset + length).is_none() {
                let name = self.files().next().unwrap_or(Path::new(""));
                let reason = "has more than 16 Mi extents that differ from its backing file";
                return Err(Error::new(ErrorKind::Argument, name, reason));
            }
            offset += length;
        }
        Ok(extents.into_list())
    }

    /// Returns the names of all files of the chain, the image itself first.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.host_files().map(HostFile::name)
    }

    fn host_files(&self) -> impl Iterator<Item = &HostFile> {
        self.layers.iter().flat_map(|layer| layer.files())
    }

    /// Finds the place of the guest bytes from `offset` on, for at most `limit` bytes. The range is not
    /// empty and `offset` is below the size. With [`Purpose::Extent`], holes of files are zeros.
    fn locate<'a>(
        &'a self,
        walk: &mut Walk,
        known: &mut KnownExtent<'a>,
        offset: u64,
        limit: u64,
    ) -> Result<Run<'a>> {
        let run = self.resolve(walk, offset, limit, Purpose::Extent)?;
        let Place::File { file, offset } = run.place else { return Ok(run) };
        let (kind, length) = known.meet(file, offset, run.length, limit)?;
        let place = if kind == ExtentKind::Zero { Place::Zero } else { run.place };
        Ok(Run { place, length })
    }

    /// Finds the place of the guest bytes from `offset` on, for at most `limit` bytes. The range is not
    /// empty and `offset` is below the size.
    fn resolve(
        &self,
        walk: &mut Walk,
        offset: u64,
        mut limit: u64,
        purpose: Purpose,
    ) -> Result<Run<'_>> {
        let (first, mut clear) = walk.start(offset);
        for (index, layer) in self.layers.iter().enumerate().skip(first) {
            let size = layer.size();
            if offset >= size {
                break;
            }
            limit = limit.min(size - offset);
            if let Some(end) = walk.known(index, offset) {
                clear = clear.min(end);
                continue;
            }
            limit = limit.min(clear - offset);
            let far = if walk.remembers() { size - offset } else { limit };
            let is_lowest = index + 1 == self.layers.len();
            let range = GuestRange { offset, limit, far, is_lowest };
            let Mapping { kind, length } = layer.map(range, purpose)?;
            let place = match kind {
                MappingKind::Below => {
                    walk.learn(index, offset, length);
                    clear = clear.min(offset + length);
                    continue;
                }
                MappingKind::Zero => Place::Zero,
                MappingKind::Host { file, offset } => Place::File { file, offset },
                MappingKind::Opaque(stored) => Place::Layer { layer: &**layer, stored },
            };
            walk.found(index, offset, clear);
            return Ok(Run { place, length });
        }
        Ok(Run { place: Place::Zero, length: limit.min(clear - offset) })
    }

    /// Returns whether an extent is not joined with the next one, so that a caller can announce its first bytes before tables
    /// far after them are read.
    fn is_enough(&self, kind: ExtentKind, length: u64) -> bool {
        self.is_far && kind == ExtentKind::Data && length >= MAX_FAR
    }

    fn check_range(&self, offset: u64, length: u64) -> Result<()> {
        if offset.checked_add(length).is_some_and(|end| end <= self.size) {
            return Ok(());
        }
        let name = self.files().next().unwrap_or(Path::new(""));
        let reason = format!("{length} bytes asked for past the end of the image");
        Err(Error::new(ErrorKind::Argument, name, reason).at(offset))
    }
}

impl Source for Image {
    fn size(&self) -> u64 {
        self.size
    }

    fn extent(&self, offset: u64, limit: u64) -> Result<Extent> {
        self.check_range(offset, 1)?;
        let limit = limit.clamp(1, self.size - offset);
        let mut walk = self.walks.take(offset);
        let mut known = KnownExtent::default();
        let first = self.locate(&mut walk, &mut known, offset, limit)?;
        let kind = first.place.extent_kind();
        let mut length = first.length;
        for _ in 0..MAX_JOINED {
            if length == limit || self.is_enough(kind, length) {
                break;
            }
            // An error here belongs to the next extent and is found again there.
            match self.locate(&mut walk, &mut known, offset + length, limit - length) {
                Ok(next) if next.place.extent_kind() == kind => length += next.length,
                _ => break,
            }
        }
        self.walks.put(walk, offset + length);
        Ok(Extent { offset, length, kind })
    }

    fn origin(&self, offset: u64, limit: u64) -> Result<Origin> {
        self.check_range(offset, 1)?;
        let limit = limit.clamp(1, self.size - offset);
        let mut walk = self.walks.take(offset);
        let mut known = KnownExtent::default();
        let first = self.locate(&mut walk, &mut known, offset, limit)?;
        let kind = first.origin_kind(offset);
        let mut length = first.length;
        for _ in 0..MAX_JOINED {
            if length == limit || self.is_enough(first.place.extent_kind(), length) {
                break;
            }
            // An error here belongs to the next run and is found again there.
            let next = offset + length;
            match self.locate(&mut walk, &mut known, next, limit - length) {
                Ok(run) if run.origin_kind(next) == kind.advanced(length) => length += run.length,
                _ => break,
            }
        }
        self.walks.put(walk, offset + length);
        Ok(Origin { offset, length, kind })
    }

    fn volumes(&self) -> Vec<VolumeId> {
        self.host_files().filter_map(HostFile::volume).collect()
    }

    fn volume_origins(&self, offset: u64, limit: u64, dirty: Dirty) -> Result<Vec<Origin>> {
        self.check_range(offset, 1)?;
        let end = offset + limit.clamp(1, self.size - offset);
        let mut walk = self.walks.take(offset);
        let mut known = KnownExtent::default();
        let mut found = OnVolume::new(offset, dirty);
        while found.end() < end && !found.is_full() {
            match self.locate(&mut walk, &mut known, found.end(), end - found.end()) {
                Ok(Run { place: Place::File { file, offset }, length }) => {
                    found.push_file(file, offset, length);
                }
                Ok(Run { place: Place::Zero, length }) => found.push(length, OriginKind::Zero),
                Ok(Run { place: Place::Layer { .. }, length }) => {
                    found.push(length, OriginKind::Other);
                }
                // The error belongs to the next query and is found again there.
                Err(_) if found.end() > offset => break,
                Err(error) => return Err(error),
            }
        }
        self.walks.put(walk, found.end());
        Ok(found.into_origins())
    }

    fn read_exact_at(&self, mut buf: &mut [u8], mut offset: u64) -> Result<()> {
        self.check_range(offset, buf.len() as u64)?;
        let mut walk = self.walks.take(offset);
        while !buf.is_empty() {
            let run = self.resolve(&mut walk, offset, buf.len() as u64, Purpose::Read)?;
            let (head, rest) = buf.split_at_mut(run.length as usize);
            run.place.read(head, offset)?;
            offset += run.length;
            buf = rest;
        }
        self.walks.put(walk, offset);
        Ok(())
    }

    fn lend(&self, offset: u64, length: usize) -> Option<Lent> {
        self.check_range(offset, length as u64).ok()?;
        let mut walk = self.walks.take(offset);
        let run = self.resolve(&mut walk, offset, length as u64, Purpose::Read).ok()?;
        self.walks.put(walk, offset + run.length);
        match run.place {
            Place::File { file, offset } => file.lend(offset, run.length as usize),
            Place::Zero | Place::Layer { .. } => None,
        }
    }

    fn granularity(&self) -> u64 {
        self.layers.iter().map(|layer| layer.granularity()).max().unwrap_or(1)
    }

    fn queue_depth(&self) -> usize {
        self.layers.iter().map(|layer| layer.queue_depth()).max().unwrap_or(1)
    }

    fn will_need(&self, mut offset: u64, length: u64) {
        let end = offset.saturating_add(length).min(self.size);
        if !self.is_far || offset >= end {
            return;
        }
        let mut walk = self.walks.take(offset);
        let mut joined = Joined::default();
        while offset < end {
            // The read finds the error again.
            let Ok(run) = self.resolve(&mut walk, offset, end - offset, Purpose::Read) else {
                walk = Walk::default();
                break;
            };
            let place = match run.place {
                Place::Zero => None,
                Place::File { file, offset } => Some((file, offset, run.length)),
                Place::Layer { layer, stored } => {
                    let encoded = layer.encoded(stored, offset);
                    encoded.map(|(file, length)| (file, stored.offset, length))
                }
            };
            let before = place.and_then(|(file, at, length)| joined.push(file, at, length));
            if let Some((file, range)) = before {
                self.announced.announce(file, range);
            }
            offset += run.length;
        }
        self.walks.put(walk, offset);
        if let Some((file, range)) = joined.finish() {
            self.announced.announce(file, range);
        }
    }

    fn read_ahead(&self) -> u64 {
        match self.is_far {
            true => self.host_files().map(HostFile::read_ahead).max().unwrap_or(0),
            false => 0,
        }
    }

    fn check_unchanged(&self) -> Result<()> {
        self.layers.iter().try_for_each(|layer| layer.check_unchanged())
    }
}

/// Guest bytes that come from one place.
struct Run<'a> {
    place: Place<'a>,
    length: u64,
}

impl Run<'_> {
    /// Returns the origin of these bytes, the first of which is the guest byte at `guest`.
    fn origin_kind(&self, guest: u64) -> OriginKind {
        let place = match self.place {
            Place::Zero => return OriginKind::Zero,
            // Bytes past the end of the file have no place, so that reading them fails.
            Place::File { file, offset } => file
                .id()
                .filter(|_| offset.checked_add(self.length).is_some_and(|end| end <= file.size()))
                .map(|id| origin::Place::plain(id, offset)),
            Place::Layer { layer, stored } => layer.place(stored, guest),
        };
        place.map_or(OriginKind::Other, OriginKind::Stored)
    }
}

#[derive(Clone, Copy)]
enum Place<'a> {
    Zero,
    File { file: &'a HostFile, offset: u64 },
    Layer { layer: &'a dyn Layer, stored: Stored },
}

impl Place<'_> {
    fn extent_kind(self) -> ExtentKind {
        match self {
            Self::Zero => ExtentKind::Zero,
            Self::File { .. } | Self::Layer { .. } => ExtentKind::Data,
        }
    }

    /// Fills `buf` with the guest bytes from `offset` on, read from this place.
    fn read(self, buf: &mut [u8], offset: u64) -> Result<()> {
        match self {
            Self::Zero => {
                buf.fill(0);
                Ok(())
            }
            Self::File { file, offset } => file.read_exact_at(buf, offset),
            Self::Layer { layer, stored } => layer.read(stored, buf, offset),
        }
    }
}

/// Maximum number of runs that one call to `extent` joins: enough that fragments do not cost a call each, few enough
/// that a call stays short.
/// Limit in runs.
const MAX_JOINED: usize = 64;

/// Length of extents of files far away, in bytes. Tables after it are read when the caller gets there.
const MAX_FAR: u64 = 1 << 30;

#[cfg(test)]
mod tests;
