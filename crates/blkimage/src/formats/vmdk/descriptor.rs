//! The text that describes a VMware disk.
//!
//! The whole text is parsed by stricter rules than in QEMU, which ignores unknown lines and with them
//! parts of the disk. QEMU searches the text for four settings by their names, so each of them must be
//! where this search finds it. For qemu-nbd, a new text is generated, with the paths of descriptors that
//! passed the gate in place of the names. It never sees the original text.

#[cfg(any(feature = "qemu-nbd", test))]
use std::fmt::Write;

use crate::error::excerpt;

/// A disk and the files that hold it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Descriptor {
    /// Content id, which a child of this disk records.
    pub cid: Option<u32>,
    pub parent_cid: u32,
    pub create_type: String,
    pub extents: Vec<DiskExtent>,
    /// Name of the parent disk, if this is a differencing disk.
    pub parent: Option<Vec<u8>>,
    /// Label of the encoding of names, the first that there is.
    pub encoding: Option<Vec<u8>>,
}

/// A part of the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiskExtent {
    pub sectors: u64,
    pub kind: DiskExtentKind,
    /// Name of the file, empty if the extent needs none.
    pub name: Vec<u8>,
}

/// The encoding of a [`DiskExtent`] in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskExtentKind {
    /// Unencoded, from a sector of the file on.
    Flat { start: u64 },
    /// A sparse file.
    Sparse,
    /// A sparse file of ESX.
    VmfsSparse,
    /// A sparse file of ESXi, as of version 6.5.
    SeSparse,
    /// Zeros, without a file.
    Zero,
}

/// The reason why a descriptor cannot be read, with the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// The descriptor is invalid.
    Invalid(String),
    /// The descriptor is valid but uses an unsupported feature.
    Unsupported(String),
}

impl Descriptor {
    /// Parses a whole file.
    pub fn parse(text: &[u8]) -> Result<Self, Flaw> {
        // Writers pad the sector with zeros.
        let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
        let mut extents = Vec::new();
        let mut settings = Settings::default();
        let mut end = 0;
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let start = end + (line.len() - line.trim_ascii_start().len());
            end += line.len() + 1;
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let at = |flaw: &str| format!("line {} of its descriptor {flaw}", index + 1);
            if line.contains(&VERTICAL_TAB) {
                return Err(Flaw::Unsupported(at(
                    "has a vertical tab, which is a blank for QEMU only",
                )));
            }
            if let Some(extent) = DiskExtent::parse(line, &at)? {
                if extents.len() == MAX_EXTENTS {
                    let flaw = format!("its descriptor has more than {MAX_EXTENTS} extents");
                    return Err(Flaw::Unsupported(flaw));
                }
                extents.push(extent);
                continue;
            }
            settings.parse_line(line, start, &at)?;
        }
        if extents.is_empty() {
            return Err(Flaw::Invalid("its descriptor has no extents".into()));
        }
        settings.finish(text, extents)
    }

    /// Returns whether QEMU reads all of the disk. It omits extents of zeros, and reads zeros where
    /// extents of ESXi are cut off.
    #[cfg(feature = "qemu-nbd")]
    pub fn is_read_by_qemu(&self) -> bool {
        let is_known = |extent: &DiskExtent| {
            !matches!(extent.kind, DiskExtentKind::Zero | DiskExtentKind::SeSparse)
        };
        QEMU_TYPES.contains(&&*self.create_type) && self.extents.iter().all(is_known)
    }

    /// Returns a descriptor of the same disk with the extents at `paths`. It omits the parent, which
    /// QEMU gets as a node.
    #[cfg(any(feature = "qemu-nbd", test))]
    pub fn render(&self, paths: &[String]) -> String {
        let Self { parent_cid, create_type, extents, .. } = self;
        let cid = self.cid.unwrap_or(NO_PARENT);
        let mut text = format!(
            "# Disk DescriptorFile\nversion=1\nCID={cid:08x}\nparentCID={parent_cid:08x}\n\
             createType=\"{create_type}\"\n"
        );
        for (DiskExtent { sectors, kind, .. }, path) in extents.iter().zip(paths) {
            let _ = match kind {
                DiskExtentKind::Flat { start } => {
                    writeln!(text, "RW {sectors} FLAT \"{path}\" {start}")
                }
                DiskExtentKind::Sparse => writeln!(text, "RW {sectors} SPARSE \"{path}\""),
                DiskExtentKind::VmfsSparse => writeln!(text, "RW {sectors} VMFSSPARSE \"{path}\""),
                DiskExtentKind::SeSparse => writeln!(text, "RW {sectors} SESPARSE \"{path}\""),
                DiskExtentKind::Zero => writeln!(text, "RW {sectors} ZERO"),
            };
        }
        text
    }
}

