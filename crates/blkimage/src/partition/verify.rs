//! Verifies both copies of a GPT, and whether they agree.

use std::fmt;

use super::entries::{Partition, Table};
use super::gpt::{self, Header, SECTOR_SIZES};
use super::mbr::{self, BootSector};
use crate::{Result, Source};

/// A GPT, both of whose copies were verified.
#[derive(Debug)]
#[non_exhaustive]
pub struct Gpt {
    /// Size of a sector in bytes.
    pub sector_size: u64,
    /// Whether the MBR protects it.
    pub protection: Protection,
    /// The parts with a checksum, and the protective MBR. Parts that no intact header describes are missing.
    pub parts: Vec<Part>,
    /// Partitions of the first intact copy, none if both are damaged.
    pub table: Table,
    /// Contradictions between intact parts.
    pub contradictions: Vec<String>,
    /// Properties that are unusual but valid.
    pub remarks: Vec<String>,
}

/// Whether an MBR protects a GPT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// It does.
    Protective,
    /// It does not, although one of its partitions contains the header.
    Damaged,
    /// There is no MBR, or it has no partitions. The GPT may be what is left of an earlier use of the disk.
    Missing,
    /// An MBR with other partitions is in use instead.
    Replaced,
}

/// A part of a GPT.
#[derive(Debug)]
#[non_exhaustive]
pub struct Part {
    /// The structure.
    pub structure: Structure,
    /// Offset on the disk in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// The defect, `None` if it is intact.
    pub defect: Option<Defect>,
}

/// A structure of a GPT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structure {
    /// The MBR, which has no checksum.
    ProtectiveMbr,
    /// The header at the beginning of the disk.
    PrimaryHeader,
    /// The entries after it.
    PrimaryEntries,
    /// The header at the end of the disk.
    BackupHeader,
    /// The entries before it.
    BackupEntries,
}

impl Structure {
    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ProtectiveMbr => "protective MBR",
            Self::PrimaryHeader => "primary header",
            Self::PrimaryEntries => "primary entries",
            Self::BackupHeader => "backup header",
            Self::BackupEntries => "backup entries",
        }
    }
}

/// Defect of a part of a GPT.
#[derive(Debug)]
#[non_exhaustive]
pub enum Defect {
    /// The checksum does not match.
    Checksum {
        /// The stored one.
        stored: u32,
        /// The sum of the bytes.
        computed: u32,
    },
    /// Something else is wrong.
    Other(String),
    /// It cannot be read.
    Unreadable(crate::Error),
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checksum { stored, computed } => {
                write!(f, "crc32 {computed:#010x}, stored {stored:#010x}")
            }
            Self::Other(reason) => f.write_str(reason),
            Self::Unreadable(error) => error.fmt(f),
        }
    }
}

impl From<gpt::Defect> for Defect {
    fn from(defect: gpt::Defect) -> Self {
        match defect {
            gpt::Defect::Checksum { stored, computed, .. } => Self::Checksum { stored, computed },
            gpt::Defect::Unreadable(error) => Self::Unreadable(error),
            other => Self::Other(other.to_string()),
        }
    }
}

/// Verifies both copies of the GPT of a disk. Returns `None` if the disk has none.
///
/// # Errors
///
/// Fails if the first sector cannot be read.
pub fn verify_gpt(source: &dyn Source) -> Result<Option<Gpt>> {
    let sector = mbr::read(source).map_err(|error| match error {
        super::TableError::Image(error) => error,
        other => crate::Error::new(crate::ErrorKind::Corrupt, "", other.to_string()),
    })?;
    let is_protective = sector.as_ref().is_some_and(BootSector::protects_gpt);
    let end = sector.as_ref().and_then(BootSector::protected_end);
    let mut best: Option<Copies> = None;
    for sector_size in SECTOR_SIZES {
        let copies = Copies::read(source, sector_size, end);
        if best.as_ref().is_none_or(|best| copies.likelihood() > best.likelihood()) {
            best = Some(copies);
        }
    }
    let Some(copies) = best else { return Ok(None) };
    let protection = match &sector {
        Some(_) if is_protective => Protection::Protective,
        Some(sector) if sector.covers(1) => Protection::Damaged,
        Some(sector) if sector.is_used() => Protection::Replaced,
        _ => Protection::Missing,
    };
    // Without a protective MBR, only an intact header is a sign of a GPT.
    if !is_protective && copies.primary.header.is_err() && copies.backup.header.is_err() {
        return Ok(None);
    }
    let incomplete = sector.as_ref().and_then(BootSector::incomplete);
    let defect = match protection {
        Protection::Replaced => None,
        Protection::Protective => {
            incomplete.map(|number| format!("entry {number} has a type or sectors, and not both"))
        }
        Protection::Damaged | Protection::Missing => {
            Some("no entry of the type ee protects the GPT".to_owned())
        }
    };
    Ok(Some(copies.verify(source, protection, defect)))
}

