//! Apple disk images (`.dmg`, UDIF): compressed and stored runs of sectors, which tables in a property list or in a resource fork
//! list, and a trailer at the end of the file.
//!
//! The content is that of QEMU. Runs must be of all sectors that the trailer states, in order and once: QEMU fails where there is
//! none, and readers differ where there are several. Runs of types that QEMU lacks (ADC, xz) are read as well.
//!
//! The checksums of tables and of the file are handed out. No reader compares them unless it is asked to.

mod adc;
mod chunks;
mod codec;
mod fork;
mod plist;
mod sum;
mod table;
mod trailer;

#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use self::chunks::Chunks;
use self::codec::Codec;
use self::sum::Sum;
use self::table::{MAX_CHUNK, Place, Run, SECTOR, Table};
use self::trailer::Trailer;
use crate::chain::{Candidate, OpenedLayer};
use crate::error::{ErrorKind, Result};
use crate::layer::{GuestRange, Layer, Mapping, MappingKind, Purpose, Stored};
use crate::stated::{Stated, StatedSum, SumOf};
use crate::storage::HostFile;

/// An image.
struct Dmg {
    file: Arc<HostFile>,
    size: u64,
    /// In order, without gaps.
    runs: Vec<Run>,
    chunks: Chunks,
    stated: Stated,
}

/// A table with the name of its part of the content.
#[derive(PartialEq)]
struct Named {
    name: String,
    table: Vec<u8>,
}

/// Opens a file as an Apple disk image.
pub(crate) fn open(image: &Candidate) -> Result<OpenedLayer> {
    let dmg = Dmg::open(&image.file)?;
    Ok(OpenedLayer { layer: Box::new(dmg), backing: None })
}

impl Dmg {
    fn open(file: &Arc<HostFile>) -> Result<Self> {
        let trailer = Trailer::read(file)?;
        let mut stated = Stated::default();
        let mut runs: Vec<Run> = Vec::new();
        let (mut next, mut sums) = (0, Vec::new());
        for Named { name, table } in tables(file, &trailer)? {
            let table = Table::parse(&table, trailer.data.start, file.size())
                .map_err(|reason| file.corrupt(reason).at(trailer.plist.start))?;
            if table.start != next {
                let reason = "has tables of runs that overlap, have gaps or are not in order";
                return Err(file.corrupt(reason));
            }
            next += table.sectors;
            if runs.len() + table.runs.len() > MAX_RUNS {
                let reason = format!("has more than {MAX_RUNS} runs");
                return Err(file.error(ErrorKind::Unsupported, reason));
            }
            if let Sum::Crc32(sum) = table.sum {
                sums.extend(sum.to_be_bytes());
            }
            let ranges = || summed(&table.runs);
            add_sum(&mut stated, table.sum, || SumOf::Content { name, ranges: ranges() });
            runs.extend(table.runs);
        }
        if next != trailer.sectors {
            let reason = format!("has {} sectors and runs of {next}", trailer.sectors);
            return Err(file.corrupt(reason));
        }
        add_sum(&mut stated, trailer.data_sum, || SumOf::File(trailer.data.clone()));
        add_sum(&mut stated, trailer.master_sum, || SumOf::Sums(sums));
        let (file, size) = (file.clone(), next * SECTOR);
        Ok(Self { file, size, runs, chunks: Chunks::default(), stated })
    }

    fn run(&self, offset: u64) -> Option<&Run> {
        let behind = self.runs.partition_point(|run| run.sectors.start * SECTOR <= offset);
        self.runs.get(behind.checked_sub(1)?)
    }
}

impl Layer for Dmg {
    fn size(&self) -> u64 {
        self.size
    }

