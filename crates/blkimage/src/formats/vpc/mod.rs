//! vpc (vhd), the disks of Virtual PC and Hyper-V: fixed, dynamic and differencing.
//!
//! The footer is the last sector. A fixed disk is the content and the footer. The others begin with a copy
//! of the footer and have a second header and a table of blocks. Before the sectors of each block is a bitmap of the
//! sectors that are stored. QEMU ignores the bitmaps, and reads a differencing disk as if it had no parent.

mod footer;
mod header;
mod parent;
pub(crate) mod size;
mod sparse;

#[cfg(test)]
mod tests;

use self::footer::{FOOTER, Footer, Id, Kind};
use self::header::Header;
use self::parent::Parent;
use self::sparse::Sparse;
use crate::chain::{BackingFile, Candidate, Chain, OpenedLayer};
use crate::error::{ErrorKind, Result};
use crate::formats::empty::not_empty;
use crate::formats::raw::Raw;
use crate::hint::Hint;
use crate::options::VpcSize;
use crate::probe::Format;
use crate::storage::HostFile;
use crate::warnings::Warning;

/// Opens a file as a vpc image.
pub(crate) fn open(chain: &mut Chain<'_>, image: &Candidate) -> Result<OpenedLayer> {
    let file = &image.file;
    let footer = Footer::read(file)?;
    // A child cuts its parent off where it ends itself.
    let is_parent = matches!(&*chain.members, [.., child, _] if child.format == Format::Vpc);
    let choice = if is_parent { VpcSize::Current } else { chain.options.vpc_size };
    let size = footer.sizes.choose(choice);
    if size > MAX_SIZE {
        let reason = format!("{size} bytes are more than a vpc image can have");
        return Err(file.corrupt(reason).at(footer.offset));
    }
    if choice == VpcSize::Auto
        && let Some((doubt, hint)) = footer.sizes.doubt(size)
    {
        chain.warn(Warning { hint, ..file.warning(doubt) });
    }
    if let Some(member) = chain.members.last_mut().filter(|_| !is_parent) {
        member.vpc_sizes = footer.sizes.differing(choice);
    }
    let end = file.size() - FOOTER as u64;
    if footer.kind == Kind::Fixed {
        if size > end {
            let reason = format!("has {size} bytes of content, and stores {end}");
            let error = file.corrupt(reason).at(end);
            let is_less = footer.sizes.current < footer.sizes.geometry;
            return Err(if is_less { error.with_hint(Hint::CurrentSize) } else { error });
        }
        if size == 0 && end > 0 {
            return Err(not_empty(file, footer.offset).with_hint(Hint::VpcSize));
        }
        let layer = Raw::beginning(file.clone(), size);
        return Ok(OpenedLayer { layer: Box::new(layer), backing: None });
    }
    let header = Header::read(file, footer.next, size)?;
    let backing = match footer.kind {
        Kind::Differencing => {
            let Parent { name, id } = Parent::read(file, footer.next)?;
            let check = move |found: &HostFile| check_parent(found, id);
            Some(BackingFile::parent(name, Format::Vpc, check))
        }
        Kind::Fixed | Kind::Dynamic => None,
    };
    let is_difference = backing.is_some();
    let layer = Sparse::new(file.clone(), size, header, is_difference, chain.layer_caches());
    Ok(OpenedLayer { layer: Box::new(layer), backing })
}

/// Fails unless a disk has the identifier that a difference to it records.
fn check_parent(file: &HostFile, id: Id) -> Result<()> {
    let footer = Footer::read(file)?;
    if footer.id == id {
        return Ok(());
    }
    let reason = "is not the parent of the disk above it: their identifiers differ";
    Err(file.error(ErrorKind::Reference, reason).at(footer.offset + footer::ID_AT))
}

/// Limit of QEMU and of the format, 2040 GiB.
const MAX_SIZE: u64 = 0xff00_0000 * 512;
