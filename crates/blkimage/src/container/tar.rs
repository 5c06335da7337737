//! The members of a tar archive (V7, ustar, GNU and PAX), found by their headers alone.
//!
//! A member has the content that both GNU tar and Python's tarfile extract. Where these differ, or where
//! one of them guesses, the archive is refused: a manifest, a checksum and an import must not be of
//! different bytes.

use std::ops::Range;

use crate::error::{Error, ErrorKind, Result, excerpt};
use crate::storage::HostFile;

/// A member of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub name: Vec<u8>,
    /// Offset of its content in the archive.
    pub offset: u64,
    pub size: u64,
    pub node: Node,
    /// Where a link leads. `None` if programs read that differently.
    pub target: Option<Vec<u8>>,
}

/// The type of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    File,
    Folder,
    /// A link, a device or a FIFO, by the type in its header. It has no content.
    Special(u8),
    /// A type whose content programs read differently.
    Unknown(u8),
    /// Records about all members, which are no member. Programs in Go treat their name like that of a member.
    Global,
}

impl Node {
    /// Returns a member of this type in words.
    pub fn describe(self, name: &str) -> String {
        match self {
            Self::File => format!("file \"{name}\""),
            Self::Folder => format!("folder \"{name}\""),
            Self::Special(b'1') => format!("hard link \"{name}\""),
            Self::Special(b'2') => format!("symbolic link \"{name}\""),
            Self::Special(b'6') => format!("FIFO \"{name}\""),
            Self::Special(_) => format!("device \"{name}\""),
            Self::Unknown(kind) => {
                format!("member \"{name}\" of the type '{}'", excerpt(&[kind]))
            }
            Self::Global => format!("global header \"{name}\""),
        }
    }
}

impl Entry {
    /// Returns whether it is a regular file.
    pub fn is_file(&self) -> bool {
        self.node == Node::File
    }

    /// Returns the offset of its header, the last one if there are several.
    pub fn header(&self) -> u64 {
        self.offset - BLOCK
    }
}

/// Returns whether `block`, the first of a file, is the header of a tar archive.
///
/// A guest can write such a header into its raw disk, so the content alone does not make an archive.
pub fn is_tar(block: &[u8]) -> bool {
    block.first_chunk().is_some_and(|block| Header(block).is_valid())
}

/// Reads the headers of an archive one after another.
pub(crate) struct Reader<'a> {
    file: &'a HostFile,
    at: u64,
    headers: u32,
    max_headers: u32,
    /// Whether container runtimes read the archive, which are written in Go.
    is_for_runtimes: bool,
    /// Whether the padding of the last member must be there.
    needs_padding: bool,
}

impl<'a> Reader<'a> {
    /// Creates a reader that fails at an archive of more than `max_headers` headers.
    pub fn new(file: &'a HostFile, max_headers: u32) -> Self {
        Self { file, at: 0, headers: 0, max_headers, is_for_runtimes: false, needs_padding: true }
    }

    /// Refuses what the tar reader of Go refuses, too, and what container runtimes read differently. Returns global headers
    /// like members.
    pub fn for_runtimes(self) -> Self {
        Self { is_for_runtimes: true, ..self }
    }

    /// Accepts an archive that ends with the content of its last member, as those that programs in Go do not finish.
    pub fn without_padding(self) -> Self {
        Self { needs_padding: false, ..self }
    }

    /// Returns the number of headers that were read.
    pub fn headers(&self) -> u32 {
        self.headers
    }

