//! FAT12, FAT16 and FAT32.
//!
//! A volume has copies of its table, which are compared, and long names with the checksums of short ones. FAT32 has a backup of the
//! boot sector and a sector with signatures, too. Nothing else can be verified.
//!
//! Clusters that the table has in use and no directory names have no owner: they belong to deleted files of a volume
//! that was not unmounted.

mod boot;
pub(crate) mod clusters;
mod directory;
mod entry;
mod number;
mod reserved;

use crate::error::Result;
use crate::kind::Kind;
use crate::reader::Reader;
use crate::visitor::{ObjectId, Owner, Visitor, Wanted};
use crate::volume::Volume;

use boot::{BootSector, Root};
use clusters::{END, Entry, Report, Run, Runs, Structure, read_root, read_table};
use entry::Form;
pub(crate) use entry::append_utf8;
pub(crate) use number::{Numbers, ROOT};
use reserved::Difference;

/// A volume.
struct Fat {
    volume: Volume,
    boot: BootSector,
    label: Option<Vec<u8>>,
    remarks: Vec<String>,
}

/// Opens a volume with FAT if there is one.
///
/// # Errors
///
/// Fails if the image cannot be read.
pub(crate) fn open(volume: &Volume) -> Result<Option<Box<dyn Reader>>> {
    if volume.size() < boot::SIZE as u64 {
        return Ok(None);
    }
    let Some(boot) = recognise(volume)? else { return Ok(None) };
    let (label, remarks) = (label(volume, &boot), remarks(volume, &boot));
    Ok(Some(Box::new(Fat { volume: volume.clone(), boot, label, remarks })))
}

/// Returns the boot sector if it is one of FAT: its fields are valid, and a table begins as one does, or the name of the kind is in it and
/// there is no partition table. Takes the backup if that fits better.
fn recognise(volume: &Volume) -> Result<Option<BootSector>> {
    let bytes = volume.read(0, boot::SIZE)?;
    let main = BootSector::parse(&bytes);
    let backup = || match &main {
        Some(main) => find_backup(volume, main.backup.as_slice()),
        None if boot::is_named_fat32(&bytes) => find_backup(volume, &boot::BACKUPS),
        None => None,
    };
    let fits = main.as_ref().is_some_and(|main| has_table(volume, main));
    let backup = if fits { None } else { backup() };
    let mut boot = backup.or(main.filter(|main| fits || main.is_named));
    if let Some(boot) = &mut boot
        && boot.backup.is_none()
        && boot.kind == Kind::Fat32
    {
        // The number of its sector may be what is damaged.
        let backup = find_backup(volume, &boot::BACKUPS).and_then(|backup| backup.backup);
        boot.backup = backup.filter(|offset| *offset < boot.table.start);
    }
    Ok(boot)
}

/// Returns the first backup boot sector at one of some offsets that knows where it is and fits the table.
fn find_backup(volume: &Volume, offsets: &[u64]) -> Option<BootSector> {
    offsets.iter().find_map(|offset| {
        let boot = BootSector::parse(&volume.read(*offset, boot::SIZE).ok()?)?;
        (boot.backup == Some(*offset) && has_table(volume, &boot)).then_some(boot)
    })
}

/// Returns whether a copy of the table begins as one does.
fn has_table(volume: &Volume, boot: &BootSector) -> bool {
    (0..boot.table.copies)
        .filter_map(|index| volume.read(boot.table.copy(index), 4).ok())
        .any(|entry| boot.is_first_entry(&entry))
}

