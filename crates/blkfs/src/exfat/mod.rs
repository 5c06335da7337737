//! exFAT.
//!
//! Checksums protect both boot regions, the up-case table and the directory entries of each file. Which clusters are allocated stands in
//! a bitmap. The file allocation table has only the chains of files whose clusters do not follow each other.

mod bitmap;
mod boot;
mod directory;
mod entry_set;
mod root;
mod upcase;

use crate::error::{Error, Result};
use crate::fat::clusters::{END, FREE, Place, Report, Structure, read_root, read_table};
use crate::fat::{ROOT, check_size, serial};
use crate::kind::Kind;
use crate::reader::Reader;
use crate::visitor::{ObjectId, Owner, Visitor, Wanted};
use crate::volume::Volume;

use bitmap::Bitmap;
use boot::BootSector;
use directory::Walk;
use root::{Located, Special};
use upcase::UpCase;

/// A volume.
struct ExFat {
    volume: Volume,
    boot: BootSector,
    label: Option<Vec<u8>>,
}

/// Opens a volume with exFAT if there is one.
///
/// # Errors
///
/// Fails if the image cannot be read, or if both boot sectors are invalid.
pub(crate) fn open(volume: &Volume) -> Result<Option<Box<dyn Reader>>> {
    if volume.size() < boot::SIZE as u64 || !boot::is_named(&volume.read(0, boot::SIZE)?) {
        return Ok(None);
    }
    let Some(boot) = boot::read(volume)? else {
        return Err(Error::damaged(0, "invalid boot sector of exFAT, and no valid backup"));
    };
    let root = read_root(volume, &boot.heap, boot.root, |cluster| {
        boot.table.entry(volume, cluster).filter(|next| !matches!(*next, END | FREE))
    });
    let label = root::label(&root);
    Ok(Some(Box::new(ExFat { volume: volume.clone(), boot, label })))
}

impl Reader for ExFat {
    fn kind(&self) -> Kind {
        Kind::ExFat
    }

    fn size(&self) -> u64 {
        self.boot.size
    }

    fn label(&self) -> Option<Vec<u8>> {
        self.label.clone()
    }

    fn uuid(&self) -> Option<String> {
        Some(serial(self.boot.serial))
    }

    fn is_settled(&self) -> bool {
        let region = boot::region(&self.volume, 0, self.boot.sector_size);
        region.is_ok_and(boot::Sum::is_equal)
    }

    fn remarks(&self) -> Vec<String> {
        let flags = self.boot.flags;
        let mut remarks = Vec::new();
        if flags & 2 != 0 {
            remarks.push("the volume was not unmounted".to_owned());
        }
        if flags & 4 != 0 {
            remarks.push("a system had errors when it read or wrote the volume".to_owned());
        }
        if self.boot.table.copies > 1 {
            let active = self.boot.table.active + 1;
            remarks.push(format!(
                "there are two FATs and bitmaps (TexFAT), of which number {active} is in use"
            ));
        }
        remarks
    }

    fn root(&self) -> ObjectId {
        ROOT
    }

    fn walk(&self, wanted: Wanted, visitor: &mut dyn Visitor) -> Result<()> {
        let (boot, report) = (&self.boot, &mut Report::new(visitor, wanted));
        check_size(&self.volume, boot.size, report);
        self.report_regions(report);
        let runs = read_table(&boot.table, &self.volume, boot.heap, report)?;
        let mut walk = Walk::new(&runs);
        let clusters = self.claim_root(&mut walk, report);
        let special = root::read(&self.volume, boot, &runs, clusters, report)?;
        self.read_bitmaps(&mut walk, &special, report)?;
        self.read_upcase(&mut walk, &special, report)?;
        walk.run(&self.volume, Place::Chain { first: boot.root, clusters }, report)
    }
}

impl ExFat {
    /// Reports what is before and after the clusters, and verifies the boot regions.
    fn report_regions(&self, report: &mut Report<'_>) {
        let boot = &self.boot;
        let region = boot::SECTORS * boot.sector_size;
        report.metadata("boot region", 0, region);
        report.metadata("backup boot region", region, 2 * region);
        report.metadata("reserved sectors", 2 * region, boot.table.start);
        report.metadata("FAT", boot.table.start, boot.table.end());
        report.metadata("reserved sectors", boot.table.end(), boot.heap.start);
        report.metadata("excess space", boot.heap.end(), boot.size);
        if report.wanted().checks {
            self.check_region("boot region", 0, report);
            self.check_region("backup boot region", region, report);
        }
    }

    fn check_region(&self, name: &'static str, start: u64, report: &mut Report<'_>) {
        let size = boot::SECTORS * self.boot.sector_size;
        let structure = Structure::new(name, start);
        match boot::region(&self.volume, start, self.boot.sector_size) {
            Err(error) => report.failed(structure, &error),
            Ok(sum) if sum.is_equal() => report.matched(name, 1, size),
            Ok(sum) => {
                let reason =
                    format!("checksum {:#010x}, stored {:#010x}", sum.computed, sum.stored);
                report.mismatch(structure, size, reason);
            }
        }
    }

