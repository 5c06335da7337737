//! Sparse files: grains that are found through a grain directory and grain tables.
//!
//! The layout is the one of hosted products, with two copies of the tables, compressed grains and grains
//! of zeros; the one of ESX; or the one of ESXi ([`se_sparse`](super::se_sparse)). QEMU reads the first copy
//! of the tables. If the second one differs where bytes are looked up, this fails, because other
//! programs read the second one.

use std::sync::Arc;

use super::header::{COWD, CowdHeader, Header, SECTOR, unclean};
use crate::caches::LayerCaches;
use crate::chain::Chain;
use crate::error::{Error, ErrorKind, Result};
use crate::extent::ExtentKind;
use crate::formats::decompress::{Cluster, Compression};
use crate::formats::fields::{Entry, Head, check_inside};
use crate::formats::table_cache::Table;
use crate::layer::{GuestRange, Mapping, MappingKind, Purpose, Stored};
use crate::origin::{Encoding, Place};
use crate::storage::HostFile;

/// A sparse file. Guest offsets begin at its first grain.
pub(super) struct Sparse {
    file: Arc<HostFile>,
    layout: Layout,
    /// Size of the guest content in bytes.
    size: u64,
    /// Size of a grain in bytes.
    grain: u64,
    /// Number of entries in a grain table.
    entries: u64,
    /// Offset of the grain directory in bytes.
    directory: u64,
    redundant: Option<u64>,
    caches: LayerCaches,
}

/// The encoding of tables and grains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    Hosted {
        has_zero_grains: bool,
        is_compressed: bool,
    },
    Esx,
    /// With the offsets of tables and grains in sectors.
    SeSparse {
        tables: u64,
        grains: u64,
    },
}

/// The place of a grain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grain {
    Below,
    Zero,
    /// At this offset in the file.
    Data(u64),
    /// At this offset in the file, compressed and after a marker.
    Compressed(u64),
}

/// The sizes and offsets of a sparse file, in sectors.
pub(super) struct Shape {
    pub capacity: u64,
    pub grain: u64,
    pub entries: u64,
    pub directory: u64,
    pub redundant: Option<u64>,
}

impl Sparse {
    /// Opens a sparse file of hosted products or of ESX.
    pub fn open(chain: &mut Chain<'_>, file: &Arc<HostFile>) -> Result<Self> {
        if file.read_head(COWD.len())? == COWD {
            Self::esx(chain, file)
        } else {
            Self::hosted(chain, file, &Header::read(file)?)
        }
    }

    /// Opens a sparse file of hosted products.
    pub fn hosted(chain: &mut Chain<'_>, file: &Arc<HostFile>, header: &Header) -> Result<Self> {
        let Header { capacity, grain, entries, directory, redundant, .. } = *header;
        let Header { has_zero_grains, is_compressed, .. } = *header;
        if entries > MAX_ENTRIES {
            return Err(impossible(file));
        }
        if header.is_unclean {
            chain.warn(unclean(file));
        }
        if is_compressed && grain > MAX_COMPRESSED {
            let reason = format!("has compressed grains of more than {MAX_COMPRESSED} sectors");
            return Err(file.error(ErrorKind::Unsupported, reason));
        }
        let layout = Layout::Hosted { has_zero_grains, is_compressed };
        let shape = Shape { capacity, grain, entries, directory, redundant };
        Self::new(chain, file, layout, &shape)
    }

    fn esx(chain: &mut Chain<'_>, file: &Arc<HostFile>) -> Result<Self> {
        let header = CowdHeader::read(file)?;
        if header.is_unclean {
            chain.warn(unclean(file));
        }
        let CowdHeader { capacity, grain, directory, directory_entries, .. } = header;
        let entries = ESX_ENTRIES;
        if directory_entries > MAX_TABLES {
            return Err(impossible(file));
        }
        if capacity > directory_entries.saturating_mul(grain.saturating_mul(entries)) {
            return Err(file.corrupt("has a grain directory that is too small for its size"));
        }
        let shape = Shape { capacity, grain, entries, directory, redundant: None };
        Self::new(chain, file, Layout::Esx, &shape)
    }