/// Returns the label in the root directory, or that in the boot sector if there is none.
fn label(volume: &Volume, boot: &BootSector) -> Option<Vec<u8>> {
    let bytes = match boot.root {
        Root::Area(start, length) => volume.read(start, usize::try_from(length).ok()?).ok()?,
        Root::Chain(first) => read_root(volume, &boot.heap, first, |cluster| {
            boot.table.entry(volume, cluster).filter(|next| *next != END)
        }),
    };
    let entries: &[Entry] = bytes.as_chunks::<32>().0;
    let mut entries = entries.iter().take_while(|entry| Form::of(entry) != Form::End);
    let name = entries.find(|entry| Form::of(entry) == Form::Label).map(entry::stored_name);
    let label = name.as_ref().map(|name| &name[..]).or(boot.label())?;
    Some(entry::trimmed(label).to_vec()).filter(|label| !label.is_empty())
}

fn remarks(volume: &Volume, boot: &BootSector) -> Vec<String> {
    let flags = match boot.kind {
        Kind::Fat12 => None,
        Kind::Fat16 => boot.table.entry(volume, 1).map(|entry| (entry >> 15 & 1, entry >> 14 & 1)),
        _ => boot.table.entry(volume, 1).map(|entry| (entry >> 27 & 1, entry >> 26 & 1)),
    };
    let (is_clean, is_good) = flags.unwrap_or((1, 1));
    let backup = boot.backup.and_then(|offset| reserved::difference(volume, offset).ok());
    let remarks = [
        (is_clean == 0 || boot.state & 1 != 0, "the volume was not unmounted"),
        (
            is_good == 0 || boot.state & 2 != 0,
            "a system had errors when it read or wrote the volume",
        ),
        (
            !boot.table.is_mirrored,
            "one copy of the FAT is in use, and the others are not kept up to date",
        ),
        (
            backup == Some(Difference::Code),
            "the backup boot sector has other code than the boot sector",
        ),
    ];
    remarks.iter().filter(|(is_so, _)| *is_so).map(|(_, remark)| (*remark).to_owned()).collect()
}

impl Reader for Fat {
    fn kind(&self) -> Kind {
        self.boot.kind
    }

    fn size(&self) -> u64 {
        self.boot.size
    }

    fn label(&self) -> Option<Vec<u8>> {
        self.label.clone()
    }

    fn uuid(&self) -> Option<String> {
        self.boot.serial.map(serial)
    }

    fn remarks(&self) -> Vec<String> {
        self.remarks.clone()
    }

    fn root(&self) -> ObjectId {
        ROOT
    }

    fn walk(&self, wanted: Wanted, visitor: &mut dyn Visitor) -> Result<()> {
        let (boot, report) = (&self.boot, &mut Report::new(visitor, wanted));
        check_size(&self.volume, boot.size, report);
        reserved::owners(boot, report);
        if wanted.checks {
            reserved::check(&self.volume, boot, report);
        }
        let runs = read_table(&boot.table, &self.volume, boot.heap, report)?;
        report_unused(&runs, boot.size, report);
        directory::walk(&self.volume, boot, &runs, report)
    }
}

/// Returns a serial number as `blkid` prints it.
pub(crate) fn serial(number: u32) -> String {
    format!("{:04X}-{:04X}", number >> 16, number & 0xffff)
}

/// Reports a volume that is larger than its image.
pub(crate) fn check_size(volume: &Volume, size: u64, report: &mut Report<'_>) {
    let existing = volume.size();
    if size > existing {
        let reason = format!("states {size} bytes, of which {existing} exist");
        report.damaged(Structure::new("boot sector", 0), reason);
    }
}

/// Reports free clusters, bad clusters, and the bytes after the clusters.
fn report_unused(runs: &Runs, size: u64, report: &mut Report<'_>) {
    let heap = runs.heap();
    for (first, run) in runs.all() {
        let (count, owner) = match run {
            Run::Free(count) => (count, Owner::Free),
            Run::Bad(count) => (count, Owner::Metadata { structure: "bad cluster", object: None }),
            _ => continue,
        };
        report.extent(heap.offset(first), heap.size(count.into()), owner);
    }
    report.metadata("excess space", heap.end(), size);
}

#[cfg(test)]
pub(crate) mod testing;

#[cfg(test)]
mod tests;
