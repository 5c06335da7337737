//! VMware disks: a text that describes files, or a sparse file with the text inside.
//!
//! A disk is a list of extents, one after the other: bytes of a file as they are ([`Raw`]), a sparse
//! file ([`sparse`]) or zeros. No number in a file is trusted: sums are checked, tables and grains
//! must lie inside the file, and an allocation by a length from the file is bounded by a constant.

pub(crate) mod descriptor;
mod header;
mod names;
mod se_sparse;
mod sparse;

#[cfg(test)]
pub(crate) mod builder;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use self::descriptor::{Descriptor, DiskExtent, DiskExtentKind, Flaw, MAX_DESCRIPTOR, SEARCHED};
use self::header::{COWD, Header, KDMV, SECTOR};
use self::sparse::Sparse;
use crate::chain::{BackingFile, Candidate, Chain, OpenedLayer};
use crate::error::{ErrorKind, Result};
use crate::formats::fields::check_inside;
use crate::formats::raw::Raw;
use crate::layer::{GuestRange, Layer, Mapping, MappingKind, Purpose, Stored};
use crate::origin::Place;
use crate::probe::Format;
use crate::storage::HostFile;

/// One VMware disk of a chain.
pub(crate) struct Vmdk {
    /// The image itself first, then every other file once.
    files: Vec<Arc<HostFile>>,
    /// In the order of their guest bytes, without gaps.
    extents: Vec<Extent>,
    size: u64,
}

/// The guest bytes from `start` to `end`.
struct Extent {
    start: u64,
    end: u64,
    content: Content,
}

enum Content {
    Flat(Raw),
    Sparse(Sparse),
    Zero,
}

/// Opens a file as a VMware disk, with the files that it describes.
pub(crate) fn open(chain: &mut Chain<'_>, image: &Candidate) -> Result<OpenedLayer> {
    let file = &image.file;
    let (descriptor, header) = read_description(file)?;
    let vmdk = match header {
        Some(header) => open_monolithic(chain, file, &descriptor, &header)?,
        None => open_extents(chain, image, &descriptor)?,
    };
    let expected = descriptor.parent_cid;
    let check = move |found: &HostFile| check_cid(found, expected);
    let encoding = descriptor.encoding;
    let backing = descriptor.parent.map(|name| {
        let other_name = names::in_utf8(&name, encoding.as_deref());
        BackingFile { other_name, ..BackingFile::parent(name, Format::Vmdk, check) }
    });
    Ok(OpenedLayer { layer: Box::new(vmdk), backing })
}

/// Reads the description of a disk, and the header of a sparse file that describes itself.
fn read_description(file: &HostFile) -> Result<(Descriptor, Option<Header>)> {
    let magic = file.read_head(KDMV.len())?;
    if magic == KDMV {
        let header = Header::read(file)?;
        return Ok((embedded_descriptor(file, &header)?, Some(header)));
    }
    if magic == COWD {
        return Err(part_of_a_disk(file));
    }
    Ok((read_descriptor(file)?, None))
}

/// Returns the description of a disk whose extents are other files, for qemu-nbd. `None` if the file
/// describes itself.
#[cfg(feature = "qemu-nbd")]
pub(super) fn description_of_others(file: &HostFile) -> Result<Option<Descriptor>> {
    let (descriptor, header) = read_description(file)?;
    if header.is_some() {
        return Ok(None);
    }
    if !descriptor.is_read_by_qemu() {
        let reason = "is a vmdk image of a type that qemu-nbd does not read";
        return Err(file.error(ErrorKind::Unsupported, reason));
    }
    Ok(Some(descriptor))
}

/// Opens a sparse file that describes itself.
fn open_monolithic(
    chain: &mut Chain<'_>,
    file: &Arc<HostFile>,
    descriptor: &Descriptor,
    header: &Header,
) -> Result<Vmdk> {
    let [DiskExtent { sectors, kind: DiskExtentKind::Sparse, .. }] = *descriptor.extents else {
        let reason = "is a sparse file whose descriptor does not describe one sparse file";
        return Err(file.error(ErrorKind::Unsupported, reason));
    };
    let sparse = Sparse::hosted(chain, file, header)?;
    check_capacity(chain, file, sectors, &sparse)?;
    let mut vmdk = Vmdk { files: vec![file.clone()], extents: Vec::new(), size: 0 };
    vmdk.push(file, sparse.size(), Content::Sparse(sparse))?;
    Ok(vmdk)
}

