//! The members of a tar archive (ustar, GNU and PAX), found by their headers alone.

use crate::error::{Error, ErrorKind, Result, excerpt};
use crate::storage::HostFile;

/// A regular file in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub name: Vec<u8>,
    /// Offset of its content in the archive.
    pub offset: u64,
    pub size: u64,
}

/// Returns whether a file may be an archive, by its first block.
pub(crate) fn is_archive(block: &[u8]) -> bool {
    first_name(block).is_some()
}

/// Returns the name in the first block of an archive, without extended headers.
pub(super) fn first_name(block: &[u8]) -> Option<Vec<u8>> {
    let header = Header(block.try_into().ok()?);
    header.is_valid().then(|| header.name())
}

/// Iterates over the regular files of an archive.
pub(super) struct Entries<'a> {
    file: &'a HostFile,
    at: u64,
    headers: u32,
}

impl<'a> Entries<'a> {
    pub fn new(file: &'a HostFile) -> Self {
        Self { file, at: 0, headers: 0 }
    }

    /// Returns the next regular file, or `None` at the end.
    fn find(&mut self) -> Result<Option<Entry>> {
        let mut extended = Extended::default();
        loop {
            let start = self.at;
            let Some(block) = self.block()? else { return Ok(None) };
            let header = Header(&block);
            if !header.is_valid() {
                return Err(self.file.corrupt("is not a header of a tar archive").at(start));
            }
            let kind = header.kind();
            let size = match (kind, extended.size) {
                (Kind::Special, _) => Some(0),
                (Kind::File | Kind::Other, Some(size)) => Some(size),
                _ => header.size(),
            };
            let content = self.at;
            let next = size
                .and_then(|size| size.checked_next_multiple_of(BLOCK))
                .and_then(|size| content.checked_add(size));
            let (Some(size), Some(next)) = (size, next) else {
                return Err(self.file.corrupt("has no valid size in a tar header").at(start));
            };
            // The padding of the last member may be missing.
            if size > self.file.size().saturating_sub(content) {
                let reason = "member lies past the end of the file, which was probably cut off";
                return Err(self.file.corrupt(reason).at(start));
            }
            self.at = next;
            match kind {
                Kind::File => {
                    let name = extended.name.take().unwrap_or_else(|| header.name());
                    return Ok(Some(Entry { name, offset: content, size }));
                }
                Kind::LongName => {
                    let name = self.text(content, size)?;
                    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
                    extended.name = Some(name[..end].to_vec());
                }
                Kind::Pax => {
                    let records = self.text(content, size)?;
                    let reason = extended.add(&records).err();
                    if let Some(reason) = reason {
                        return Err(self.unsupported(reason, start));
                    }
                }
                Kind::Global => {
                    let records = self.text(content, size)?;
                    let mut global = Extended::default();
                    let reason = global.add(&records).err();
                    let names_members = global.name.is_some() || global.size.is_some();
                    let reason =
                        reason.or(names_members.then_some("names or sizes for all members"));
                    if let Some(reason) = reason {
                        return Err(self.unsupported(reason, start));
                    }
                }
                Kind::Sparse => return Err(self.unsupported("sparse members", start)),
                Kind::LongLink => {}
                Kind::Special | Kind::Other => extended = Extended::default(),
            }
        }
    }

    /// Reads the next block. Returns `None` at the end of the archive.
    fn block(&mut self) -> Result<Option<[u8; BLOCK as usize]>> {
        self.headers += 1;
        if self.headers > MAX_HEADERS {
            let reason = format!("has more than {MAX_HEADERS} headers of members");
            return Err(self.file.error(ErrorKind::Unsupported, reason));
        }
        if self.file.size().saturating_sub(self.at) < BLOCK {
            return Ok(None);
        }
        let mut block = [0; BLOCK as usize];
        self.file.read_exact_at(&mut block, self.at)?;
        self.at += BLOCK;
        Ok(Some(block).filter(|block| block.iter().any(|byte| *byte != 0)))
    }

    /// Reads the content of an extended header.
    fn text(&self, offset: u64, size: u64) -> Result<Vec<u8>> {
        if size > MAX_TEXT {
            let reason = format!("has an extended tar header of more than {MAX_TEXT} bytes");
            return Err(self.file.error(ErrorKind::Unsupported, reason).at(offset));
        }
        let mut text = vec![0; size as usize];
        self.file.read_exact_at(&mut text, offset)?;
        Ok(text)
    }

    fn unsupported(&self, what: &str, at: u64) -> Error {
        let reason = format!("has {what} in a tar archive, which are not read");
        self.file.error(ErrorKind::Unsupported, reason).at(at)
    }
}