/// Both copies, for one size of a sector.
struct Copies {
    sector_size: u64,
    /// Sector of the last byte.
    last: u64,
    primary: Copy,
    backup: Copy,
}

struct Copy {
    sector: u64,
    header: Result<Header, gpt::Defect>,
}

impl Copy {
    fn read(source: &dyn Source, sector_size: u64, sector: u64) -> Self {
        Self { sector, header: Header::read(source, sector_size, sector) }
    }

    /// Returns how likely it is that there is a copy.
    fn likelihood(&self) -> u8 {
        match self.header {
            Ok(_) => 2,
            Err(gpt::Defect::Absent | gpt::Defect::Unreadable(_)) => 0,
            // The bytes that follow a sector of another size are beyond the end.
            Err(_) => u8::from(self.sector > 0),
        }
    }
}

impl Copies {
    /// Reads the headers. The backup is where the primary header says, or at the end of the disk, or in the sector
    /// `end`, where it was when the MBR was written.
    fn read(source: &dyn Source, sector_size: u64, end: Option<u64>) -> Self {
        let last = (source.size() / sector_size).saturating_sub(1);
        let primary = Copy::read(source, sector_size, 1);
        let place = primary.header.as_ref().ok().map(|header| header.other);
        let mut backup = Copy::read(source, sector_size, place.unwrap_or(last));
        if place.is_none() && matches!(backup.header, Err(gpt::Defect::Absent)) {
            let other = end.map(|end| Copy::read(source, sector_size, end));
            backup = other.filter(|other| other.header.is_ok()).unwrap_or(backup);
        }
        Self { sector_size, last, primary, backup }
    }

    fn likelihood(&self) -> u8 {
        self.primary.likelihood() + self.backup.likelihood()
    }

    /// Verifies the copies after an MBR that has a defect or none.
    fn verify(self, source: &dyn Source, protection: Protection, defect: Option<String>) -> Gpt {
        let Self { sector_size, last, primary, backup } = self;
        let mut gpt = Gpt {
            sector_size,
            protection,
            parts: Vec::new(),
            table: Table::default(),
            contradictions: Vec::new(),
            remarks: Vec::new(),
        };
        gpt.add(Structure::ProtectiveMbr, 0, 512, defect.map(Defect::Other));
        gpt.compare(&primary, &backup, last);
        let first = gpt.copy(source, primary, Structure::PrimaryHeader, Structure::PrimaryEntries);
        let second = gpt.copy(source, backup, Structure::BackupHeader, Structure::BackupEntries);
        gpt.table = first.or(second).unwrap_or_default();
        gpt.compare_partitions();
        gpt
    }
}

impl Gpt {
    fn add(&mut self, structure: Structure, offset: u64, length: u64, defect: Option<Defect>) {
        self.parts.push(Part { structure, offset, length, defect });
    }

    /// Adds the parts of a copy. Returns its partitions if it is intact.
    fn copy(
        &mut self,
        source: &dyn Source,
        copy: Copy,
        header: Structure,
        entries: Structure,
    ) -> Option<Table> {
        let offset = copy.sector.saturating_mul(self.sector_size);
        match copy.header {
            Err(defect) => {
                self.add(header, offset, self.sector_size, Some(defect.into()));
                None
            }
            Ok(found) => {
                self.add(header, offset, found.length, None);
                let (table, defect) = match found.table(source, self.sector_size) {
                    Ok(table) => (Some(table), None),
                    Err(defect) => (None, Some(defect.into())),
                };
                self.add(entries, found.entries, found.entries_length(), defect);
                table
            }
        }
    }

    /// Compares two headers.
    fn compare(&mut self, primary: &Copy, backup: &Copy, last: u64) {
        if let Ok(header) = &backup.header
            && backup.sector < last
            && header.other == 1
        {
            let sector = backup.sector;
            self.remarks.push(format!(
                "the backup lies in sector {sector} and not in the last sector, {last}: the disk was made larger"
            ));
        }
        let (Ok(first), Ok(second)) = (&primary.header, &backup.header) else { return };
        if second.other != primary.sector {
            let sector = second.other;
            self.contradictions.push(format!("the backup belongs to a header in sector {sector}"));
        }
        if !first.is_same(second) {
            self.contradictions.push("the two copies describe different partitions".to_owned());
        }
    }

    /// Compares the places of partitions.
    fn compare_partitions(&mut self) {
        let end = |it: &Partition| it.offset.saturating_add(it.length);
        let mut sorted = self.table.partitions.clone();
        sorted.sort_by_key(|partition| partition.offset);
        for pair in sorted.windows(2) {
            if end(&pair[0]) > pair[1].offset {
                let (one, two) = (pair[0].number, pair[1].number);
                self.contradictions.push(format!("partitions {one} and {two} overlap"));
            }
        }
    }
}