    fn map(&self, range: GuestRange, _purpose: Purpose) -> Result<Mapping<'_>> {
        let Some(run) = self.run(range.offset) else {
            return Ok(Mapping { kind: MappingKind::Zero, length: range.limit });
        };
        let left = (run.sectors.end * SECTOR).saturating_sub(range.offset);
        let kind = match run.place {
            Place::Zero | Place::Ignored if range.is_lowest => {
                return Ok(Mapping { kind: MappingKind::Below, length: left.min(range.far) });
            }
            Place::Zero | Place::Ignored => MappingKind::Zero,
            Place::Stored(offset) => {
                let within = range.offset - run.sectors.start * SECTOR;
                MappingKind::Host { file: &self.file, offset: offset + within }
            }
            Place::Compressed(_, offset, length) => MappingKind::Opaque(Stored { offset, length }),
        };
        Ok(Mapping { kind, length: left.min(range.limit) })
    }

    fn read(&self, stored: Stored, buf: &mut [u8], offset: u64) -> Result<()> {
        let run = self.run(offset);
        let Some((run, Place::Compressed(codec, ..))) = run.map(|run| (run, run.place)) else {
            return Err(self.file.error(ErrorKind::Argument, "has no such run"));
        };
        let start = run.sectors.start * SECTOR;
        let size = (run.sectors.end * SECTOR - start) as usize;
        let decode = |out: &mut [u8]| decode(&self.file, codec, stored, out, start);
        self.chunks.read(run.sectors.start, size, buf, (offset - start) as usize, decode)
    }

    fn stated(&self) -> Result<Option<Stated>> {
        Ok(Some(self.stated.clone()))
    }

    fn files(&self) -> Vec<&HostFile> {
        vec![&*self.file]
    }
}

/// Returns the tables of runs. If there are two copies, they must be equal: QEMU takes one of them, and others the other one.
fn tables(file: &HostFile, trailer: &Trailer) -> Result<Vec<Named>> {
    let read = |range: &Range<u64>, parse: fn(&[u8]) -> Result<Vec<Named>, String>, what: &str| {
        let length = range.end - range.start;
        if length > MAX_LIST {
            let reason = format!("has a {what} of {length} bytes");
            return Err(file.error(ErrorKind::Unsupported, reason).at(range.start));
        }
        let mut bytes = vec![0; length as usize];
        file.read_exact_at(&mut bytes, range.start)?;
        parse(&bytes).map_err(|reason| file.corrupt(format!("its {what} {reason}")).at(range.start))
    };
    let fork = || read(&trailer.fork, fork::tables, "resource fork");
    let plist = || read(&trailer.plist, plist::tables, "property list");
    let found = match (trailer.fork.is_empty(), trailer.plist.is_empty()) {
        (true, true) => Vec::new(),
        (false, true) => fork()?,
        (true, false) => plist()?,
        (false, false) => {
            let (fork, plist) = (fork()?, plist()?);
            if !fork.iter().map(|it| &it.table).eq(plist.iter().map(|it| &it.table)) {
                let reason = "has two copies of its tables of runs, which differ";
                return Err(file.corrupt(reason).at(trailer.fork.start));
            }
            plist
        }
    };
    match found.is_empty() {
        false => Ok(found),
        true => {
            let reason =
                "is a dmg image without a table of runs, as one that can be written (UDRW)";
            Err(file.error(ErrorKind::Unsupported, reason))
        }
    }
}

/// Adds a checksum that is stated, or says that it is not known.
fn add_sum(stated: &mut Stated, sum: Sum, of: impl FnOnce() -> SumOf) {
    match sum {
        Sum::None => {}
        Sum::Crc32(crc32) => stated.sums.push(StatedSum { crc32, of: of() }),
        Sum::Unknown(_) => stated.unknown_sums += 1,
    }
}

/// Returns the bytes of the content that the checksum of a table is of.
fn summed(runs: &[Run]) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for run in runs.iter().filter(|run| run.place != Place::Ignored) {
        let (start, end) = (run.sectors.start * SECTOR, run.sectors.end * SECTOR);
        match ranges.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => ranges.push(start..end),
        }
    }
    ranges
}

/// Fills `out` with the content of a run, which begins at `guest`.
fn decode(file: &HostFile, codec: Codec, stored: Stored, out: &mut [u8], guest: u64) -> Result<()> {
    let Stored { offset, length } = stored;
    let mut input = vec![0; length.min(MAX_CHUNK) as usize];
    file.read_exact_at(&mut input, offset)?;
    codec.decode(&input, out).map_err(|reason| {
        file.corrupt(format!("the run of guest offset {guest} {reason}")).at(offset)
    })
}

/// Maximum size of the property list and of the resource fork of a dmg image. A run takes 54 bytes of it.
/// Limit in bytes.
const MAX_LIST: u64 = 64 << 20;

/// Maximum number of runs of a dmg image. They take memory.
/// Limit in runs.
const MAX_RUNS: usize = 1 << 20;
