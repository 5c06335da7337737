//! The members of a zip archive, as its central directory says. What local headers say otherwise is an error.
//!
//! Programs that read from start to end go by the local headers, and others by the directory. Only an archive of which all
//! read the same is read: members follow each other, from the first byte to the directory.

use super::end::End;
use super::fields::{Extra, u16_at, u32_at};
use crate::error::{Error, ErrorKind, Result, excerpt};
use crate::storage::HostFile;

/// A member of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub name: Vec<u8>,
    pub method: Method,
    pub crc: u32,
    /// Number of bytes that it takes in the archive.
    pub stored: u64,
    pub size: u64,
    /// Offset of its local header.
    pub header: u64,
    /// Offset of its bytes.
    pub data: u64,
    pub is_folder: bool,
    flags: u16,
}

/// How the bytes of a member are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Stored,
    Deflate,
    /// In another way, by its number.
    Other(u16),
    Encrypted,
}

impl Method {
    /// Returns the name of another method.
    pub fn describe(self) -> String {
        let name = match self {
            Self::Stored => "stored",
            Self::Deflate => "deflate",
            Self::Encrypted => return "is encrypted, which is not read".into(),
            Self::Other(9) => "Deflate64",
            Self::Other(12) => "bzip2",
            Self::Other(14) => "LZMA",
            Self::Other(93) => "Zstandard",
            Self::Other(95) => "xz",
            Self::Other(98) => "PPMd",
            Self::Other(number) => {
                return format!("is compressed by the method {number}, which is not read");
            }
        };
        format!("is compressed ({name}), which is not read in a zip archive")
    }
}

/// Returns the members, in the order of the directory.
pub(super) fn members(file: &HostFile) -> Result<Vec<Member>> {
    let end = End::find(file)?;
    if end.members > MAX_MEMBERS || end.size > MAX_SIZE {
        let reason = format!(
            "has more than {MAX_MEMBERS} members, or a directory of more than {} MiB",
            MAX_SIZE >> 20
        );
        return Err(file.error(ErrorKind::Unsupported, reason).at(end.offset));
    }
    let mut directory = vec![0; end.size as usize];
    file.read_exact_at(&mut directory, end.offset)?;
    let mut members = Vec::new();
    let mut at = 0;
    for _ in 0..end.members {
        let place = end.offset + at as u64;
        let (member, length) =
            entry(&directory[at..]).map_err(|reason| file.corrupt(reason).at(place))?;
        check(file, &member, place)?;
        members.push(member);
        at += length;
    }
    if at != directory.len() {
        let reason = "has a directory that is longer than its members";
        return Err(file.corrupt(reason).at(end.offset + at as u64));
    }
    place(file, &mut members, end.offset)?;
    Ok(members)
}

/// Reads the member that a record of the directory describes. Returns it with the length of the record.
fn entry(record: &[u8]) -> Result<(Member, usize), String> {
    let header = record.get(..CENTRAL).filter(|it| it.starts_with(b"PK\x01\x02"));
    let header = header.ok_or("has no record of a member in its directory")?;
    let short = |at| u16_at(header, at).unwrap_or_default();
    let wide = |at| u32_at(header, at).map_or(0, u64::from);
    let [name, extra, comment] = [28, 30, 32].map(|at| usize::from(short(at)));
    let length = CENTRAL + name + extra + comment;
    let cut = "has a record of a member that is cut off";
    let rest = record.get(CENTRAL..length).ok_or(cut)?;
    let (name, rest) = rest.split_at(name);
    let extra = Extra::new(&rest[..extra]).map_err(|what| format!("has {what}"))?;
    let mut numbers = [wide(24), wide(20), wide(42)];
    let [size, stored, offset] = &mut numbers;
    extra.widen(&mut [size, stored, offset]).ok_or("lacks a number of 64 bits of a member")?;
    let [size, stored, header_at] = numbers;
    let (flags, disk) = (short(8), short(34));
    if disk != 0 && !(disk == u16::MAX && extra.has_large()) {
        return Err(super::end::SEVERAL.into());
    }
    let version = header[6];
    if version > MAX_VERSION {
        let (major, minor) = (version / 10, version % 10);
        return Err(format!("needs version {major}.{minor} of zip, which is not known"));
    }
    let method = match short(10) {
        _ if flags & (ENCRYPTED | STRONG | MASKED) != 0 => Method::Encrypted,
        0 => Method::Stored,
        8 => Method::Deflate,
        number => Method::Other(number),
    };
    let is_folder = name.ends_with(b"/");
    let shown = || excerpt(name);
    if extra.renames(name) {
        return Err(format!("has the member \"{}\" with another name in Unicode", shown()));
    }
    // The system that wrote it, and the type of file there.
    let is_unix = matches!(short(4) >> 8, 3 | 19);
    let kind = if is_unix { wide(38) >> 28 } else { 0 };
    match kind {
        // A pipe is where `zip -` got a file from.
        0 | 0o1 | 0o10 if !is_folder || kind == 0 || size == 0 => {}
        0o4 if is_folder => {}
        _ => {
            return Err(format!(
                "has the member \"{}\", which is a link, a device or of two types, in a zip archive, of which only files and folders are read",
                shown()
            ));
        }
    }
    let crc = wide(16) as u32;
    let name = name.to_vec();
    let data = header_at;
    let member =
        Member { name, method, crc, stored, size, header: header_at, data, is_folder, flags };
    Ok((member, length))
}