    /// Claims the root directory. Returns the number of its clusters.
    fn claim_root(&self, walk: &mut Walk<'_>, report: &mut Report<'_>) -> u64 {
        let (heap, first) = (self.boot.heap, self.boot.root);
        let owner = Owner::Directory { object: ROOT };
        let chain = walk.claims.follow(walk.runs, first, |first, count| {
            report.extent(heap.offset(first), heap.size(count.into()), owner);
        });
        if let Some(defect) = chain.stop.defect() {
            let root = Structure::new("root directory", heap.offset(first)).of(ROOT);
            report.damaged(root, format!("{defect}, after {} clusters", chain.clusters));
        }
        chain.clusters
    }

    /// Claims and reports the clusters of a structure. Returns them as first clusters and counts, fewer than its length needs if they do
    /// not exist. Like other readers, takes clusters in a row where the chain is broken.
    fn claim_structure(
        &self,
        walk: &mut Walk<'_>,
        structure: Structure,
        located: &Located,
        report: &mut Report<'_>,
    ) -> Vec<(u32, u32)> {
        let heap = self.boot.heap;
        let needed = located.length.div_ceil(heap.cluster_size);
        let mut parts: Vec<_> = match needed <= heap.count.into() {
            true => walk.runs.parts(located.first, needed).collect(),
            false => Vec::new(),
        };
        if parts.iter().map(|(_, count)| u64::from(*count)).sum::<u64>() != needed {
            let existing = heap.limit().saturating_sub(located.first);
            let count = u32::try_from(needed).unwrap_or(u32::MAX).min(existing);
            parts = vec![(located.first, count)];
        }
        let owner = Owner::Metadata { structure: structure.name, object: None };
        for (first, count) in &mut parts {
            let wanted = std::mem::replace(count, walk.claims.claim(*first, *count));
            report.extent(heap.offset(*first), heap.size((*count).into()), owner);
            if *count < wanted {
                report.damaged(structure, "shares clusters with another structure");
            }
        }
        parts
    }

    fn read_bitmaps(
        &self,
        walk: &mut Walk<'_>,
        special: &Special,
        report: &mut Report<'_>,
    ) -> Result<()> {
        let mut is_found = false;
        for (flags, located) in &special.bitmaps {
            let structure = Structure::new(bitmap::NAME, located.entry);
            let parts = self.claim_structure(walk, structure, located, report);
            if flags & 1 != self.boot.table.active || is_found {
                continue;
            }
            is_found = true;
            let mut bitmap = Bitmap::read(&self.volume, &self.boot.heap, &parts, located, report)?;
            bitmap.report_unused(walk.runs, report);
            walk.bitmap = Some(bitmap);
        }
        if !is_found {
            let structure = Structure::new(bitmap::NAME, self.boot.heap.offset(self.boot.root));
            report.damaged(structure, "is not in the root directory");
        }
        Ok(())
    }

    fn read_upcase(
        &self,
        walk: &mut Walk<'_>,
        special: &Special,
        report: &mut Report<'_>,
    ) -> Result<()> {
        let Some((stored, located)) = &special.upcase else {
            let structure = Structure::new("up-case table", self.boot.heap.offset(self.boot.root));
            report.damaged(structure, "is not in the root directory");
            return Ok(());
        };
        let structure = Structure::new("up-case table", self.boot.heap.offset(located.first));
        let parts = self.claim_structure(walk, structure, located, report);
        let clusters = parts.iter().map(|(_, count)| u64::from(*count)).sum();
        if !(1..=upcase::MAX_SIZE).contains(&located.length)
            || self.boot.heap.size(clusters) < located.length
        {
            let reason = format!("has {} bytes, and {clusters} clusters", located.length);
            report.damaged(structure, reason);
            return Ok(());
        }
        let Some(bytes) = self.read_parts(&parts, located, structure, report)? else {
            return Ok(());
        };
        let computed = upcase::table_checksum(&bytes);
        if computed == *stored {
            report.matched(structure.name, 1, located.length);
            walk.upcase = Some(UpCase::parse(&bytes));
        } else {
            let reason = format!("checksum {computed:#010x}, stored {stored:#010x}");
            report.mismatch(structure, located.length, reason);
        }
        Ok(())
    }

    /// Reads a structure whose clusters suffice for its length.
    fn read_parts(
        &self,
        parts: &[(u32, u32)],
        located: &Located,
        structure: Structure,
        report: &mut Report<'_>,
    ) -> Result<Option<Vec<u8>>> {
        let heap = self.boot.heap;
        let mut bytes = Vec::new();
        for &(first, count) in parts {
            let size = heap.size(count.into()).min(located.length - bytes.len() as u64);
            match self.volume.read(heap.offset(first), size as usize) {
                Ok(part) => bytes.extend(part),
                Err(error) => {
                    report.failed(structure, &error);
                    return Ok(None);
                }
            }
        }
        report.advance(located.length)?;
        Ok(Some(bytes))
    }
}

#[cfg(test)]
mod tests;