    /// Returns the next member, or `None` at the end.
    pub fn entry(&mut self) -> Result<Option<Entry>> {
        let mut extended = Extended::default();
        loop {
            let start = self.at;
            let Some(block) = self.block()? else {
                return match extended.is_empty() {
                    true => Ok(None),
                    false => {
                        Err(self.file.corrupt("lacks the member of its last header").at(start))
                    }
                };
            };
            let header = Header(&block);
            if !header.is_valid() {
                return Err(self.file.corrupt("is not a header of a tar archive").at(start));
            }
            if self.is_for_runtimes && !header.has_valid_numbers() {
                return Err(self.file.corrupt("has no valid number in a tar header").at(start));
            }
            let kind = header.kind();
            let size = match (kind, extended.size) {
                (Kind::File | Kind::Folder, Some(size)) => header.size().and(Some(size)),
                (Kind::Other, _) => Some(0),
                _ => header.size(),
            };
            let content = self.at;
            let next = size
                .and_then(|size| size.checked_next_multiple_of(BLOCK))
                .and_then(|size| content.checked_add(size));
            let (Some(size), Some(next)) = (size, next) else {
                return Err(self.file.corrupt("has no valid size in a tar header").at(start));
            };
            let is_last = !self.needs_padding && content + size <= self.file.size();
            let next = if is_last { next.min(self.file.size()) } else { next };
            if next > self.file.size() {
                let reason = "member lies past the end of the file, which was probably cut off";
                return Err(self.file.corrupt(reason).at(start));
            }
            self.at = next;
            match kind {
                Kind::File | Kind::Folder | Kind::Other => {
                    return self.member(&header, extended, content, size).map(Some);
                }
                Kind::LongName => {
                    let text = self.text(content, size)?;
                    let reason = extended.set_long_name(&text).err();
                    if let Some(reason) = reason {
                        return Err(self.unsupported(reason, start));
                    }
                }
                Kind::LongLink => extended.set_long_link(&self.text(content, size)?),
                Kind::Pax => {
                    let text = self.text(content, size)?;
                    let reason = match std::mem::replace(&mut extended.has_records, true) {
                        true => Some("several PAX headers of one member"),
                        false => extended.add(&text, size as usize).err(),
                    };
                    let is_overlay = self.is_for_runtimes && extended.is_overlay;
                    let reason = reason.or(is_overlay.then_some("attributes of an overlay"));
                    if let Some(reason) = reason {
                        return Err(self.unsupported(reason, start));
                    }
                }
                Kind::Global => {
                    self.check_global(&extended, content, size)?;
                    if self.is_for_runtimes {
                        let name = self.name(&header, Extended::default(), start)?;
                        let node = Node::Global;
                        return Ok(Some(Entry { name, offset: content, size, node, target: None }));
                    }
                }
                Kind::Sparse => return Err(self.unsupported("sparse members", start)),
            }
        }
    }

    /// Fails if the records about all members at `content` change what follows. `extended` is what other headers before say
    /// about the next member.
    fn check_global(&self, extended: &Extended, content: u64, size: u64) -> Result<()> {
        let start = content - BLOCK;
        // Go drops it.
        if !extended.is_empty() {
            let what = "a global header between the headers of a member";
            return Err(self.unsupported(what, start));
        }
        let mut global = Extended::default();
        let reason = global.add(&self.text(content, size)?, size as usize).err();
        let names_members = global.path.is_some() || global.size.is_some();
        match reason.or(names_members.then_some("names or sizes for all members")) {
            Some(reason) => Err(self.unsupported(reason, start)),
            None => Ok(()),
        }
    }

    /// Returns the member of a header, of which the headers before it say `extended`.
    fn member(
        &self,
        header: &Header<'_>,
        extended: Extended,
        offset: u64,
        size: u64,
    ) -> Result<Entry> {
        let start = offset - BLOCK;
        let target = extended.target(header);
        let stated = extended.size;
        let name = self.name(header, extended, start)?;
        // As in archives of V7, where folders have no type.
        let is_folder = name.ends_with(b"/") || header.is_folder_of_v7();
        let node = match (header.kind(), header.0[TYPE]) {
            // Container runtimes fail.
            (Kind::File, kind @ b'7') if self.is_for_runtimes => Node::Unknown(kind),
            (Kind::Other, kind @ (b'1' | b'2' | b'3' | b'4' | b'6')) => Node::Special(kind),
            (Kind::Other, kind) => Node::Unknown(kind),
            (Kind::File, _) if !is_folder => Node::File,
            _ => Node::Folder,
        };
        let corrupt = |what: &str| {
            let reason = format!("has the member \"{}\", {what}", excerpt(&name));
            self.file.corrupt(reason).at(start)
        };
        // A folder in GNU tar, and an empty file in Go.
        let is_odd = header.kind() == Kind::File && !header.is_folder_in_go(&name);
        if self.is_for_runtimes && node == Node::Folder && is_odd {
            return Err(corrupt("a file with the name of a folder"));
        }
        // GNU tar skips what follows a symbolic link or a device of some size, and other programs do not. All skip nothing of a
        // hard link, whose header may have a size.
        let has_size = match node {
            Node::Special(b'1') => stated.is_some_and(|size| size > 0),
            Node::Special(_) => stated.is_some_and(|size| size > 0) || header.size() != Some(0),
            _ => false,
        };
        if has_size {
            return Err(corrupt("which is no file and has a size"));
        }
        // GNU tar skips the content of a folder, and other programs do not.
        if node == Node::Folder && (size > 0 || header.size() != Some(0)) {
            return Err(corrupt("which is no file and has a size"));
        }
        Ok(Entry { name, offset, size, node, target })
    }

