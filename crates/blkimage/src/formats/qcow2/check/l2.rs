//! The entries of L2 tables.

use super::state::{Check, Source};
use super::tables::L2Table;
use crate::check::Reason;
use crate::error::Result;
use crate::formats::qcow2::entry::{COMPRESSED, COPIED, L2_RESERVED, OFFSET_MASK, Place, ZERO};
use crate::formats::two_level::Rules;

/// An L2 entry.
#[derive(Clone, Copy)]
struct Entry {
    index: u64,
    word: u64,
    /// Bitmap of subclusters, 0 if there are none.
    bitmap: u64,
}

impl Check<'_> {
    /// Counts the references of all tables, which are sorted by their offsets, and to them.
    pub fn count_l2_tables(&mut self, tables: &[L2Table]) -> Result<()> {
        let size = self.geometry.cluster_size();
        let mut buffer = vec![0; size.max(WINDOW) as usize];
        let mut rest = tables;
        while let Some(first) = rest.first() {
            let follows = |(number, table): &(u64, &L2Table)| {
                table.offset == first.offset + number * size && number * size < buffer.len() as u64
            };
            let together = (0..).zip(rest).take_while(follows).count();
            let (now, later) = rest.split_at(together);
            let bytes = &mut buffer[..together * size as usize];
            if self.input.read(bytes, first.offset)?.is_none() {
                for (table, bytes) in now.iter().zip(bytes.chunks_exact(size as usize)) {
                    self.count_l2_table(table, bytes)?;
                }
            } else {
                self.count_readable(now, &mut bytes[..size as usize])?;
            }
            if !self.goes_on() {
                break;
            }
            rest = later;
        }
        Ok(())
    }

    /// Counts the references of tables one by one, since some cannot be read.
    fn count_readable(&mut self, tables: &[L2Table], buffer: &mut [u8]) -> Result<()> {
        for table in tables {
            match self.input.read(buffer, table.offset)? {
                None => self.count_l2_table(table, buffer)?,
                Some(error) => {
                    self.count(table.offset, buffer.len() as u64, table.references());
                    self.unreadable("L2 table", table.offset, &error);
                }
            }
        }
        Ok(())
    }

    /// Counts the references of a table with these bytes, and to it.
    fn count_l2_table(&mut self, table: &L2Table, bytes: &[u8]) -> Result<()> {
        let references = table.references();
        self.count(table.offset, self.geometry.cluster_size(), references);
        let bits = self.geometry.cluster_bits();
        // QEMU looks at no flags if it cannot tell whether the flag of the table is right.
        let has_flags = self.is_first && table.active > 0 && table.offset != 0;
        let has_flags = has_flags && self.stored.get(table.offset >> bits)?.is_some();
        let words = bytes.as_chunks().0;
        if self.geometry.is_extended {
            for (index, words) in (0..).zip(words.as_chunks::<2>().0) {
                let [word, bitmap] = words.map(u64::from_be_bytes);
                if word != 0 || bitmap != 0 {
                    self.count_entry(table, Entry { index, word, bitmap }, has_flags)?;
                }
            }
            return Ok(());
        }
        let unaligned = OFFSET_MASK & (self.geometry.cluster_size() - 1);
        let special = match self.geometry.has_data_file {
            true => u64::MAX,
            false => COMPRESSED | ZERO | L2_RESERVED | unaligned,
        };
        for (index, word) in (0..).zip(words) {
            let word = u64::from_be_bytes(*word);
            if word == 0 {
                continue;
            }
            let offset = word & OFFSET_MASK;
            if word & special == 0 && offset != 0 && offset < self.length {
                self.counts.add(offset >> bits, references);
                let is_set = word & COPIED != 0;
                if has_flags
                    && let Some(stored) = self.stored.get(offset >> bits)?
                    && (stored == 1) != is_set
                {
                    let source = self.entry_source(table, index);
                    self.copied(source, offset, is_set, table.active.into())?;
                }
                continue;
            }
            self.count_entry(table, Entry { index, word, bitmap: 0 }, has_flags)?;
        }
        Ok(())
    }

    /// Counts the references of an entry, and reports what is wrong with it.
    #[cold]
    fn count_entry(&mut self, table: &L2Table, entry: Entry, has_flags: bool) -> Result<()> {
        let Entry { index, word, bitmap } = entry;
        let (references, geometry) = (table.references(), self.geometry);
        let source = self.entry_source(table, index);
        let place = geometry.place(word);
        if !matches!(place, Place::Compressed(_)) && word & L2_RESERVED != 0 {
            self.error(source, Reason::ReservedBits { entry: word }, references);
        }
        let is_zero = match place {
            Place::Compressed(stored) => {
                if word & COPIED != 0 {
                    self.error(source, Reason::CopiedCompressed, references);
                }
                if geometry.has_data_file {
                    self.error(source, Reason::CompressedInDataFile, references);
                } else if bitmap != 0 {
                    self.error(source, Reason::CompressedSubclusters, references);
                } else {
                    self.refer(source, stored.offset, stored.length, references);
                }
                false
            }
            Place::Host { offset, is_zero } => {
                self.count_data(source, offset, bitmap, references);
                if has_flags {
                    self.data_flag(source, offset, word & COPIED != 0, table.active.into())?;
                }
                is_zero
            }
            Place::None { is_zero } => {
                if bitmap as u32 != 0 {
                    self.error(source, Reason::UnallocatedSubclusters { bitmap }, references);
                }
                is_zero
            }
        };
        if is_zero && geometry.version < 3 {
            self.error(source, Reason::ZeroFlag, references);
        }
        Ok(())
    }

    /// Counts references to a cluster of data.
    fn count_data(&mut self, source: Source, offset: u64, bitmap: u64, references: u64) {
        if (bitmap >> 32) & bitmap != 0 {
            self.error(source, Reason::ContradictorySubclusters { bitmap }, references);
        }
        if !self.geometry.is_aligned(offset) {
            self.error(source, Reason::Unaligned { target: offset }, references);
        }
        if !self.geometry.has_data_file {
            self.refer(source, offset, self.geometry.cluster_size(), references);
        } else if source.guest.is_some_and(|guest| guest != offset) {
            self.error(source, Reason::DataFileOffset { target: offset }, references);
        }
    }

    /// Reports a wrong copied flag of a cluster of data. All clusters of an external data file have it.
    fn data_flag(&mut self, source: Source, offset: u64, is_set: bool, times: u64) -> Result<()> {
        if !self.geometry.has_data_file {
            self.copied(source, offset, is_set, times)?;
        } else if !is_set {
            let reason = Reason::CopiedFlag { stored: 1, is_set };
            self.report(self.severity(), source, reason, times);
        }
        Ok(())
    }

    fn entry_source(&self, table: &L2Table, index: u64) -> Source {
        let length = self.geometry.entry_words() * 8;
        let cluster = (u64::from(table.index) << self.geometry.l2_bits()) + index;
        let guest = cluster << self.geometry.cluster_bits();
        Source {
            structure: "L2 table",
            offset: table.offset + index * length,
            length,
            // The state of a virtual machine follows the content.
            guest: Some(guest).filter(|guest| *guest < self.header.size),
        }
    }
}

/// Number of bytes of tables that are read at once.
const WINDOW: u64 = 1 << 20;