/// Fails if programs read a member or its name differently.
fn check(file: &HostFile, member: &Member, place: u64) -> Result<()> {
    let name = &member.name;
    let is_utf8 = member.flags & UTF8 == 0 || std::str::from_utf8(name).is_ok();
    let reason = match () {
        () if name.is_empty() => "without a name",
        () if name.contains(&0) || !is_utf8 => "whose name holds a NUL or is no UTF-8",
        // Programs make slashes of them, or do not.
        () if name.contains(&b'\\') => "whose name has a backslash",
        () if member.method == Method::Stored && member.stored != member.size => {
            "which is stored in another number of bytes than it has"
        }
        () if member.is_folder && member.size != 0 => "a folder with a content",
        () => return Ok(()),
    };
    Err(named(file, member, reason).at(place))
}

/// Finds the bytes of each member, whose headers must say the same as the directory at `end`.
fn place(file: &HostFile, members: &mut [Member], end: u64) -> Result<()> {
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|index| members[*index].header);
    let mut at = 0;
    for (position, &index) in order.iter().enumerate() {
        let limit = order.get(position + 1).map_or(end, |next| members[*next].header);
        let member = &mut members[index];
        let start = member.header;
        if start < at || start == limit {
            return Err(named(file, member, "which overlaps another one").at(start));
        }
        if start > at {
            let reason = format!("has {} bytes of no member", start - at);
            return Err(file.error(ErrorKind::Unsupported, reason).at(at));
        }
        let (local, data) = local(file, member, limit)?;
        member.data = data;
        let data_end = data.checked_add(member.stored).filter(|end| *end <= limit);
        let Some(data_end) = data_end else {
            return Err(
                named(file, member, "which overlaps another one, or the directory").at(start)
            );
        };
        at = data_end;
        if member.flags & DESCRIBED != 0 {
            at += descriptor(file, member, &local, at, limit)?;
        }
    }
    if at != end {
        let reason = format!("has {} bytes of no member", end - at);
        return Err(file.error(ErrorKind::Unsupported, reason).at(at));
    }
    Ok(())
}

/// What a local header says of numbers.
struct Local {
    is_large: bool,
}

