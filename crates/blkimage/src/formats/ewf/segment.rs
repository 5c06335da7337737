//! Reads the sections of all segments, in order.

use std::mem;

use super::case;
use super::names;
use super::section::Section;
use super::sums;
use super::table::Table;
use super::volume::Volume;
use crate::acquisition::{Acquisition, CaseField};
use crate::error::{ErrorKind, Result};
use crate::formats::fields::Head;
use crate::hint::Hint;
use crate::stated::{Stated, StatedDigest};
use crate::storage::HostFile;

/// What the segments said so far.
#[derive(Default)]
pub(super) struct Set {
    segments: u32,
    sections: u64,
    volume: Option<Volume>,
    tables: Vec<Table>,
    /// Number of chunks in the tables.
    chunks: u64,
    digests: Vec<StatedDigest>,
    /// Case data, and how good its source is.
    case: (Vec<CaseField>, u8),
    /// Number of sections with text.
    texts: u32,
    /// Ranges of sectors.
    errors: Vec<(u64, u64)>,
    more_errors: u64,
}

/// How a segment ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Another segment follows.
    Next,
    /// It is the last one.
    Done,
}

/// What all segments say.
pub(super) struct Finished {
    pub tables: Vec<Table>,
    pub chunk: u64,
    pub size: u64,
    pub stated: Stated,
    pub acquisition: Acquisition,
}

impl Set {
    /// Returns the number of segments that were read.
    pub fn segments(&self) -> u32 {
        self.segments
    }

    /// Reads the next segment.
    pub fn read(&mut self, file: &HostFile) -> Result<End> {
        self.read_header(file)?;
        let mut offset = HEADER;
        let mut is_table_before = false;
        loop {
            self.sections += 1;
            if self.sections > MAX_SECTIONS {
                let reason = format!("has more than {MAX_SECTIONS} sections");
                return Err(file.error(ErrorKind::Unsupported, reason).at(offset));
            }
            let section = Section::read(file, offset)?;
            match &*section.kind {
                b"next" => return Ok(End::Next),
                b"done" => return Ok(End::Done),
                b"table2" => match self.tables.last_mut().filter(|_| is_table_before) {
                    Some(table) => table.add_copy(&section)?,
                    // A copy of a table without chunks.
                    None if section.head(4)?.le32(0) == 0 => {}
                    None => return Err(section.invalid("is a copy without a table before it")),
                },
                _ => self.read_section(&section)?,
            }
            is_table_before = *section.kind == *b"table";
            offset = section.next;
        }
    }

    /// Reads the header of a segment, which has its number.
    fn read_header(&mut self, file: &HostFile) -> Result<()> {
        let head = Head::read(file, 0, HEADER as usize)?;
        let signature = &head.bytes()[..8];
        if signature == FILES {
            return Err(file_archive(file));
        }
        if signature != IMAGE {
            return Err(file.error(ErrorKind::Format, "is not an ewf image"));
        }
        let bytes = head.bytes();
        let number = u32::from(u16::from_le_bytes([bytes[9], bytes[10]]));
        if bytes[8] != 1 || bytes[11..] != [0, 0] || number == 0 {
            return Err(file.corrupt("has an invalid header").at(8));
        }
        let expected = self.segments + 1;
        if number != expected {
            let reason = match names::first(file).filter(|_| expected == 1) {
                Some(first) => {
                    format!("is segment {number} of an image: give its first one, {first}")
                }
                None => {
                    format!("is segment {number} of an image, where segment {expected} should be")
                }
            };
            return Err(file.error(ErrorKind::Reference, reason).at(9));
        }
        self.segments = number;
        Ok(())
    }

    fn read_section(&mut self, section: &Section<'_>) -> Result<()> {
        self.texts +=
            u32::from(matches!(&*section.kind, b"header" | b"header2" | b"xheader" | b"xhash"));
        if self.texts > MAX_TEXTS {
            let reason = format!("has more than {MAX_TEXTS} sections of text");
            return Err(section.file().error(ErrorKind::Unsupported, reason).at(section.offset));
        }
        match &*section.kind {
            b"header" => self.add_case(case::header(section)?, 1),
            b"header2" => self.add_case(case::header2(section)?, 2),
            b"xheader" => self.add_case(case::xheader(section)?, 0),
            b"volume" | b"disk" | b"data" => self.add_volume(section)?,
            b"table" => self.add_table(section)?,
            b"hash" => self.add_digests(sums::hash(section)?),
            b"digest" => self.add_digests(sums::digest(section)?),
            b"xhash" => self.add_digests(sums::xhash(section)?),
            b"error2" => {
                let Self { errors, more_errors, .. } = self;
                sums::errors(section, |first, count| match errors.len() < MAX_ERRORS {
                    true => errors.push((first, count)),
                    false => *more_errors += 1,
                })?;
            }
            b"session" => sums::sessions(section)?,
            b"ltree" | b"ltypes" => return Err(file_archive(section.file())),
            // Later programs may add sections.
            _ => {}
        }
        Ok(())
    }