    /// Creates a sparse file after checking its shape.
    pub fn new(
        chain: &Chain<'_>,
        file: &Arc<HostFile>,
        layout: Layout,
        shape: &Shape,
    ) -> Result<Self> {
        let Shape { capacity, grain, entries, directory, redundant } = *shape;
        let is_sane = (1..=MAX_CAPACITY).contains(&capacity)
            && (1..=MAX_GRAIN).contains(&grain)
            && entries > 0;
        // QEMU counts the sectors of a table in 32 bits.
        let span =
            grain.checked_mul(entries).filter(|span| is_sane && u32::try_from(*span).is_ok());
        let span = span.ok_or_else(|| impossible(file))?;
        let tables = capacity.div_ceil(span);
        if tables > MAX_TABLES {
            return Err(impossible(file));
        }
        let place = |sector: u64| {
            let offset = sector.checked_mul(SECTOR).filter(|offset| *offset != 0);
            let offset = offset.ok_or_else(|| impossible(file))?;
            check_inside(file, offset, tables * layout.entry().width() as u64, "grain directory")?;
            Ok(offset)
        };
        let (directory, redundant) = (place(directory)?, redundant.map(place).transpose()?);
        let (size, grain) = (capacity * SECTOR, grain * SECTOR);
        let (file, caches) = (file.clone(), chain.layer_caches());
        Ok(Self { file, layout, size, grain, entries, directory, redundant, caches })
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    pub fn grain_size(&self) -> u64 {
        self.grain
    }

    pub fn is_compressed(&self) -> bool {
        matches!(self.layout, Layout::Hosted { is_compressed: true, .. })
    }

    /// Returns one mapping for the guest bytes of `range`, as in
    /// [`Layer::map`](crate::layer::Layer::map).
    pub fn map(&self, range: GuestRange, purpose: Purpose) -> Result<Mapping<'_>> {
        let GuestRange { offset, limit, far, .. } = range;
        let (grain, mut length) = self.look_up(range)?;
        let end = match grain {
            Grain::Below => far,
            Grain::Zero => limit,
            Grain::Data(_) | Grain::Compressed(_) => length,
        };
        while length < end {
            // An error here belongs to the next run and is found again there.
            let (next, left) = (offset + length, end - length);
            if grain == Grain::Below
                && let Some(hole) = self.hole(next)
            {
                length += hole.min(left);
                continue;
            }
            match self.look_up(GuestRange { offset: next, limit: left, far: left, ..range }) {
                Ok((more, next)) if more == grain => length += next,
                _ => break,
            }
        }
        let kind = match grain {
            Grain::Below => MappingKind::Below,
            Grain::Zero => MappingKind::Zero,
            Grain::Data(host) => {
                if purpose == Purpose::Read {
                    self.check_data(host, length, offset)?;
                }
                MappingKind::Host { file: &self.file, offset: host }
            }
            Grain::Compressed(host) => {
                MappingKind::Opaque(Stored { offset: host, length: MARKER + 2 * self.grain })
            }
        };
        Ok(Mapping { kind, length })
    }

    /// Returns the place of the grain at the start of `range`, and the length of the run of such
    /// grains, as far as one window of the directory and one window of tables tell.
    fn look_up(&self, range: GuestRange) -> Result<(Grain, u64)> {
        let GuestRange { offset: guest, limit, far, is_lowest } = range;
        let index = guest / self.grain;
        let within = guest % self.grain;
        let redundant = match self.redundant {
            Some(directory) => Some(self.tables(directory, index)?),
            None => None,
        };
        let (table, entry) = match (self.tables(self.directory, index)?, &redundant) {
            (Tables::At(table, entry), None | Some(Tables::At(..))) => (table, entry),
            (Tables::Missing(grains), None) => return Ok(self.unallocated(grains, within, far)),
            (Tables::Missing(grains), Some(Tables::Missing(others))) => {
                return Ok(self.unallocated(grains.min(*others), within, far));
            }
            _ => return Err(self.disagree(guest)),
        };
        let (window, first) = self.caches.table_entry(&self.file, table, entry)?;
        let classify = |word| match self.layout.classify(word) {
            Ok(Grain::Zero) if is_lowest => Ok(Grain::Below),
            other => other,
        };
        let limit = if classify(window[first]) == Ok(Grain::Below) { far } else { limit };
        let wanted = (within + limit).div_ceil(self.grain);
        let mut words = &window[first..];
        words = &words[..words.len().min(usize::try_from(wanted).unwrap_or(usize::MAX))];
        if let Some(Tables::At(table, entry)) = redundant {
            let (window, first) = self.caches.table_entry(&self.file, table, entry)?;
            let same = words.iter().zip(&window[first..]).take_while(|(a, b)| a == b).count();
            if same == 0 {
                return Err(self.disagree(guest));
            }
            words = &words[..same];
        }
        let grain = classify(words[0]).map_err(|reason| {
            let reason = format!("grain table entry of guest offset {guest}: {reason}");
            self.file.corrupt(reason)
        })?;
        let continues = |(number, word): (u64, &u64)| {
            let next = classify(*word);
            match grain {
                Grain::Below | Grain::Zero => next == Ok(grain),
                Grain::Data(host) => host
                    .checked_add(number * self.grain)
                    .map(Grain::Data)
                    .is_some_and(|it| next == Ok(it)),
                Grain::Compressed(_) => false,
            }
        };
        let grains = 1 + (1..).zip(&words[1..]).take_while(|pair| continues(*pair)).count() as u64;
        let length = (grains * self.grain - within).min(limit);
        let grain = match grain {
            Grain::Data(host) => Grain::Data(host + within),
            other => other,
        };
        Ok((grain, length))
    }