impl DiskExtent {
    /// Parses an extent. Returns `None` if the line is not an extent.
    fn parse(line: &[u8], at: &dyn Fn(&str) -> String) -> Result<Option<Self>, Flaw> {
        let invalid = |flaw: &str| Flaw::Invalid(at(flaw));
        let (access, rest) = word(line);
        match access {
            b"RW" | b"RDONLY" => {}
            b"NOACCESS" => return Err(Flaw::Unsupported(at("is an extent without access"))),
            _ => return Ok(None),
        }
        let (sectors, rest) = word(rest);
        let sectors = number(sectors)
            .filter(|sectors| (1..=MAX_SECTORS).contains(sectors))
            .ok_or_else(|| invalid("is an extent without a size"))?;
        let (kind, rest) = word(rest);
        if kind == b"ZERO" {
            return match rest {
                b"" => Ok(Some(Self { sectors, kind: DiskExtentKind::Zero, name: Vec::new() })),
                _ => Err(invalid("has more words than an extent of zeros")),
            };
        }
        if !matches!(kind, b"FLAT" | b"VMFS" | b"SPARSE" | b"VMFSSPARSE" | b"SESPARSE") {
            let flaw = format!("is an extent of the type \"{}\", which is not read", excerpt(kind));
            return Err(Flaw::Unsupported(at(&flaw)));
        }
        let name = rest.strip_prefix(b"\"").and_then(|rest| {
            let end = rest.iter().position(|byte| *byte == b'"')?;
            Some((&rest[..end], rest[end + 1..].trim_ascii()))
        });
        let Some((name, start)) = name.filter(|(name, _)| !name.is_empty()) else {
            return Err(invalid("is an extent without a file name in quotes"));
        };
        if name.len() > MAX_NAME {
            let flaw = format!("has a file name of more than {MAX_NAME} bytes");
            return Err(Flaw::Unsupported(at(&flaw)));
        }
        let start = match (kind, start) {
            (b"SPARSE" | b"VMFSSPARSE" | b"SESPARSE" | b"VMFS", b"") => 0,
            (b"FLAT", start) => number(start)
                .filter(|start| *start <= MAX_SECTORS)
                .ok_or_else(|| invalid("is an extent without an offset"))?,
            _ => return Err(invalid("has more words than an extent")),
        };
        let kind = match kind {
            b"SPARSE" => DiskExtentKind::Sparse,
            b"VMFSSPARSE" => DiskExtentKind::VmfsSparse,
            b"SESPARSE" => DiskExtentKind::SeSparse,
            _ => DiskExtentKind::Flat { start },
        };
        Ok(Some(Self { sectors, kind, name: name.to_vec() }))
    }
}

/// The settings of a descriptor that say what the disk is, with the offsets of their lines in the text.
#[derive(Default)]
struct Settings {
    cid: Option<(usize, u32)>,
    parent_cid: Option<(usize, u32)>,
    create_type: Option<(usize, Vec<u8>)>,
    parent: Option<(usize, Vec<u8>)>,
    encoding: Option<Vec<u8>>,
}

impl Settings {
    /// Parses a line that begins at offset `start` of the text.
    fn parse_line(
        &mut self,
        line: &[u8],
        start: usize,
        at: &dyn Fn(&str) -> String,
    ) -> Result<(), Flaw> {
        let Some(split) = line.iter().position(|byte| *byte == b'=') else {
            return Err(Flaw::Invalid(at("is neither an extent nor a setting")));
        };
        let (key, value) = (line[..split].trim_ascii(), &line[split + 1..]);
        if let Some(known) = KEYS.iter().find(|known| key.eq_ignore_ascii_case(known.as_bytes()))
            && line[..split] != *known.as_bytes()
        {
            // QEMU finds the key only in this spelling.
            return Err(Flaw::Invalid(at(&format!("does not spell {known}= as it must"))));
        }
        let hex =
            || match std::str::from_utf8(value.trim_ascii()).map(|v| u32::from_str_radix(v, 16)) {
                Ok(Ok(number)) => Ok((start, number)),
                _ => Err(Flaw::Invalid(at("has a content id that is no number"))),
            };
        let quoted = || match value {
            [b'"', inner @ .., b'"'] if !inner.contains(&b'"') => Ok((start, inner.to_vec())),
            _ => Err(Flaw::Invalid(at("has a value that is not in quotes"))),
        };
        let is_first = match key {
            CID => self.cid.replace(hex()?).is_none(),
            PARENT_CID => self.parent_cid.replace(hex()?).is_none(),
            CREATE_TYPE => self.create_type.replace(quoted()?).is_none(),
            PARENT => self.parent.replace(quoted()?).is_none(),
            _ if key.eq_ignore_ascii_case(ENCODING) => {
                let label = value.trim_ascii();
                let quoted = label.strip_prefix(b"\"").and_then(|it| it.strip_suffix(b"\""));
                self.encoding.get_or_insert_with(|| quoted.unwrap_or(label).to_vec());
                true
            }
            _ if key.eq_ignore_ascii_case(b"version")
                && !matches!(value.trim_ascii(), b"1" | b"2" | b"3" | b"4") =>
            {
                let flaw = format!("has the unknown version \"{}\"", excerpt(value.trim_ascii()));
                return Err(Flaw::Unsupported(at(&flaw)));
            }
            _ => true,
        };
        if is_first { Ok(()) } else { Err(Flaw::Invalid(at("repeats a setting"))) }
    }