    /// Keeps case data if no better source was seen.
    fn add_case(&mut self, case: Vec<CaseField>, rank: u8) {
        if !case.is_empty() && (self.case.0.is_empty() || rank > self.case.1) {
            self.case = (case, rank);
        }
    }

    /// Keeps the volume, or compares its copy.
    fn add_volume(&mut self, section: &Section<'_>) -> Result<()> {
        let found = Volume::read(section)?;
        if found.is_of_files() {
            return Err(file_archive(section.file()));
        }
        match &self.volume {
            None if *section.kind == *b"data" => {
                Err(section.invalid("is a copy without an original"))
            }
            None => {
                self.volume = Some(found);
                Ok(())
            }
            Some(volume) if *volume == found => Ok(()),
            Some(_) => {
                let reason = "is a segment of another image: its size, chunks or id differ";
                let reason = match section.offset == HEADER {
                    true => reason.to_owned(),
                    false => {
                        "has two sections that contradict each other about its size".to_owned()
                    }
                };
                Err(section.file().corrupt(reason).at(section.offset))
            }
        }
    }

    fn add_table(&mut self, section: &Section<'_>) -> Result<()> {
        let Some(volume) = &self.volume else {
            return Err(section.invalid("comes before the size of the content"));
        };
        let segment = self.segments as usize - 1;
        if let Some(table) = Table::read(section, volume, segment, self.chunks)? {
            self.chunks += table.count;
            if self.chunks > volume.chunks {
                return Err(section.invalid("has more chunks than the image"));
            }
            self.tables.push(table);
        }
        Ok(())
    }

    /// Keeps digests that differ from those known.
    fn add_digests(&mut self, digests: Vec<StatedDigest>) {
        for digest in digests {
            if !self.digests.contains(&digest) && self.digests.len() < MAX_DIGESTS {
                self.digests.push(digest);
            }
        }
    }

    /// Returns what all segments say. `first` is the first one.
    pub fn finish(&mut self, first: &HostFile) -> Result<Finished> {
        let Some(volume) = self.volume.take() else {
            return Err(first.corrupt("does not state the size of its content"));
        };
        if self.chunks != volume.chunks {
            let reason = format!(
                "has {} chunks, and its tables have {}: a segment may be missing or cut off",
                volume.chunks, self.chunks
            );
            return Err(first.corrupt(reason));
        }
        let sector = volume.sector;
        let range = |(start, count): &(u64, u64)| {
            let [start, end] = [*start, start + count];
            start.saturating_mul(sector).min(volume.size)
                ..end.saturating_mul(sector).min(volume.size)
        };
        let acquisition = Acquisition {
            chunk_size: volume.chunk,
            chunks: volume.chunks,
            sector_size: sector,
            compression: volume.compression(),
            medium: volume.medium(),
            is_physical: volume.is_physical(),
            case: mem::take(&mut self.case.0),
            errors: self.errors.iter().map(range).collect(),
            more_errors: self.more_errors,
        };
        let digests = mem::take(&mut self.digests);
        Ok(Finished {
            tables: mem::take(&mut self.tables),
            chunk: volume.chunk,
            size: volume.size,
            stated: Stated { digests, parts: Some("Adler-32 of each chunk"), ..Stated::default() },
            acquisition,
        })
    }
}

impl Finished {
    /// Returns a warning if parts of the content could not be read when it was acquired.
    pub fn describe_errors(&self) -> Option<String> {
        let Acquisition { errors, more_errors, .. } = &self.acquisition;
        let first = errors.first()?;
        let count = errors.len() as u64 + more_errors;
        let length: u64 = errors.iter().map(|range| range.end - range.start).sum();
        let more = if *more_errors > 0 { "more than " } else { "" };
        let ranges = if count == 1 { "range" } else { "ranges" };
        Some(format!(
            "{more}{length} bytes could not be read when it was acquired, in {count} {ranges}, the first at {}: their \
             content is not that of the medium",
            first.start
        ))
    }
}

fn file_archive(file: &HostFile) -> crate::Error {
    let reason = "is an EWF archive of files (.L01), and no image of a disk";
    file.error(ErrorKind::Unsupported, reason).with_hint(Hint::Raw)
}

const IMAGE: &[u8] = b"EVF\x09\r\n\xff\0";
const FILES: &[u8] = b"LVF\x09\r\n\xff\0";

/// Size of the header of a segment in bytes.
const HEADER: u64 = 13;

/// Maximum number of sections in all segments of an EWF image. A table of 16375 chunks has three.
/// Limit in sections.
const MAX_SECTIONS: u64 = 1 << 20;

/// Maximum number of sections with compressed text in an EWF image. `EnCase` writes three, each of which may have 4 MiB.
/// Limit in sections.
const MAX_TEXTS: u32 = 64;

/// Maximum number of ranges with errors of the acquisition of an EWF image that are listed. All are counted.
/// Limit in ranges.
const MAX_ERRORS: usize = 1000;

/// Maximum number of different digests that an EWF image states of its content.
/// Limit in digests.
const MAX_DIGESTS: usize = 8;