    /// Returns the name of a member, whose header is at `start`.
    fn name(&self, header: &Header<'_>, extended: Extended, start: u64) -> Result<Vec<u8>> {
        let name = match (extended.path, extended.long_name) {
            (Some(_), Some(_)) => return Err(self.unsupported("members with two names", start)),
            (Some(name), None) | (None, Some(name)) => name,
            // GNU tar and Go take the bytes of such a prefix for something else, Python's tarfile for a part of
            // the name.
            (None, None) => header.name().ok_or_else(|| {
                let name = excerpt(header.text(NAME));
                let reason = format!(
                    "has a prefix of the name \"{name}\" in a tar header that is not ustar, which programs read \
                     differently"
                );
                self.file.error(ErrorKind::Unsupported, reason).at(start)
            })?,
        };
        if name.len() > MAX_NAME || name.contains(&0) {
            let reason =
                format!("has a member whose name is longer than {MAX_NAME} bytes or holds a NUL");
            return Err(self.file.error(ErrorKind::Unsupported, reason).at(start));
        }
        Ok(name)
    }

    /// Reads the next block. Returns `None` at the end of the archive.
    fn block(&mut self) -> Result<Option<[u8; BLOCK as usize]>> {
        let left = self.file.size().saturating_sub(self.at);
        if left == 0 {
            return Ok(None);
        }
        if left < BLOCK {
            return Err(self.file.corrupt("is cut off in a tar header").at(self.at));
        }
        let mut block = [0; BLOCK as usize];
        self.file.read_exact_at(&mut block, self.at)?;
        if is_zero(&block) {
            // Go fails, and other programs end there.
            if self.is_for_runtimes && left >= 2 * BLOCK {
                self.file.read_exact_at(&mut block, self.at + BLOCK)?;
                if !is_zero(&block) {
                    return Err(self.unsupported("blocks behind a single one of zeros", self.at));
                }
            }
            return Ok(None);
        }
        self.headers += 1;
        if self.headers > self.max_headers {
            let reason = format!("has more than {} headers of members", self.max_headers);
            return Err(self.file.error(ErrorKind::Unsupported, reason).at(self.at));
        }
        self.at += BLOCK;
        Ok(Some(block))
    }

    /// Reads the content of an extended header, with its padding.
    fn text(&self, offset: u64, size: u64) -> Result<Vec<u8>> {
        if size > MAX_TEXT {
            let reason = format!("has an extended tar header of more than {MAX_TEXT} bytes");
            return Err(self.file.error(ErrorKind::Unsupported, reason).at(offset));
        }
        let mut text = vec![0; size.next_multiple_of(BLOCK) as usize];
        self.file.read_exact_at(&mut text, offset)?;
        Ok(text)
    }

    fn unsupported(&self, what: &str, at: u64) -> Error {
        let reason = format!("has {what} in a tar archive, which are not read");
        self.file.error(ErrorKind::Unsupported, reason).at(at)
    }
}

/// Properties of a member from the headers before it.
#[derive(Default)]
struct Extended {
    /// From a header of GNU tar.
    long_name: Option<Vec<u8>>,
    /// From PAX records.
    path: Option<Vec<u8>>,
    size: Option<u64>,
    has_records: bool,
    /// Where a link leads, from a header of GNU tar and from PAX records.
    long_link: Option<Vec<u8>>,
    link_path: Option<Vec<u8>>,
    is_linked: bool,
    is_odd_link: bool,
    /// Whether there are attributes by which an overlay of folders hides or moves files.
    is_overlay: bool,
}

impl Extended {
    fn is_empty(&self) -> bool {
        self.long_name.is_none() && !self.has_records && !self.is_linked
    }

