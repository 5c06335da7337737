//! Maps guest offsets to runs of host bytes through tables of two levels, as in qcow, qcow2 and qed.
//!
//! One call reads one window of the L1 table and one window of an L2 table, and no more entries than
//! its limit covers. Consecutive empty L1 entries form one run.

use crate::caches::{LayerCaches, TablePart};
use crate::error::{ErrorKind, Result};
use crate::formats::fields::Entry;
use crate::formats::table_cache::Table;
use crate::layer::{GuestRange, Mapping, MappingKind, Purpose, Stored};
use crate::storage::HostFile;

/// An offset in the file that holds the clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostOffset(pub u64);

/// The kind of a run of guest bytes in a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapKind {
    /// Not in this layer: in the backing file, or zero without one.
    Unallocated,
    Zero,
    /// Contiguous bytes from this offset on.
    Data(HostOffset),
    /// Part of one compressed cluster, with its offset and the maximum number of compressed bytes.
    Compressed(Stored),
}

/// The location of the L1 table and its number of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct L1Table {
    pub offset: u64,
    pub entries: u64,
}

/// The reason why an entry is invalid.
pub(crate) type Invalid = &'static str;

/// The rules by which a format interprets its tables.
pub(crate) trait Rules {
    /// Encoding of both tables.
    const ENTRY: Entry;

    /// Returns the binary logarithm of the number of guest bytes under one L2 entry.
    fn cluster_bits(&self) -> u32;

    /// Returns the binary logarithm of the number of entries in an L2 table.
    fn l2_bits(&self) -> u32;

    /// Returns the number of words in an L2 entry.
    fn entry_words(&self) -> u64 {
        1
    }

    /// Returns the offset of the L2 table that an L1 entry names, or 0 if there is none.
    fn l2_offset(entry: u64) -> u64 {
        entry
    }

    /// Fails if no L2 table can begin at `offset`.
    fn check_l2_offset(&self, offset: u64) -> Result<(), Invalid>;

    /// Returns the kind of the guest bytes from `guest` on, and their length, which ends in the cluster
    /// of `guest`. `words` begins with the words of its L2 entry.
    fn piece(&self, words: &[u64], guest: u64) -> Result<(MapKind, u64), Invalid>;

    fn cluster_size(&self) -> u64 {
        1 << self.cluster_bits()
    }

    /// Returns the binary logarithm of the number of guest bytes under one L1 entry.
    fn l1_span_bits(&self) -> u32 {
        self.l2_bits() + self.cluster_bits()
    }
}

/// The tables of an image.
#[derive(Clone, Copy)]
pub(crate) struct Tables<'a, R> {
    pub file: &'a HostFile,
    pub caches: &'a LayerCaches,
    pub l1: L1Table,
    pub rules: &'a R,
}

impl<'a, R: Rules> Tables<'a, R> {
    /// Returns one mapping for the guest bytes of `range`, as in [`Layer::map`]. `data` is the file that
    /// holds the clusters.
    ///
    /// [`Layer::map`]: crate::layer::Layer::map
    pub fn map(
        self,
        data: &'a HostFile,
        range: GuestRange,
        purpose: Purpose,
    ) -> Result<Mapping<'a>> {
        let (kind, length) = self.look_up(range)?;
        let kind = match kind {
            MapKind::Unallocated => MappingKind::Below,
            MapKind::Zero => MappingKind::Zero,
            MapKind::Data(HostOffset(offset)) => {
                if purpose == Purpose::Read {
                    check_data(data, offset, length, range.offset)?;
                }
                MappingKind::Host { file: data, offset }
            }
            MapKind::Compressed(stored) => MappingKind::Opaque(stored),
        };
        Ok(Mapping { kind, length })
    }

    /// Returns the kind and length of the run that begins at the start of `range`.
    pub fn look_up(&self, range: GuestRange) -> Result<(MapKind, u64)> {
        let GuestRange { offset: guest, far, .. } = range;
        let span_bits = self.rules.l1_span_bits();
        let l1_index = guest >> span_bits;
        if l1_index >= self.l1.entries {
            return Ok((MapKind::Unallocated, far));
        }
        let l1 = table::<R>(self.l1.offset, self.l1.entries * 8);
        let (window, first) = self.caches.table_entry(self.file, l1, l1_index)?;
        let l2_offset = R::l2_offset(window[first]);
        if l2_offset == 0 {
            let wanted = ((guest + far - 1) >> span_bits) - l1_index + 1;
            let entries = window[first..].iter().take(wanted as usize);
            let empty = entries.take_while(|entry| R::l2_offset(**entry) == 0).count() as u64;
            let end = (l1_index + empty) << span_bits;
            return Ok((MapKind::Unallocated, far.min(end - guest)));
        }
        self.rules.check_l2_offset(l2_offset).map_err(|reason| {
            let reason = format!("L2 table offset {l2_offset:#x} {reason}");
            self.file.corrupt(reason).at(self.l1.offset + l1_index * 8)
        })?;
        let end = (l1_index + 1) << span_bits;
        let miss = || {
            if self.file.read_ahead() > 0 {
                self.announce_l2(&window[first..], guest, range.limit);
            }
        };
        self.map_l2(l2_offset, GuestRange { far: far.min(end - guest), ..range }, miss)
    }

    /// Announces the L2 tables after the part of one that has the entry of `guest`. `entries` are the L1 table's from
    /// the one of `guest` on.
    fn announce_l2(&self, entries: &[u64], guest: u64, limit: u64) {
        let rules = self.rules;
        let entry = rules.entry_words() * 8;
        let length = self.caches.window().min(entry << rules.l2_bits());
        let span = (length / entry) << rules.cluster_bits();
        let table_span = 1_u64 << rules.l1_span_bits();
        let start = guest - guest % table_span;
        let tables = (0..).zip(entries).flat_map(|(number, entry)| {
            let offset = R::l2_offset(*entry);
            let guest = start.saturating_add(table_span.saturating_mul(number));
            let is_table = offset != 0 && rules.check_l2_offset(offset).is_ok();
            let parts = if is_table { table_span / span } else { 0 };
            (0..parts).map(move |part| {
                let guest = guest.saturating_add(part * span);
                let offset = offset.saturating_add(part * length);
                TablePart { guest, span, offset, length }
            })
        });
        let behind = tables.skip_while(|part| part.guest <= guest);
        self.caches.announce_tables(self.file, guest, limit, behind);
    }

    fn map_l2(
        &self,
        l2_offset: u64,
        range: GuestRange,
        miss: impl FnOnce(),
    ) -> Result<(MapKind, u64)> {
        let GuestRange { offset: guest, limit, far, is_lowest } = range;
        let rules = self.rules;
        let l2 = table::<R>(l2_offset, (rules.entry_words() * 8) << rules.l2_bits());
        let index = (guest >> rules.cluster_bits()) & ((1 << rules.l2_bits()) - 1);
        let word = index * rules.entry_words();
        let (window, first) = self.caches.table_entry_or(self.file, l2, word, miss)?;

        let mut entries = Entries { rules, words: &window[first..], guest, is_lowest };
        let run = match entries.next_piece() {
            Some(Ok(piece)) => piece,
            Some(Err(reason)) => {
                let reason = format!("L2 entry of guest offset {guest}: {reason}");
                return Err(self.file.corrupt(reason).at(l2_offset + word * 8));
            }
            // A window holds whole entries, so the first one is present.
            None => return Err(self.file.corrupt("L2 table is cut off").at(l2_offset)),
        };
        let (kind, mut length) = run;
        let limit = if kind == MapKind::Unallocated { far } else { limit.min(far) };
        if guest.is_multiple_of(rules.cluster_size()) && length == rules.cluster_size() {
            length += entries.skip_like(kind, &window[first..], limit - length.min(limit));
        }
        while length < limit {
            // An invalid entry ends the run. Looking up its own offset returns the error.
            match entries.next_piece() {
                Some(Ok((next, more))) if continues(kind, length, next) => length += more,
                _ => break,
            }
        }
        Ok((kind, length.min(limit)))
    }
}