    fn unallocated(&self, grains: u64, within: u64, far: u64) -> (Grain, u64) {
        (Grain::Below, far.min(grains.saturating_mul(self.grain) - within))
    }

    /// Returns the length of the run from `guest` on whose tables lie in holes of the file. Their entries
    /// are zero and are not read. Large disks have many empty tables.
    fn hole(&self, guest: u64) -> Option<u64> {
        let index = guest / self.grain;
        let width = self.layout.entry().width() as u64;
        let mut grains = u64::MAX;
        for directory in [Some(self.directory), self.redundant].into_iter().flatten() {
            let Ok(Tables::At(table, entry)) = self.tables(directory, index) else {
                return None;
            };
            let (offset, length) = (table.offset + entry * width, table.length - entry * width);
            let end = offset.checked_add(length).filter(|end| *end <= self.file.size());
            let extent = end.and_then(|_| self.file.extent(offset, length).ok())?;
            if extent.kind != ExtentKind::Zero {
                return None;
            }
            grains = grains.min(extent.length / width);
        }
        Some(grains.saturating_mul(self.grain)).filter(|_| grains > 0)
    }

    /// Finds the tables with the entry of grain `index`.
    fn tables(&self, directory: u64, index: u64) -> Result<Tables> {
        let entry = self.layout.entry();
        let width = entry.width() as u64;
        let span = self.grain * self.entries;
        let tables = self.size.div_ceil(span);
        let table = index / self.entries;
        let whole = Table { offset: directory, length: tables * width, entry };
        let (window, first) = self.caches.table_entry(&self.file, whole, table)?;
        let place = |word: u64| self.layout.table(word);
        let found = place(window[first]).map_err(|reason| {
            let reason =
                format!("grain directory entry of guest offset {}: {reason}", table * span);
            self.file.corrupt(reason).at(directory + table * width)
        })?;
        let Some(offset) = found else {
            let missing = window[first..].iter().take_while(|word| **word == 0).count() as u64;
            return Ok(Tables::Missing((table + missing).saturating_mul(self.entries) - index));
        };
        // Tables that follow each other in the file are read as one, if they are in one group.
        let length = self.entries * width;
        let group = first - first % GROUP;
        let behind = (0..).zip(&window[first..]).take(GROUP - first % GROUP);
        let behind = behind.take_while(|(distance, word)| {
            place(**word) == Ok(offset.checked_add(distance * length)) && **word != 0
        });
        let before = (1..).zip(window[group..first].iter().rev());
        let before = before.take_while(|(distance, word)| {
            place(**word) == Ok(offset.checked_sub(distance * length)) && **word != 0
        });
        let (behind, before) = (behind.count() as u64, before.count() as u64);
        let (offset, length) = (offset - before * length, (before + behind) * length);
        let index = before * self.entries + index % self.entries;
        Ok(Tables::At(Table { offset, length, entry }, index))
    }

    /// Fails unless the file holds the guest data at `host`.
    fn check_data(&self, host: u64, length: u64, guest: u64) -> Result<()> {
        if host.checked_add(length).is_some_and(|end| end <= self.file.size()) {
            return Ok(());
        }
        let reason = format!("data of guest offset {guest} lies past the end of the file");
        Err(self.file.error(ErrorKind::Corrupt, reason).at(host))
    }

    fn disagree(&self, guest: u64) -> Error {
        let reason = format!("the two copies of its grain tables differ at guest offset {guest}");
        self.file.corrupt(reason)
    }

    /// Fills `buf` with bytes of a compressed grain. Fails unless its marker names this grain.
    pub fn read(&self, stored: Stored, buf: &mut [u8], guest: u64) -> Result<()> {
        let offset = stored.offset;
        let marker = Head::read(&self.file, offset, MARKER as usize)?;
        let (sector, length) = (marker.le64(0), u64::from(marker.le32(8)));
        let start = guest - guest % self.grain;
        if sector.checked_mul(SECTOR) != Some(start) {
            let reason = format!(
                "compressed grain of guest offset {start} is marked as the grain of sector {sector}"
            );
            return Err(self.file.corrupt(reason).at(offset));
        }
        if !(1..=2 * self.grain - MARKER).contains(&length) {
            let reason = format!("compressed grain has an impossible length of {length} bytes");
            return Err(self.file.corrupt(reason).at(offset));
        }
        let stored = Stored { offset: offset + MARKER, length };
        check_inside(&self.file, stored.offset, stored.length, "compressed grain")?;
        let cluster = Cluster {
            file: &self.file,
            stored,
            compression: Compression::Zlib,
            size: self.grain as usize,
            least: self.grain.min(self.size - start) as usize,
        };
        self.caches.decompress(cluster, buf, (guest - start) as usize)
    }