    /// Returns where a link leads. `None` if several headers state it.
    fn target(&self, header: &Header<'_>) -> Option<Vec<u8>> {
        match (&self.long_link, &self.link_path) {
            _ if self.is_odd_link => None,
            (Some(_), Some(_)) => None,
            (Some(target), None) | (None, Some(target)) => Some(target.clone()),
            (None, None) => Some(header.text(LINK).to_vec()),
        }
    }

    /// Takes over a name, which ends at the first NUL of whole blocks, whatever its size says.
    fn set_long_name(&mut self, blocks: &[u8]) -> Result<(), &'static str> {
        if self.long_name.is_some() {
            return Err("several long names of one member");
        }
        let end = blocks.iter().position(|byte| *byte == 0).ok_or("long names without an end")?;
        // Go takes the name of the member instead.
        if end == 0 {
            return Err("long names that are empty");
        }
        self.long_name = Some(blocks[..end].to_vec());
        Ok(())
    }

    /// Takes over where a link leads.
    fn set_long_link(&mut self, blocks: &[u8]) {
        let end = blocks.iter().position(|byte| *byte == 0);
        self.is_odd_link |= self.is_linked || end.is_none();
        self.is_linked = true;
        self.long_link = end.map(|end| blocks[..end].to_vec());
    }

    /// Takes over PAX records, each of which is `LENGTH KEY=VALUE\n`. Only zeros follow `size` bytes of
    /// them: Python's tarfile reads records beyond, too.
    fn add(&mut self, blocks: &[u8], size: usize) -> Result<(), &'static str> {
        const INVALID: &str = "invalid PAX records";
        let (mut records, padding) = blocks.split_at(size);
        if padding.iter().any(|byte| *byte != 0) {
            return Err(INVALID);
        }
        while !records.is_empty() {
            let blank = records.iter().position(|byte| *byte == b' ').ok_or(INVALID)?;
            let length = decimal(&records[..blank]).and_then(|length| usize::try_from(length).ok());
            let length = length.filter(|length| (blank + 2..=records.len()).contains(length));
            let (record, rest) = records.split_at(length.ok_or(INVALID)?);
            let record = record[blank + 1..].strip_suffix(b"\n").ok_or(INVALID)?;
            let equals = record.iter().position(|byte| *byte == b'=').ok_or(INVALID)?;
            let (key, value) = (&record[..equals], &record[equals + 1..]);
            match key {
                b"path" if value.is_empty() => return Err(INVALID),
                b"path" => self.path = Some(value.to_vec()),
                b"linkpath" if value.is_empty() || value.contains(&0) => return Err(INVALID),
                b"linkpath" => self.link_path = Some(value.to_vec()),
                b"size" => self.size = Some(decimal(value).ok_or(INVALID)?),
                _ if key.starts_with(b"GNU.sparse") => return Err("sparse members"),
                // Parts of archives of several volumes, and folders of incremental ones.
                _ if key.starts_with(b"GNU.") => return Err("members with PAX records of GNU tar"),
                _ if OVERLAYS.iter().any(|start| key.starts_with(start)) => self.is_overlay = true,
                // A blank at either end is a part of the key in one program and not in another.
                [] | [b' ' | b'\t', ..] | [.., b' ' | b'\t'] => return Err(INVALID),
                _ => {}
            }
            records = rest;
        }
        Ok(())
    }
}

fn decimal(digits: &[u8]) -> Option<u64> {
    let is_plain = digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| is_plain)?.parse().ok()
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
    Folder,
    /// A link, a device or a FIFO, or a type of its own.
    Other,
}

struct Header<'a>(&'a [u8; BLOCK as usize]);

