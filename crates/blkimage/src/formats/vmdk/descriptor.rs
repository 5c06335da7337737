//! The text that describes a VMware disk.
//!
//! The whole text is parsed by stricter rules than in QEMU, which ignores unknown lines and with them
//! parts of the disk. Then a new text is generated, with the paths of descriptors that passed the gate
//! in place of the names. QEMU never sees the original text.

use std::fmt::Write;

use crate::error::excerpt;

/// A disk and the files that hold it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Descriptor {
    pub cid: u32,
    pub parent_cid: u32,
    pub create_type: String,
    pub extents: Vec<DiskExtent>,
    /// Name of the parent disk, if this is a differencing disk.
    pub parent: Option<Vec<u8>>,
}

/// A part of the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiskExtent {
    pub sectors: u64,
    pub kind: DiskExtentKind,
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
        let (mut cid, mut parent_cid, mut create_type, mut parent) = (None, None, None, None);
        let mut extents = Vec::new();
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let at = |flaw: &str| format!("line {} of its descriptor {flaw}", index + 1);
            if let Some(extent) = DiskExtent::parse(line, &at)? {
                if extents.len() == MAX_EXTENTS {
                    let flaw = format!("its descriptor has more than {MAX_EXTENTS} extents");
                    return Err(Flaw::Unsupported(flaw));
                }
                extents.push(extent);
                continue;
            }
            let Some(split) = line.iter().position(|byte| *byte == b'=') else {
                return Err(Flaw::Invalid(at("is neither an extent nor a setting")));
            };
            let (key, value) = (line[..split].trim_ascii(), line[split + 1..].trim_ascii());
            let hex = || match std::str::from_utf8(value).map(|v| u32::from_str_radix(v, 16)) {
                Ok(Ok(number)) => Ok(number),
                _ => Err(Flaw::Invalid(at("has a content id that is no number"))),
            };
            let quoted = || match value {
                [b'"', inner @ .., b'"'] if !inner.contains(&b'"') => Ok(inner),
                _ => Err(Flaw::Invalid(at("has a value that is not in quotes"))),
            };
            let is_first = match key.to_ascii_lowercase().as_slice() {
                b"version" if !matches!(value, b"1" | b"2" | b"3") => {
                    let flaw = format!("has the unknown version \"{}\"", excerpt(value));
                    return Err(Flaw::Unsupported(at(&flaw)));
                }
                b"cid" => cid.replace(hex()?).is_none(),
                // QEMU finds the key only in this spelling.
                b"parentcid" if !line.starts_with(b"parentCID=") => {
                    return Err(Flaw::Invalid(at("does not spell parentCID= as it must")));
                }
                b"parentcid" => parent_cid.replace(hex()?).is_none(),
                b"createtype" => create_type.replace(quoted()?.to_vec()).is_none(),
                b"parentfilenamehint" => parent.replace(quoted()?.to_vec()).is_none(),
                _ => true,
            };
            if !is_first {
                return Err(Flaw::Invalid(at("repeats a setting")));
            }
        }
        let create_type = create_type.unwrap_or_default();
        let Some(create_type) = CREATE_TYPES.iter().find(|name| name.as_bytes() == create_type)
        else {
            let create_type = excerpt(&create_type);
            return Err(Flaw::Unsupported(format!("its type \"{create_type}\" is not read")));
        };
        if extents.is_empty() {
            return Err(Flaw::Invalid("its descriptor has no extents".into()));
        }
        // QEMU refuses a descriptor without this line.
        let Some(parent_cid) = parent_cid else {
            return Err(Flaw::Invalid("its descriptor lacks the line parentCID=".into()));
        };
        if parent.is_none() && parent_cid != NO_PARENT {
            return Err(Flaw::Invalid("it is a difference to a disk that it does not name".into()));
        }
        let cid = cid.unwrap_or(NO_PARENT);
        Ok(Self { cid, parent_cid, create_type: (*create_type).into(), extents, parent })
    }

    /// Returns a descriptor of the same disk with the extents at `paths`. It omits the parent, which
    /// QEMU gets as a node.
    pub fn render(&self, paths: &[String]) -> String {
        let Self { cid, parent_cid, create_type, extents, .. } = self;
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
        if !matches!(kind, b"FLAT" | b"VMFS" | b"SPARSE" | b"VMFSSPARSE") {
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
        let start = match (kind, start) {
            (b"SPARSE" | b"VMFSSPARSE" | b"VMFS", b"") => 0,
            (b"FLAT" | b"VMFS", start) => number(start)
                .filter(|start| *start <= MAX_SECTORS)
                .ok_or_else(|| invalid("is an extent without an offset"))?,
            _ => return Err(invalid("has more words than an extent")),
        };
        let kind = match kind {
            b"SPARSE" => DiskExtentKind::Sparse,
            b"VMFSSPARSE" => DiskExtentKind::VmfsSparse,
            _ => DiskExtentKind::Flat { start },
        };
        Ok(Some(Self { sectors, kind, name: name.to_vec() }))
    }
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

/// Content id that means no parent.
pub(crate) const NO_PARENT: u32 = 0xffff_ffff;

/// Maximum size of a descriptor file in bytes. The maximum number of extents with names
/// of maximum length fits.
pub(crate) const MAX_DESCRIPTOR: usize = 256 << 10;

/// Maximum number of extents. Each one costs file descriptors here and in QEMU. Enough
/// for 1 TB in files of 2 GB.
const MAX_EXTENTS: usize = 512;

/// Maximum number of sectors with a valid offset in bytes.
const MAX_SECTORS: u64 = (i64::MAX as u64) / 512;

/// Disk types whose extents are files.
const CREATE_TYPES: [&str; 5] =
    ["monolithicFlat", "twoGbMaxExtentFlat", "twoGbMaxExtentSparse", "vmfs", "vmfsSparse"];

#[cfg(test)]
mod tests;