fn table<R: Rules>(offset: u64, length: u64) -> Table {
    Table { offset, length, entry: R::ENTRY }
}

/// The pieces that consecutive L2 entries describe, from a guest offset on.
struct Entries<'a, R> {
    rules: &'a R,
    words: &'a [u64],
    guest: u64,
    is_lowest: bool,
}

impl<R: Rules> Entries<'_, R> {
    fn next_piece(&mut self) -> Option<Result<(MapKind, u64), Invalid>> {
        let rules = self.rules;
        let words = rules.entry_words() as usize;
        if self.words.len() < words {
            return None;
        }
        let (kind, length) = match rules.piece(self.words, self.guest) {
            Ok((MapKind::Zero, length)) if self.is_lowest => (MapKind::Unallocated, length),
            Ok(found) => found,
            Err(reason) => return Some(Err(reason)),
        };
        self.guest += length;
        if self.guest & (rules.cluster_size() - 1) == 0 {
            self.words = &self.words[words..];
        }
        Some(Ok((kind, length)))
    }

    /// Skips clusters that continue the run of the whole cluster of `entry`, the one before. Returns
    /// their length, at most `limit`. There may be more that continue it.
    ///
    /// A preallocated image has millions of entries that only count up. All of them are valid if the first
    /// and the last are and name places in a row: their flags are the same, because no sum has a carry
    /// into them.
    fn skip_like(&mut self, kind: MapKind, entry: &[u64], limit: u64) -> u64 {
        let size = self.rules.cluster_size();
        let step = match kind {
            MapKind::Data(_) => size,
            MapKind::Unallocated | MapKind::Zero => 0,
            MapKind::Compressed(_) => return 0,
        };
        let words = self.rules.entry_words() as usize;
        let [place, flags @ ..] = &entry[..words] else { return 0 };
        let mut expected = *place;
        let wanted = usize::try_from(limit / size).unwrap_or(usize::MAX);
        let alike = self.words.chunks_exact(words).take(wanted).take_while(|next| {
            expected = expected.wrapping_add(step);
            next[0] == expected && next[1..] == *flags
        });
        let Some(more) = alike.count().checked_sub(1) else { return 0 };
        let start = (self.words, self.guest);
        self.words = &self.words[more * words..];
        self.guest += more as u64 * size;
        let length = (more as u64 + 1) * size;
        match self.next_piece() {
            Some(Ok((last, whole))) if whole == size && continues(kind, length, last) => length,
            _ => {
                (self.words, self.guest) = start;
                0
            }
        }
    }
}

/// Returns whether `next` extends a run of `length` bytes.
fn continues(run: MapKind, length: u64, next: MapKind) -> bool {
    match (run, next) {
        (MapKind::Unallocated, MapKind::Unallocated) | (MapKind::Zero, MapKind::Zero) => true,
        (MapKind::Data(host), MapKind::Data(next)) => host.0 + length == next.0,
        _ => false,
    }
}

/// Fails unless `file` holds the guest data at `host_offset`.
fn check_data(file: &HostFile, host_offset: u64, length: u64, guest_offset: u64) -> Result<()> {
    if host_offset.checked_add(length).is_some_and(|end| end <= file.size()) {
        return Ok(());
    }
    let reason = format!("data of guest offset {guest_offset} lies past the end of the file");
    Err(file.error(ErrorKind::Corrupt, reason).at(host_offset))
}