impl Header<'_> {
    /// Returns whether the checksum is that of a header. Some old programs added up signed bytes.
    fn is_valid(&self) -> bool {
        let rest = || self.0[..148].iter().chain(&self.0[156..]);
        let blanks = 8 * i64::from(b' ');
        let unsigned = blanks + rest().map(|byte| i64::from(*byte)).sum::<i64>();
        let signed = blanks + rest().map(|byte| i64::from(byte.cast_signed())).sum::<i64>();
        let stated = octal(&self.0[148..156]).and_then(|sum| i64::try_from(sum).ok());
        stated.is_some_and(|stated| stated == unsigned || stated == signed)
    }

    fn kind(&self) -> Kind {
        match self.0[TYPE] {
            0 | b'0' | b'7' => Kind::File,
            b'5' => Kind::Folder,
            b'L' => Kind::LongName,
            b'K' => Kind::LongLink,
            b'x' => Kind::Pax,
            b'g' => Kind::Global,
            b'S' => Kind::Sparse,
            _ => Kind::Other,
        }
    }

    /// Returns whether the fields of numbers that concern no content hold what Go reads as numbers.
    fn has_valid_numbers(&self) -> bool {
        let is_blank = |field: &[u8]| field.iter().all(|byte| matches!(byte, 0 | b' '));
        let is_number = |field: &Range<usize>| {
            let field = &self.0[field.clone()];
            matches!(field[0], 0x80 | 0xff) || is_blank(field) || octal(field).is_some()
        };
        // V7 has no numbers of devices.
        let fields = if self.0[257..262] == *b"ustar" { &NUMBERS[..] } else { &NUMBERS[..4] };
        fields.iter().all(is_number)
    }

    /// Returns whether Go reads a file whose name is that of a folder as one, as do others.
    fn is_folder_in_go(&self, name: &[u8]) -> bool {
        self.0[TYPE] == 0 && name.ends_with(b"/")
    }

    /// Returns whether this is a folder without a type. Python's tarfile asks the name in the header, whatever
    /// name follows.
    fn is_folder_of_v7(&self) -> bool {
        self.0[TYPE] == 0 && self.text(NAME).ends_with(b"/")
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

    /// Returns the name. `None` if there is a prefix in a format that has none or a shorter one: V7, that of GNU tar,
    /// which has times there, or that of star, whose header ends so.
    fn name(&self) -> Option<Vec<u8>> {
        let (name, prefix) = (self.text(NAME), self.text(PREFIX));
        match prefix.is_empty() {
            true => Some(name.to_vec()),
            false => (self.0[257..263] == *b"ustar\0" && self.0[508..] != *b"tar\0")
                .then(|| [prefix, name].join(&b'/')),
        }
    }

    /// Returns the bytes of a field up to a NUL.
    fn text(&self, field: Range<usize>) -> &[u8] {
        self.0[field].split(|byte| *byte == 0).next().unwrap_or(&[])
    }
}

/// Returns the number in a field: octal digits between blanks, or nothing at all.
fn octal(field: &[u8]) -> Option<u64> {
    if field.iter().all(|byte| *byte == 0) {
        return Some(0);
    }
    let start = field.iter().position(|byte| *byte != b' ')?;
    let digits = field[start..].iter().take_while(|byte| matches!(byte, b'0'..=b'7')).count();
    let (digits, rest) = field[start..].split_at(digits);
    let is_end = rest.iter().all(|byte| matches!(byte, 0 | b' '));
    let value = digits.iter().fold(0, |value, digit| value << 3 | u64::from(digit - b'0'));
    (is_end && !digits.is_empty()).then_some(value)
}

fn is_zero(block: &[u8]) -> bool {
    block.iter().all(|byte| *byte == 0)
}

/// Unit of an archive in bytes.
pub(crate) const BLOCK: u64 = 512;

/// Fields of the name of a member in its header, and of the part before it.
const NAME: Range<usize> = 0..100;
const PREFIX: Range<usize> = 345..500;

/// Field of the name to which a link leads.
const LINK: Range<usize> = 157..257;

/// Fields of the mode, the owner, the group and the time, and of the numbers of a device.
const NUMBERS: [Range<usize>; 6] = [100..108, 108..116, 116..124, 136..148, 329..337, 337..345];

/// Beginnings of PAX records of attributes by which overlayfs and fuse-overlayfs hide, move or change files.
const OVERLAYS: [&[u8]; 4] = [
    b"SCHILY.xattr.trusted.overlay.",
    b"SCHILY.xattr.user.overlay.",
    b"SCHILY.xattr.user.fuseoverlayfs.",
    b"SCHILY.xattr.user.containers.",
];

/// Offset of the type of a member in its header.
const TYPE: usize = 156;

/// Maximum size of an extended header of a tar archive.
/// Limit in bytes.
const MAX_TEXT: u64 = 64 << 10;

/// Maximum length of the name of a member: that of a path in Linux.
/// Limit in bytes.
const MAX_NAME: usize = 4096;