impl Iterator for Entries<'_> {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Result<Entry>> {
        let found = self.find().transpose();
        if !matches!(found, Some(Ok(_))) {
            // Nothing follows the end or an error.
            self.at = u64::MAX;
        }
        found
    }
}

/// Returns the entry with this name. Fails if there are several.
pub(super) fn find<'e>(
    file: &HostFile,
    entries: &'e [Entry],
    name: &[u8],
) -> Result<Option<&'e Entry>> {
    let mut found = entries.iter().filter(|entry| entry.name == name);
    let first = found.next();
    match found.next() {
        None => Ok(first),
        Some(second) => {
            let reason = format!("has two members with the name \"{}\"", excerpt(name));
            Err(file.corrupt(reason).at(second.offset))
        }
    }
}

/// What the headers before a member say about it.
#[derive(Default)]
struct Extended {
    name: Option<Vec<u8>>,
    size: Option<u64>,
}

impl Extended {
    /// Takes over PAX records, each of which is `LENGTH KEY=VALUE\n`.
    fn add(&mut self, mut records: &[u8]) -> Result<(), &'static str> {
        const INVALID: &str = "invalid PAX records";
        while !records.is_empty() {
            let blank = records.iter().position(|byte| *byte == b' ').ok_or(INVALID)?;
            let length = decimal(&records[..blank]).and_then(|length| usize::try_from(length).ok());
            let length = length.filter(|length| (blank + 2..=records.len()).contains(length));
            let (record, rest) = records.split_at(length.ok_or(INVALID)?);
            let record = record[blank + 1..].strip_suffix(b"\n").ok_or(INVALID)?;
            let equals = record.iter().position(|byte| *byte == b'=').ok_or(INVALID)?;
            let (key, value) = (&record[..equals], &record[equals + 1..]);
            match key {
                b"path" => self.name = Some(value.to_vec()),
                b"size" => self.size = Some(decimal(value).ok_or(INVALID)?),
                _ if key.starts_with(b"GNU.sparse") => return Err("sparse members"),
                _ => {}
            }
            records = rest;
        }
        Ok(())
    }
}

fn decimal(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'))?.parse().ok()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    File,
    /// The content is the name of the next member.
    LongName,
    LongLink,
    /// Records about the next member.
    Pax,
    /// Records about all members.
    Global,
    /// Sparse in the format of GNU tar.
    Sparse,
    /// A link, a folder or a device, which has no content.
    Special,
    Other,
}

struct Header<'a>(&'a [u8; BLOCK as usize]);

impl Header<'_> {
    /// Returns whether the magic and the checksum are those of a header.
    fn is_valid(&self) -> bool {
        let sum = |range: &[u8]| range.iter().map(|byte| u64::from(*byte)).sum::<u64>();
        let blanks = 8 * u64::from(b' ');
        self.0[257..262] == *b"ustar"
            && octal(&self.0[148..156]) == Some(sum(&self.0[..148]) + blanks + sum(&self.0[156..]))
    }

    fn kind(&self) -> Kind {
        match self.0[156] {
            0 | b'0' | b'7' => Kind::File,
            b'1'..=b'6' => Kind::Special,
            b'L' => Kind::LongName,
            b'K' => Kind::LongLink,
            b'x' => Kind::Pax,
            b'g' => Kind::Global,
            b'S' => Kind::Sparse,
            _ => Kind::Other,
        }
    }

    /// Returns the size, in octal digits or, from 8 GiB on, in binary.
    fn size(&self) -> Option<u64> {
        let field = &self.0[124..136];
        match field[0] {
            0x80 if field[1..4] == [0; 3] => {
                Some(field[4..].iter().fold(0, |size, byte| size << 8 | u64::from(*byte)))
            }
            0x80.. => None,
            _ => octal(field),
        }
    }

    fn name(&self) -> Vec<u8> {
        let text = |range: &[u8]| range.split(|byte| *byte == 0).next().unwrap_or(&[]).to_vec();
        let (name, prefix) = (text(&self.0[..100]), text(&self.0[345..500]));
        // In the format of GNU tar, there is no prefix.
        if prefix.is_empty() || self.0[262] != 0 { name } else { [prefix, name].join(&b'/') }
    }
}

fn octal(field: &[u8]) -> Option<u64> {
    let field = field.trim_ascii_start();
    let end = field.iter().position(|byte| matches!(byte, 0 | b' ')).unwrap_or(field.len());
    let digits = std::str::from_utf8(&field[..end]).ok().filter(|text| !text.starts_with('+'))?;
    u64::from_str_radix(digits, 8).ok()
}

const BLOCK: u64 = 512;

/// Appliances have tens of members. All are looked at for each disk, and for each line of a manifest.
const MAX_HEADERS: u32 = 1000;

/// Maximum size of an extended header in bytes.
const MAX_TEXT: u64 = 64 << 10;