    /// Returns the disk that the settings of a whole text describe.
    fn finish(self, text: &[u8], extents: Vec<DiskExtent>) -> Result<Descriptor, Flaw> {
        let Self { cid, parent_cid, create_type, parent, encoding } = self;
        let check = |key, line| check_place(text, key, line);
        if cid.is_some() {
            check(CID, cid.as_ref().map(|(line, _)| *line))?;
        }
        check(PARENT_CID, parent_cid.as_ref().map(|(line, _)| *line))?;
        check(CREATE_TYPE, create_type.as_ref().map(|(line, _)| *line))?;
        check(PARENT, parent.as_ref().map(|(line, _)| *line))?;
        let create_type = create_type.map(|(_, name)| name).unwrap_or_default();
        let is = |name: &&&str| name.as_bytes() == create_type;
        let Some(create_type) = FILE_TYPES.iter().find(is) else {
            let name = excerpt(&create_type);
            let flaw = match DEVICE_TYPES.iter().find(is) {
                Some(_) => format!("its type \"{name}\" means a device, which is not read"),
                None => format!("its type \"{name}\" is not read"),
            };
            return Err(Flaw::Unsupported(flaw));
        };
        // QEMU refuses a descriptor without this line.
        let Some((_, parent_cid)) = parent_cid else {
            return Err(Flaw::Invalid("its descriptor lacks the line parentCID=".into()));
        };
        let (cid, parent) = (cid.map(|(_, cid)| cid), parent.map(|(_, name)| name));
        if parent.is_none() && parent_cid != NO_PARENT {
            return Err(Flaw::Invalid("it is a difference to a disk that it does not name".into()));
        }
        let create_type = (*create_type).into();
        Ok(Descriptor { cid, parent_cid, create_type, extents, parent, encoding })
    }
}

/// Fails unless `key` is found first in its `line`, which begins at this offset, and where QEMU looks
/// for it.
fn check_place(text: &[u8], key: &[u8], line: Option<usize>) -> Result<(), Flaw> {
    let first = text.windows(key.len()).position(|window| window == key);
    let end = line.map_or(0, |line| {
        let rest = text[line..].iter();
        line + rest.take_while(|byte| **byte != b'\n').count()
    });
    if first == line && end < SEARCHED {
        return Ok(());
    }
    let key = String::from_utf8_lossy(key);
    Err(Flaw::Invalid(format!("its descriptor has {key} at an unusual place, which is not read")))
}

/// Returns the first word of a line and the rest.
fn word(line: &[u8]) -> (&[u8], &[u8]) {
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    (&line[..end], line[end..].trim_ascii())
}

fn number(digits: &[u8]) -> Option<u64> {
    let is_plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| is_plain)?.parse().ok()
}

const VERTICAL_TAB: u8 = 0x0b;

/// QEMU cuts longer names off, and opens another file.
const MAX_NAME: usize = 511;

/// Content id that means no parent.
pub(crate) const NO_PARENT: u32 = 0xffff_ffff;

/// Maximum size of a descriptor file. The maximum number of extents with names of maximum length fits.
/// Limit in bytes.
pub(crate) const MAX_DESCRIPTOR: usize = 256 << 10;

/// Maximum number of extents of a descriptor. Each one costs file descriptors here and in QEMU. Enough for 1 TB in
/// files of 2 GB.
/// Limit in extents.
const MAX_EXTENTS: usize = 512;

/// Maximum number of sectors with a valid offset in bytes.
const MAX_SECTORS: u64 = (i64::MAX as u64) / 512;

/// Number of bytes in which QEMU searches for settings.
pub(super) const SEARCHED: usize = 20 * 512 - 1;

const CID: &[u8] = b"CID";
const PARENT_CID: &[u8] = b"parentCID";
const CREATE_TYPE: &[u8] = b"createType";
const PARENT: &[u8] = b"parentFileNameHint";
const ENCODING: &[u8] = b"encoding";

/// The settings that QEMU searches for.
const KEYS: [&str; 4] = ["CID", "parentCID", "createType", "parentFileNameHint"];

/// Disk types whose extents are files. The lines of the extents say how each of them is read.
const FILE_TYPES: [&str; 12] = [
    "monolithicSparse",
    "monolithicFlat",
    "twoGbMaxExtentSparse",
    "twoGbMaxExtentFlat",
    "streamOptimized",
    "vmfs",
    "vmfsThin",
    "vmfsPreallocated",
    "vmfsEagerZeroedThick",
    "vmfsSparse",
    "seSparse",
    "custom",
];

/// Disk types whose extents are devices of another host.
const DEVICE_TYPES: [&str; 7] = [
    "fullDevice",
    "partitionedDevice",
    "vmfsRaw",
    "vmfsRDM",
    "vmfsRDMP",
    "vmfsRawDeviceMap",
    "vmfsPassthroughRawDeviceMap",
];

/// Types of disks that consist of files and are read by QEMU.
#[cfg(feature = "qemu-nbd")]
const QEMU_TYPES: [&str; 5] =
    ["monolithicFlat", "twoGbMaxExtentFlat", "twoGbMaxExtentSparse", "vmfs", "vmfsSparse"];

#[cfg(test)]
mod tests;
