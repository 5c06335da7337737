//! The blocks of one disk in an XVA archive, in their order, and the checksum after each.
//!
//! A block is a member `REFERENCE/NUMBER` of 1 MiB, or fewer bytes at the end of a disk. A number that is missing stands for
//! 1 MiB of zeros. An empty block stands for nothing but its number: a writer that found only zeros for long has sent it.

use sha1::{Digest as _, Sha1};
use xxhash_rust::xxh64::xxh64;

use super::machine::Disk;
use crate::error::{Result, excerpt};
use crate::storage::HostFile;
use crate::tar::{Entry, Reader};

/// A block, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// Offset in the disk.
    pub offset: u64,
    pub length: u64,
    /// Offset in the archive.
    pub place: u64,
    pub sum: SumKind,
}

/// The checksum of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SumKind {
    Sha1,
    Xxh64,
}

impl SumKind {
    /// Returns whether `text` is the checksum of a block.
    pub fn is_of(self, content: &[u8], text: &[u8]) -> bool {
        let digits = match self {
            Self::Sha1 => Sha1::digest(content).iter().map(|byte| format!("{byte:02x}")).collect(),
            Self::Xxh64 => format!("{:016x}", xxh64(content, 0)),
        };
        text.trim_ascii_end().eq_ignore_ascii_case(digits.as_bytes())
    }

    /// Returns the number of digits.
    pub fn length(self) -> u64 {
        match self {
            Self::Sha1 => 40,
            Self::Xxh64 => 16,
        }
    }
}

/// Goes through the blocks of a disk.
pub(super) struct Blocks<'a> {
    disk: &'a Disk,
    state: State,
}

/// Where the walk is.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    last: Option<Entry>,
    headers: u32,
    number: Option<u64>,
    /// Offset of what follows in the disk.
    end: u64,
    is_short: bool,
}

impl<'a> Blocks<'a> {
    pub fn new(disk: &'a Disk, state: State) -> Self {
        Self { disk, state }
    }

    pub fn state(self) -> State {
        self.state
    }

    fn entry(&mut self, file: &HostFile) -> Result<Option<Entry>> {
        let mut reader = Reader::new(file, MAX_HEADERS);
        if let Some(last) = &self.state.last {
            reader = reader.behind(last, self.state.headers);
        }
        let entry = reader.entry()?;
        self.state.headers = reader.headers();
        if let Some(entry) = &entry {
            self.state.last = Some(entry.clone());
        }
        Ok(entry)
    }

    /// Returns the next block that is not empty. `read` gets it, and the place of its checksum. Returns `None` at the end of the
    /// archive. Fails if the disk has another size than stated then.
    pub fn next(
        &mut self,
        file: &HostFile,
        mut read: impl FnMut(&Block) -> Result<()>,
    ) -> Result<Option<Block>> {
        loop {
            let Some(entry) = self.entry(file)? else {
                return match self.state.end == self.disk.size {
                    true => Ok(None),
                    false => {
                        let Disk { reference, size, .. } = self.disk;
                        let reason = format!(
                            "has {} bytes of the disk {reference}, of which it states {size}",
                            self.state.end
                        );
                        Err(file.corrupt(reason))
                    }
                };
            };
            let Some(number) = self.number(&entry.name) else { continue };
            let odd = |what: &str| {
                let reason = format!("has the block \"{}\", {what}", excerpt(&entry.name));
                file.corrupt(reason).at(entry.header())
            };
            let number = number.ok_or_else(|| odd("which is no block of a disk"))?;
            let gap = match self.state.number {
                None if number == 0 => 0,
                None => return Err(odd("and none before it")),
                Some(last) => number
                    .checked_sub(last)
                    .and_then(|step| step.checked_sub(1))
                    .ok_or_else(|| odd("which is not in its order"))?,
            };
            if !entry.is_file() || entry.size > BLOCK || self.state.is_short && entry.size > 0 {
                return Err(odd("of another size than blocks have"));
            }
            let start = gap.checked_mul(BLOCK).and_then(|gap| gap.checked_add(self.state.end));
            let start = start.filter(|start| {
                start.checked_add(entry.size).is_some_and(|end| end <= self.disk.size)
            });
            let offset = start.ok_or_else(|| odd("past the end of its disk"))?;
            self.state.number = Some(number);
            self.state.end = offset + entry.size;
            self.state.is_short |= entry.size > 0 && entry.size < BLOCK;
            let (length, place) = (entry.size, entry.offset);
            let block = Block { offset, length, place, sum: SumKind::Sha1 };
            read(&block)?;
            let sum = self.entry(file)?;
            let kind = sum.as_ref().and_then(|sum| {
                let end = sum.name.strip_prefix(&*entry.name)?;
                let kind = match end {
                    b".checksum" => SumKind::Sha1,
                    b".xxhash" => SumKind::Xxh64,
                    _ => return None,
                };
                (sum.is_file() && (kind.length()..=kind.length() + 1).contains(&sum.size))
                    .then_some(kind)
            });
            let sum = kind.ok_or_else(|| odd("without a checksum after it"))?;
            if length > 0 {
                return Ok(Some(Block { sum, ..block }));
            }
        }
    }

    /// Returns the offset of the checksum after the last block in the archive, and its length.
    pub fn sum(&self) -> (u64, u64) {
        self.state.last.as_ref().map_or((0, 0), |entry| (entry.offset, entry.size))
    }

    /// Returns the number of a block of the disk by its name. `None` if it is no member of the disk, and `Some(None)` if the
    /// member is not a block.
    fn number(&self, name: &[u8]) -> Option<Option<u64>> {
        let name = name.strip_prefix(b"./").unwrap_or(name);
        let rest = name.strip_prefix(self.disk.reference.as_bytes())?.strip_prefix(b"/")?;
        if rest.is_empty() {
            return None;
        }
        let is_plain = rest.len() >= 8 && rest.iter().all(u8::is_ascii_digit);
        Some(std::str::from_utf8(rest).ok().filter(|_| is_plain).and_then(|it| it.parse().ok()))
    }
}

/// Size of a block.
pub(super) const BLOCK: u64 = 1 << 20;

/// Maximum number of headers of members in an XVA archive: 16 TiB, of which each MiB has two.
/// Limit in headers.
const MAX_HEADERS: u32 = 1 << 25;