/// Opens the extents of a disk that a text describes.
fn open_extents(chain: &mut Chain<'_>, image: &Candidate, descriptor: &Descriptor) -> Result<Vmdk> {
    let mut vmdk = Vmdk { files: vec![image.file.clone()], extents: Vec::new(), size: 0 };
    let mut known: Vec<(&[u8], Arc<HostFile>)> = Vec::new();
    let mut sparse_files: Vec<Arc<HostFile>> = Vec::new();
    for (index, extent) in descriptor.extents.iter().enumerate() {
        let DiskExtent { sectors, kind, name } = extent;
        if *kind == DiskExtentKind::Zero {
            vmdk.push(&image.file, sectors * SECTOR, Content::Zero)?;
            continue;
        }
        let file = match known.iter().find(|(known, _)| known == name) {
            Some((_, file)) => file.clone(),
            None => {
                let other = names::in_utf8(name, descriptor.encoding.as_deref());
                let file = chain.follow_either(image, "extent", name, other)?.0;
                known.push((name, file.clone()));
                vmdk.files.push(file.clone());
                file
            }
        };
        if let DiskExtentKind::Flat { start } = *kind {
            let (start, length) = (start * SECTOR, sectors * SECTOR);
            check_inside(&file, start, length, "part of the disk")?;
            let raw = Raw::new(file.clone(), start);
            vmdk.push(&file, length, Content::Flat(raw))?;
            continue;
        }
        let sparse = match *kind {
            DiskExtentKind::SeSparse => se_sparse::open(chain, &file)?,
            _ => Sparse::open(chain, &file)?,
        };
        check_capacity(chain, &file, *sectors, &sparse)?;
        // The time to look at all tables is that for files that are stored.
        if sparse_files.iter().any(|other| Arc::ptr_eq(other, &file)) {
            let reason = "is a sparse file that its disk lists more than once, which is not read";
            return Err(file.error(ErrorKind::Unsupported, reason));
        }
        sparse_files.push(file.clone());
        if sparse.is_compressed() && descriptor.extents.len() > 1 {
            let reason = "is a compressed part of a disk of several files, which is not read";
            return Err(file.error(ErrorKind::Unsupported, reason));
        }
        // For QEMU, the last grain continues over what follows.
        let is_last = index + 1 == descriptor.extents.len();
        if !is_last && !sparse.size().is_multiple_of(sparse.grain_size()) {
            let reason =
                "ends within a grain, and another part of the disk follows, which is not read";
            return Err(file.error(ErrorKind::Unsupported, reason));
        }
        vmdk.push(&file, sparse.size(), Content::Sparse(sparse))?;
    }
    chain.add_files(vmdk.files[1..].iter().cloned());
    Ok(vmdk)
}

impl Vmdk {
    /// Appends an extent, which must not be empty.
    fn push(&mut self, file: &HostFile, length: u64, content: Content) -> Result<()> {
        let start = self.size;
        let end = start.checked_add(length).filter(|end| i64::try_from(*end).is_ok());
        let end = end.ok_or_else(|| file.corrupt("makes its disk larger than any disk can be"))?;
        self.extents.push(Extent { start, end, content });
        self.size = end;
        Ok(())
    }

    /// Returns the extent that holds the guest byte at `offset`, which lies below the size.
    fn extent(&self, offset: u64) -> &Extent {
        let after = self.extents.partition_point(|extent| extent.start <= offset);
        &self.extents[after.saturating_sub(1)]
    }
}

impl Layer for Vmdk {
    fn size(&self) -> u64 {
        self.size
    }

