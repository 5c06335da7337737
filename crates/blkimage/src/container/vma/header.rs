//! The header of a VMA archive: its devices, and the files of configuration, which are in a table of texts.

use std::collections::BTreeMap;

use md5::{Digest as _, Md5};

use crate::error::excerpt;

/// The header of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub uuid: [u8; 16],
    /// Size of the header, which the first extent follows.
    pub size: u64,
    pub devices: Vec<Device>,
}

/// A device of which the archive has the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Device {
    pub id: u8,
    pub name: Vec<u8>,
    pub size: u64,
}

impl Device {
    /// Returns whether it is a disk, and not the memory of the machine.
    pub fn is_disk(&self) -> bool {
        self.name != b"vmstate"
    }

    /// Returns the number of clusters.
    pub fn clusters(&self) -> u64 {
        self.size.div_ceil(CLUSTER)
    }
}

/// Returns the size that the first bytes of a header state. Fails with the reason if it is invalid.
pub(super) fn size_of(head: &[u8; FIXED]) -> Result<u64, &'static str> {
    if !head.starts_with(MAGIC) {
        return Err("is no VMA archive of version 1");
    }
    let size = u64::from(u32_at(head, 56));
    match size >= FIXED as u64 && size.is_multiple_of(512) {
        true if size <= MAX_HEADER => Ok(size),
        true => Err("has a header that is larger than the limit"),
        false => Err("has a header of an invalid size"),
    }
}

impl Header {
    /// Parses a whole header. Fails with the reason if it is invalid.
    pub fn new(bytes: &[u8]) -> Result<Self, String> {
        let Some(head) = bytes.first_chunk::<FIXED>() else { return Err(CUT.into()) };
        if !is_sum(bytes, 32) {
            return Err("has a header that does not match its MD5".into());
        }
        let (start, length) = (u32_at(head, 48) as usize, u32_at(head, 52) as usize);
        let texts = start.checked_add(length).and_then(|end| bytes.get(start..end));
        let texts = texts.filter(|_| start >= FIXED).ok_or(CUT)?;
        let texts = Texts::new(head, texts);
        texts.check_configurations(head)?;
        let mut devices: Vec<Device> = Vec::new();
        for id in 1..=u8::MAX {
            let at = DEVICES + 32 * usize::from(id);
            let (name, size) = (u32_at(head, at), u64_at(head, at + 8));
            if name == 0 && size == 0 {
                continue;
            }
            let name = texts.at(name).ok_or("has a device without a name")?;
            let name = name.strip_suffix(b"\0").unwrap_or(name);
            if name.is_empty() || name.contains(&0) || std::str::from_utf8(name).is_err() {
                return Err("has a device with an invalid name".into());
            }
            let device = Device { id, name: name.to_vec(), size };
            if device.is_disk() && (size == 0 || device.clusters() > 1 << 32) {
                return Err(format!("has the device \"{}\" of an invalid size", excerpt(name)));
            }
            if devices.iter().any(|other| other.name == name) {
                return Err(format!("has two devices with the name \"{}\"", excerpt(name)));
            }
            devices.push(device);
        }
        let uuid = head[8..24].try_into().map_err(|_| CUT)?;
        Ok(Self { uuid, size: bytes.len() as u64, devices })
    }
}

/// The texts to which a header refers, by their offsets in the table.
struct Texts<'a>(BTreeMap<u32, &'a [u8]>);

impl<'a> Texts<'a> {
    /// Finds them in one walk through the table, which begins with an unused byte.
    fn new(head: &[u8; FIXED], table: &'a [u8]) -> Self {
        let devices = (1..256).map(|id| DEVICES + 32 * id);
        let configurations = (0..256).flat_map(|index| [NAMES + 4 * index, FILES + 4 * index]);
        let wanted = devices.chain(configurations).map(|at| (u32_at(head, at), None));
        let mut found: BTreeMap<u32, Option<&[u8]>> = wanted.collect();
        let mut at = 1;
        while let Some(length) = table.get(at..at + 2) {
            let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
            let Some(text) = table.get(at + 2..at + 2 + length) else { break };
            if let Some(place) = u32::try_from(at).ok().and_then(|at| found.get_mut(&at)) {
                *place = Some(text);
            }
            at += 2 + length;
        }
        Self(found.into_iter().filter_map(|(at, text)| Some((at, text?))).collect())
    }

    /// Returns the text at an offset. `None` if none begins there.
    fn at(&self, offset: u32) -> Option<&'a [u8]> {
        self.0.get(&offset).copied()
    }

    /// Fails unless each file of configuration has a name and a content, without which programs refuse an archive.
    fn check_configurations(&self, head: &[u8; FIXED]) -> Result<(), &'static str> {
        for index in 0..256 {
            let (name, file) = (u32_at(head, NAMES + 4 * index), u32_at(head, FILES + 4 * index));
            let is_name = |name: &[u8]| std::str::from_utf8(name).is_ok();
            let is_there = self.at(name).is_some_and(is_name) && self.at(file).is_some();
            if (name, file) != (0, 0) && !is_there {
                return Err("has a file of configuration without a name or a content");
            }
        }
        Ok(())
    }
}

/// Returns whether the MD5 of `bytes` is the one in them at `at`, with zeros in its place.
pub(super) fn is_sum(bytes: &[u8], at: usize) -> bool {
    let Some((before, rest)) = bytes.split_at_checked(at) else { return false };
    let Some((stated, behind)) = rest.split_at_checked(16) else { return false };
    let sum = Md5::new().chain_update(before).chain_update([0; 16]).chain_update(behind);
    sum.finalize()[..] == *stated
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|it| it.try_into().ok()).map_or(0, u32::from_be_bytes)
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|it| it.try_into().ok()).map_or(0, u64::from_be_bytes)
}

/// The magic, and the version.
pub(super) const MAGIC: &[u8] = b"VMA\0\0\0\0\x01";

/// Offsets of the offsets of the names and contents of configurations, and of the list of devices.
const NAMES: usize = 2044;
const FILES: usize = 3068;
const DEVICES: usize = 4096;

/// Size of a header without its texts.
pub(super) const FIXED: usize = 12_288;

/// Size of a cluster, and of a block, of which a cluster has 16.
pub(super) const CLUSTER: u64 = 64 << 10;
pub(super) const BLOCK: u64 = 4 << 10;

/// Maximum size of the header of a VMA archive, with the configuration of the machine and of its firewall.
/// Limit in bytes.
const MAX_HEADER: u64 = 4 << 20;

const CUT: &str = "has a header that is cut off";