    /// Returns the file of compressed grains, and the length of one that did not become shorter. The entry of a grain does not
    /// have its length, and larger ones are rare.
    pub fn encoded(&self) -> (&HostFile, u64) {
        (&self.file, MARKER + self.grain + SECTOR)
    }

    /// Returns the place of a byte in a compressed grain.
    pub fn place(&self, stored: Stored, guest: u64) -> Option<Place> {
        let Stored { offset, length } = stored;
        let method = Compression::Zlib.name();
        let encoding = Encoding { offset, length, method, decoded: self.grain };
        Some(Place::encoded(self.file.id()?, encoding, guest % self.grain))
    }
}

/// The tables with the entry of a grain.
enum Tables {
    /// There are none for this number of grains.
    Missing(u64),
    /// The entry has this index in the table, which may be several tables of the file.
    At(Table, u64),
}

impl Layout {
    /// Returns the encoding of directories and tables.
    fn entry(self) -> Entry {
        match self {
            Self::Hosted { .. } | Self::Esx => Entry::Le32,
            Self::SeSparse { .. } => Entry::Le64,
        }
    }

    /// Returns the offset of the table of a directory entry, if it has one.
    fn table(self, word: u64) -> Result<Option<u64>, &'static str> {
        let sector = match self {
            _ if word == 0 => return Ok(None),
            Self::Hosted { has_zero_grains: true, .. } if word == 1 => {
                return Err("the table is marked as zeros");
            }
            Self::Hosted { .. } | Self::Esx => Some(word),
            Self::SeSparse { tables, .. } => match word >> 32 {
                0x1000_0000 => {
                    let first = (word & 0xffff_ffff) * SE_TABLE_SECTORS;
                    // QEMU has 32 bits for the sector of a table.
                    tables.checked_add(first).filter(|sector| *sector <= u32::MAX.into())
                }
                _ => return Err("unknown type"),
            },
        };
        match sector.and_then(|sector| sector.checked_mul(SECTOR)) {
            Some(0) | None => Err("impossible place of a table"),
            offset => Ok(offset),
        }
    }

    /// Returns the grain of a table entry.
    fn classify(self, word: u64) -> Result<Grain, &'static str> {
        match self {
            _ if word == 0 => Ok(Grain::Below),
            Self::Hosted { has_zero_grains: true, .. } if word == 1 => Ok(Grain::Zero),
            Self::Hosted { .. } | Self::Esx if word == 1 => Err("data in the header"),
            Self::Hosted { is_compressed: true, .. } => Ok(Grain::Compressed(word * SECTOR)),
            Self::Hosted { .. } | Self::Esx => Ok(Grain::Data(word * SECTOR)),
            Self::SeSparse { grains, .. } => match word >> 60 {
                1 | 2 => Ok(Grain::Zero),
                3 => {
                    let number = (word >> 48 & 0xfff) | (word & 0xffff_ffff_ffff) << 12;
                    let sector = number.checked_mul(SE_GRAIN).and_then(|at| at.checked_add(grains));
                    let offset = sector.filter(|sector| *sector <= MAX_CAPACITY);
                    let offset = offset.map(|sector| sector * SECTOR);
                    offset.map(Grain::Data).ok_or("impossible place of a grain")
                }
                _ => Err("unknown type"),
            },
        }
    }
}

pub(super) fn impossible(file: &HostFile) -> Error {
    file.corrupt("has impossible sizes or offsets in its header")
}

/// Size of the marker of a compressed grain in bytes: its first sector and its compressed length.
const MARKER: u64 = 12;

/// Number of entries in a grain table of ESX.
const ESX_ENTRIES: u64 = 4096;

/// Sectors of a grain, and of a grain table, of ESXi.
pub(super) const SE_GRAIN: u64 = 8;
pub(super) const SE_TABLE_SECTORS: u64 = 64;

/// Maximum number of tables that are read as one. A power of two, so that a group is in one window of
/// the directory.
const GROUP: usize = 32;

/// Limits of QEMU, in sectors and entries.
const MAX_GRAIN: u64 = 0x20_0000;
const MAX_ENTRIES: u64 = 512;

/// Maximum number of grain tables, as in QEMU. Their directory is in the file as a whole, and is read in windows.
/// Limit in tables.
pub(super) const MAX_TABLES: u64 = 32 << 20;

/// Maximum number of sectors with a valid offset in bytes.
const MAX_CAPACITY: u64 = (i64::MAX as u64) / SECTOR;

/// Maximum size of a compressed grain. QEMU reads larger ones, but every thread needs room for the compressed and the
/// decompressed bytes. Writers use 128.
/// Limit in sectors.
const MAX_COMPRESSED: u64 = 4096;
