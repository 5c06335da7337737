//! The MFT: the table with a record for each file, which is a file itself.

use super::attribute::{Attribute, Body, attributes, kind};
use super::boot::Boot;
use super::content::{Content, NO_BUDGET, attribute_list, charge};
use super::record::{Header, Reference, restore};
use super::runs::Stream;
use crate::error::{Error, Result};
use crate::volume::Volume;

/// A volume whose MFT was found.
pub(super) struct Disk {
    pub volume: Volume,
    pub boot: Boot,
    /// The content of the MFT.
    pub mft: Stream,
    /// A bit for each record, if it could be read.
    bitmap: Option<Vec<u8>>,
}

/// The first record of a file and those that its attribute list names.
pub(super) struct Records {
    pub records: Vec<Vec<u8>>,
    /// Reason why records are missing.
    pub problem: Option<String>,
}

impl Records {
    /// Borrows them.
    pub fn slices(&self) -> Vec<&[u8]> {
        self.records.iter().map(Vec::as_slice).collect()
    }
}

impl Disk {
    /// Finds the MFT of a volume. A damaged first record is read from the mirror.
    pub fn open(volume: &Volume, boot: Boot) -> Result<Self> {
        let at = |cluster: u64| -> Result<Vec<u8>> {
            let mut record = volume.read(cluster * boot.cluster, boot.record)?;
            let offset = cluster * boot.cluster;
            restore(&mut record, b"FILE").map_err(|defect| {
                Error::damaged(offset, format!("the first MFT record has {defect}"))
            })?;
            Ok(record)
        };
        let first = at(boot.mft).or_else(|error| at(boot.mirror).map_err(|_| error))?;
        let offset = boot.mft * boot.cluster;
        let mut disk =
            Self { volume: volume.clone(), mft: Stream::new(boot.cluster), boot, bitmap: None };
        disk.find(&first)
            .map_err(|reason| Error::damaged(offset, format!("the MFT has {reason}")))?;
        disk.bitmap = disk.read_bitmap();
        Ok(disk)
    }

    /// Finds all clusters of the MFT, where those that are known tell where the next ones are described.
    fn find(&mut self, first: &[u8]) -> std::result::Result<(), &'static str> {
        let size = self.extend(first)?.ok_or("no data")?;
        // The size is set again with each part, because it ends where the clusters do.
        self.mft.set_size(size);
        let mut budget = self.volume.size();
        let listed = attribute_list(first, &self.volume, &self.boot, &mut budget);
        let Some(listed) = listed else { return Ok(()) };
        let mut listed = listed?;
        listed.retain(|it| it.kind == kind::DATA && !it.has_name && it.record.number != 0);
        listed.sort_by_key(|it| it.lowest);
        for entry in listed {
            let record = self.read(entry.record.number).filter(|record| {
                let base = Header::parse(record).and_then(|header| header.base);
                base.is_some_and(|base| base.number == 0)
            });
            self.extend(&record.ok_or("a part that cannot be read")?)?;
            self.mft.set_size(size);
        }
        Ok(())
    }

    /// Appends the clusters that a record describes. Returns the size if it has the first ones.
    fn extend(&mut self, record: &[u8]) -> std::result::Result<Option<u64>, &'static str> {
        let mut size = None;
        for attribute in attributes(record) {
            if let Attribute { kind: kind::DATA, name: [], body: Body::NonResident(part) } =
                attribute?
            {
                if part.lowest == 0 {
                    size = Some(part.initialized.min(part.size));
                }
                self.mft.append(part.runs(self.boot.clusters))?;
            }
        }
        if self.mft.stored_clusters() > self.boot.clusters {
            return Err("more clusters than the volume");
        }
        Ok(size)
    }

    fn read_bitmap(&self) -> Option<Vec<u8>> {
        let records = self.file(number::MFT)?;
        let content = Content::find(&records.slices(), kind::BITMAP, <[u8]>::is_empty, &self.boot);
        content.ok()??.read(&self.volume, self.record_count().div_ceil(8)).ok()
    }

    /// Returns the number of records.
    pub fn record_count(&self) -> u64 {
        // Holes do not make the MFT larger than the disk.
        self.mft.size().min(self.volume.size()) / self.boot.record as u64
    }

    /// Returns whether a record is in use according to the bitmap of the MFT, if that could be read.
    pub fn is_listed(&self, number: u64) -> Option<bool> {
        let byte = self.bitmap.as_ref()?.get(usize::try_from(number / 8).ok()?)?;
        Some(byte >> (number % 8) & 1 != 0)
    }

    /// Returns a record that is intact and in use.
    pub fn read(&self, number: u64) -> Option<Vec<u8>> {
        if number >= self.record_count() {
            return None;
        }
        let mut record = vec![0; self.boot.record];
        self.mft.read_into(&self.volume, &mut record, number * self.boot.record as u64).ok()?;
        restore(&mut record, b"FILE").ok()?;
        Header::parse(&record)?.is_used.then_some(record)
    }

    /// Returns the first record of a file with those that it names. Reads no more than `budget` bytes.
    pub fn records_of(&self, number: u64, first: &[u8], budget: &mut u64) -> Records {
        let mut found = Records { records: vec![first.to_vec()], problem: None };
        let listed = match attribute_list(first, &self.volume, &self.boot, budget) {
            None => return found,
            Some(Ok(listed)) => listed,
            Some(Err(reason)) => {
                found.problem = Some(reason.to_owned());
                return found;
            }
        };
        let sequence = Header::parse(first).map_or(0, |header| header.sequence);
        let base = Reference { number, sequence };
        let mut others: Vec<_> = listed.iter().map(|entry| entry.record).collect();
        others.retain(|record| record.number != number);
        others.sort_unstable();
        others.dedup();
        for other in others {
            if !charge(budget, self.boot.record as u64) {
                found.problem = Some(NO_BUDGET.to_owned());
                break;
            }
            let is_own = |record: &Vec<u8>| {
                let header = Header::parse(record);
                header.is_some_and(|it| it.base == Some(base) && it.sequence == other.sequence)
            };
            match self.read(other.number).filter(is_own) {
                Some(record) => found.records.push(record),
                None => {
                    let problem = format!("MFT record {}, which has no part of it", other.number);
                    found.problem.get_or_insert(problem);
                }
            }
        }
        found
    }

    /// Returns the records of a file that is in use and intact.
    pub fn file(&self, number: u64) -> Option<Records> {
        let first = self.read(number)?;
        let mut budget = self.volume.size();
        Some(self.records_of(number, &first, &mut budget))
    }

    /// Returns the content of an attribute of a file.
    pub fn content(&self, number: u64, kind: u32, is_name: fn(&[u8]) -> bool) -> Option<Content> {
        let records = self.file(number)?;
        Content::find(&records.slices(), kind, is_name, &self.boot).ok()?
    }
}

/// Numbers of the records of the file system's own files.
pub(super) mod number {
    pub const MFT: u64 = 0;
    pub const MIRROR: u64 = 1;
    pub const LOG_FILE: u64 = 2;
    pub const VOLUME: u64 = 3;
    pub const ATTRIBUTE_DEFINITIONS: u64 = 4;
    pub const ROOT: u64 = 5;
    pub const BITMAP: u64 = 6;
    pub const BOOT: u64 = 7;
    pub const BAD_CLUSTERS: u64 = 8;
    pub const SECURE: u64 = 9;
    pub const UPCASE: u64 = 10;
    pub const EXTEND: u64 = 11;
    /// The first records that are reserved and may be empty.
    pub const RESERVED: std::ops::Range<u64> = 12..24;
}