/// Reads the local header of a member. Returns it with the offset of what follows.
fn local(file: &HostFile, member: &Member, limit: u64) -> Result<(Local, u64)> {
    let start = member.header;
    let differs = |what: &str| {
        let reason = format!("whose header states another {what} than the directory");
        named(file, member, &reason).at(start)
    };
    let cut = || named(file, member, "which lacks its header").at(start);
    let mut header = [0; LOCAL];
    let rest = start + LOCAL as u64;
    if rest > limit {
        return Err(cut());
    }
    file.read_exact_at(&mut header, start)?;
    if !header.starts_with(b"PK\x03\x04") {
        return Err(cut());
    }
    let short = |at| u16_at(&header, at).unwrap_or_default();
    let wide = |at| u32_at(&header, at).unwrap_or_default();
    let [name, extra] = [26, 28].map(|at| usize::from(short(at)));
    let data = rest + (name + extra) as u64;
    if data > limit {
        return Err(cut());
    }
    let mut text = vec![0; name + extra];
    file.read_exact_at(&mut text, rest)?;
    let (name, extra) = text.split_at(name);
    let method = match member.method {
        Method::Stored => Some(0),
        Method::Deflate => Some(8),
        Method::Other(number) => Some(number),
        Method::Encrypted => None,
    };
    if name != member.name {
        return Err(differs("name"));
    }
    if (short(6) ^ member.flags) & COMPARED != 0 || method.is_some_and(|method| method != short(8))
    {
        return Err(differs("method"));
    }
    let extra = Extra::new(extra)
        .map_err(|what| named(file, member, &format!("whose header has {what}")).at(start))?;
    if extra.renames(name) {
        return Err(differs("name"));
    }
    let (mut stored, mut size) = (u64::from(wide(18)), u64::from(wide(22)));
    extra.widen(&mut [&mut size, &mut stored]).ok_or_else(|| differs("size"))?;
    // What is not known when the header is written follows the bytes.
    let is_late = member.flags & DESCRIBED != 0;
    let is_size = |stated: u64, size: u64| stated == size || is_late && stated == 0;
    if !is_size(size, member.size) || !is_size(stored, member.stored) {
        return Err(differs("size"));
    }
    let crc = wide(14);
    if crc != member.crc && !(is_late && crc == 0) {
        return Err(differs("CRC-32"));
    }
    Ok((Local { is_large: extra.has_large() }, data))
}

/// Returns the length of the numbers that follow the bytes of a member.
fn descriptor(file: &HostFile, member: &Member, local: &Local, at: u64, limit: u64) -> Result<u64> {
    let differs =
        || named(file, member, "whose numbers after its bytes differ from the directory").at(at);
    let length = limit - at;
    // With a signature or without, and with sizes of 32 or 64 bits.
    if !matches!(length, 12 | 16 | 20 | 24) {
        return Err(differs());
    }
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, at)?;
    let numbers = match bytes.strip_prefix(b"PK\x07\x08") {
        Some(rest) if matches!(length, 16 | 24) => rest,
        _ => &bytes,
    };
    let crc = member.crc.to_le_bytes();
    let expected = match numbers.len() {
        12 => {
            let low = |number: u64| (number as u32).to_le_bytes();
            [&crc[..], &low(member.stored), &low(member.size)].concat()
        }
        _ => [&crc[..], &member.stored.to_le_bytes(), &member.size.to_le_bytes()].concat(),
    };
    // Programs that read from start to end expect 64 bits by the header.
    let is_wide = numbers.len() == 20;
    let needs_wide = member.stored.max(member.size) > u64::from(u32::MAX);
    match numbers == expected
        && (is_wide || !needs_wide)
        && (is_wide == local.is_large || !needs_wide)
    {
        true => Ok(length),
        false => Err(differs()),
    }
}

/// Returns the error of a member.
fn named(file: &HostFile, member: &Member, reason: &str) -> Error {
    file.corrupt(format!("has the member \"{}\", {reason}", excerpt(&member.name)))
}

/// Lengths of the headers without names and extra fields.
const CENTRAL: usize = 46;
const LOCAL: usize = 30;

/// The version of the format that a member may need, times ten.
const MAX_VERSION: u8 = 63;

/// Flags: encrypted, numbers after the bytes, strongly encrypted, a name in UTF-8, and a masked header.
const ENCRYPTED: u16 = 1;
const DESCRIBED: u16 = 1 << 3;
const STRONG: u16 = 1 << 6;
const UTF8: u16 = 1 << 11;
const MASKED: u16 = 1 << 13;

/// The flags that the header of a member and the directory must agree on.
const COMPARED: u16 = ENCRYPTED | DESCRIBED | STRONG | UTF8 | MASKED;

/// Maximum number of members of a zip archive. Each has a header that is read whenever the archive is opened.
/// Limit in members.
const MAX_MEMBERS: u64 = 10_000;

/// Maximum size of the directory of a zip archive, which is in memory.
/// Limit in bytes.
const MAX_SIZE: u64 = 16 << 20;

/// Returns a member at the start of an archive, for tests.
#[cfg(test)]
pub(super) fn tests_member(name: &[u8], crc: u32, size: u64, stored: u64) -> Member {
    Member {
        name: name.to_vec(),
        method: Method::Deflate,
        crc,
        stored,
        size,
        header: 0,
        data: 0,
        is_folder: false,
        flags: 0,
    }
}