    fn map(&self, range: GuestRange, purpose: Purpose) -> Result<Mapping<'_>> {
        let Extent { start, end, content } = self.extent(range.offset);
        let left = end - range.offset;
        let range = GuestRange {
            offset: range.offset - start,
            limit: range.limit.min(left),
            far: range.far.min(left),
            ..range
        };
        match content {
            Content::Flat(raw) => raw.map(range, purpose),
            Content::Sparse(sparse) => sparse.map(range, purpose),
            Content::Zero => Ok(Mapping { kind: MappingKind::Zero, length: range.limit }),
        }
    }

    fn read(&self, stored: Stored, buf: &mut [u8], offset: u64) -> Result<()> {
        let extent = self.extent(offset);
        match &extent.content {
            Content::Flat(raw) => raw.read(stored, buf, offset - extent.start),
            Content::Sparse(sparse) => sparse.read(stored, buf, offset - extent.start),
            Content::Zero => {
                buf.fill(0);
                Ok(())
            }
        }
    }

    fn place(&self, stored: Stored, offset: u64) -> Option<Place> {
        let extent = self.extent(offset);
        match &extent.content {
            Content::Sparse(sparse) => sparse.place(stored, offset - extent.start),
            Content::Flat(_) | Content::Zero => None,
        }
    }

    fn encoded(&self, _stored: Stored, offset: u64) -> Option<(&HostFile, u64)> {
        match &self.extent(offset).content {
            Content::Sparse(sparse) => Some(sparse.encoded()),
            Content::Flat(_) | Content::Zero => None,
        }
    }

    fn files(&self) -> Vec<&HostFile> {
        self.files.iter().map(|file| &**file).collect()
    }

    /// A compressed grain is always decompressed as a whole.
    fn granularity(&self) -> u64 {
        let files = self.files.iter().map(|file| file.granularity());
        let grains = self.extents.iter().map(|extent| match &extent.content {
            Content::Sparse(sparse) if sparse.is_compressed() => sparse.grain_size(),
            _ => 1,
        });
        files.chain(grains).max().unwrap_or(1)
    }
}

fn read_descriptor(file: &HostFile) -> Result<Descriptor> {
    let not_a_disk = || file.error(ErrorKind::Format, "is not a vmdk image");
    if file.size() > MAX_DESCRIPTOR as u64 {
        return Err(not_a_disk());
    }
    let text = file.read_head(MAX_DESCRIPTOR)?;
    if crate::probe::probe(&text) != Some(crate::Format::Vmdk) {
        return Err(not_a_disk());
    }
    parse(file, &text)
}

/// Reads the text inside a sparse file. QEMU always reads it after the header.
fn embedded_descriptor(file: &HostFile, header: &Header) -> Result<Descriptor> {
    if header.descriptor == 0 {
        return Err(part_of_a_disk(file));
    }
    let unusual = |reason| Err(file.error(ErrorKind::Unsupported, reason));
    if header.descriptor != 1 {
        return unusual("has its descriptor at an unusual place, which is not read");
    }
    let length = file.size().saturating_sub(SECTOR).min(SEARCHED as u64);
    let mut text = vec![0; length as usize];
    file.read_exact_at(&mut text, SECTOR)?;
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    if end == 0 {
        return Err(part_of_a_disk(file));
    }
    if end == text.len() || end as u64 > header.descriptor_sectors.saturating_mul(SECTOR) {
        return unusual("has a descriptor that is longer than the place for it");
    }
    parse(file, &text[..end])
}

fn parse(file: &HostFile, text: &[u8]) -> Result<Descriptor> {
    Descriptor::parse(text).map_err(|flaw| match flaw {
        Flaw::Invalid(reason) => file.corrupt(reason),
        Flaw::Unsupported(reason) => file.error(ErrorKind::Unsupported, reason),
    })
}

/// Fails if a sparse file has another size than its descriptor says.
///
/// VirtualBox rounds the size of the file up to whole grains, and QEMU reads all of them.
fn check_capacity(
    chain: &mut Chain<'_>,
    file: &HostFile,
    sectors: u64,
    sparse: &Sparse,
) -> Result<()> {
    let (size, described) = (sparse.size(), sectors * SECTOR);
    if size == described {
        return Ok(());
    }
    if described.checked_next_multiple_of(sparse.grain_size()) != Some(size) {
        let reason = format!("has {size} bytes, and its descriptor says {described}");
        return Err(file.corrupt(reason));
    }
    let reason = format!(
        "has {size} bytes, and its descriptor says {described}: {size} bytes are read, as in QEMU"
    );
    chain.warn(file.warning(reason));
    Ok(())
}

/// Fails unless a disk still has the content that a difference to it was made from.
fn check_cid(file: &HostFile, expected: u32) -> Result<()> {
    let cid = read_description(file)?.0.cid;
    if cid == Some(expected) {
        return Ok(());
    }
    let found = cid.map_or_else(|| "none".into(), |cid| format!("{cid:08x}"));
    let reason = format!(
        "is another disk than the image on top was made from, or changed since: its content id is \
         {found}, not {expected:08x}"
    );
    Err(file.error(ErrorKind::Reference, reason))
}

fn part_of_a_disk(file: &HostFile) -> crate::Error {
    let reason = "is a part of a disk: give the small file that describes the disk";
    file.error(ErrorKind::Unsupported, reason)
}
