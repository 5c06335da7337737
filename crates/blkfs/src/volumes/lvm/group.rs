//! The logical volumes of a volume group, and where they are on one of its physical volumes.

use std::collections::BTreeMap;
use std::sync::Arc;

use blkimage::{Slice, Source};

use super::label::SECTOR;
use super::text::{Section, Value};

/// A volume group, as one of its physical volumes describes it.
pub(super) struct Group {
    pub name: String,
    pub sequence: u64,
    /// Sorted by name.
    pub volumes: Vec<LogicalVolume>,
    pub remarks: Vec<String>,
}

/// A logical volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogicalVolume {
    /// Name in its group.
    pub name: String,
    /// UUID, if it has one.
    pub uuid: Option<String>,
    /// Size in bytes.
    pub size: u64,
    /// Where its content is.
    pub content: Content,
}

/// Where the content of a logical volume is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// On this physical volume, in order of the content.
    Linear(Vec<Segment>),
    /// On other physical volumes only.
    Elsewhere,
    /// In a way that is not read.
    Skipped(String),
    /// In a way that the metadata do not describe as they should.
    Damaged(String),
}

/// A part of a logical volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Offset on the physical volume in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
}

impl Segment {
    /// Returns the source of a linear volume, whose segments need not be in the order of the physical volume `source`. Returns
    /// `None` if there is none, if one is empty, or if one ends past the end.
    pub fn join(segments: &[Self], source: Arc<dyn Source>) -> Option<Slice<Arc<dyn Source>>> {
        let ranges = segments.iter().map(|it| it.offset..it.offset.saturating_add(it.length));
        Slice::joined(source, ranges).filter(|_| !segments.is_empty())
    }
}

impl Group {
    /// Parses the metadata of the physical volume with this UUID, without dashes.
    pub fn parse(text: &[u8], uuid: &[u8; 32]) -> Result<Self, String> {
        let root = Section::parse(text)?;
        let (name, group) = root.sections().next().ok_or("it has no volume group")?;
        let sequence = group.number("seqno").ok_or("its volume group has no sequence number")?;
        let extent = group.number("extent_size").and_then(|size| size.checked_mul(SECTOR));
        let extent = extent.filter(|size| *size > 0).ok_or("it has no size of an extent")?;
        let mut remarks = Vec::new();
        let here = group.section("physical_volumes").and_then(|volumes| {
            volumes.sections().find(|(_, it)| it.string("id").is_some_and(|id| is_uuid(id, uuid)))
        });
        if here.is_none() {
            remarks.push("the volume group does not have this physical volume any more".to_owned());
        }
        let here = here.and_then(|(name, volume)| {
            let start = volume.number("pe_start")?.checked_mul(SECTOR)?;
            Some(Here { name, start, extent, count: volume.number("pe_count")? })
        });
        let all = group.section("logical_volumes");
        let stores: BTreeMap<_, _> = all.map(snapshots).unwrap_or_default();
        let all = all.into_iter().flat_map(Section::sections);
        // The others are parts of these. A snapshot has the name of the volume that stores what changed.
        let volumes =
            all.filter(|(name, volume)| has_status(volume, "VISIBLE") || stores.contains_key(name));
        let mut volumes: Vec<_> = volumes
            .map(|(name, volume)| LogicalVolume {
                name: lossy(name),
                uuid: volume.string("id").map(lossy),
                size: size(volume, extent).unwrap_or_default(),
                content: match (stores.get(name), &here) {
                    (Some(origin), _) => {
                        Content::Skipped(format!("a snapshot of {}", lossy(origin)))
                    }
                    (None, Some(here)) => here.content(volume),
                    (None, None) => Content::Elsewhere,
                },
            })
            .collect();
        volumes.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Self { name: lossy(name), sequence, volumes, remarks })
    }
}

/// Returns the origins of snapshots, by the volumes that store what changed.
fn snapshots<'a>(volumes: &Section<'a>) -> BTreeMap<&'a [u8], &'a [u8]> {
    let segments = volumes.sections().filter_map(|(_, volume)| volume.section("segment1"));
    let stores = segments.filter_map(|segment| {
        let store = segment.string("cow_store").or_else(|| segment.string("merging_store"))?;
        Some((store, segment.string("origin")?))
    });
    stores.collect()
}

fn has_status(volume: &Section<'_>, status: &str) -> bool {
    volume.array("status").iter().any(|it| it.as_string() == Some(status.as_bytes()))
}

fn is_uuid(id: &[u8], uuid: &[u8; 32]) -> bool {
    id.iter().filter(|byte| **byte != b'-').eq(uuid)
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the size of a logical volume in bytes.
fn size(volume: &Section<'_>, extent: u64) -> Option<u64> {
    let segments = volume.sections().filter(|(name, _)| name.starts_with(b"segment"));
    let mut extents = segments.map(|(_, segment)| segment.number("extent_count"));
    let extents = extents.try_fold(0_u64, |sum, count| sum.checked_add(count?))?;
    extents.checked_mul(extent)
}

/// The physical volume that is read.
struct Here<'a> {
    name: &'a [u8],
    /// Offset of the first extent in bytes.
    start: u64,
    /// Size of an extent in bytes.
    extent: u64,
    /// Number of extents.
    count: u64,
}

impl Here<'_> {
    fn content(&self, volume: &Section<'_>) -> Content {
        let segments = volume.sections().map(|(_, segment)| segment.array("stripes"));
        let mut places = segments.flatten().filter_map(Value::as_string).peekable();
        if places.peek().is_some() && places.all(|name| name != self.name) {
            return Content::Elsewhere;
        }
        let mut segments = Vec::new();
        let mut next = 0;
        let damaged = |reason: &str| Content::Damaged(reason.to_owned());
        let Some(count) = volume.number("segment_count") else {
            return damaged("its segments are not counted");
        };
        let by_name: BTreeMap<_, _> = volume.sections().collect();
        for number in 1..=count {
            let Some(segment) = by_name.get(format!("segment{number}").as_bytes()) else {
                return damaged("a segment is missing");
            };
            if segment.number("start_extent") != Some(next) {
                return damaged("its segments do not follow each other");
            }
            match self.segment(segment) {
                Ok((extents, part)) => {
                    next = match next.checked_add(extents) {
                        Some(next) => next,
                        None => return damaged("it has too many extents"),
                    };
                    segments.push(part);
                }
                Err(other) => return other,
            }
        }
        if segments.is_empty() {
            return damaged("it has no segments");
        }
        Content::Linear(segments)
    }

    /// Returns the number of extents of a segment and its place, or the reason why it is not read.
    fn segment(&self, segment: &Section<'_>) -> Result<(u64, Segment), Content> {
        let damaged = |reason: &str| Content::Damaged(reason.to_owned());
        let kind = segment.string("type").unwrap_or_default();
        if kind != b"striped" && kind != b"linear" {
            return Err(Content::Skipped(format!("of the type {}", lossy(kind))));
        }
        if segment.number("stripe_count") != Some(1) {
            return Err(Content::Skipped("striped".to_owned()));
        }
        let [name, first] = segment.array("stripes") else {
            return Err(damaged("a segment has no place"));
        };
        match name {
            Value::String(name) if *name == self.name => {}
            Value::String(_) => {
                return Err(Content::Skipped("partly on other physical volumes".to_owned()));
            }
            _ => return Err(damaged("a segment has no place")),
        }
        let (first, count) = (first.as_number(), segment.number("extent_count"));
        let (Some(first), Some(count)) = (first, count) else {
            return Err(damaged("a segment has no place"));
        };
        let is_within = first.checked_add(count).is_some_and(|end| end <= self.count) && count > 0;
        let offset = first.checked_mul(self.extent).and_then(|it| it.checked_add(self.start));
        let length = count.checked_mul(self.extent);
        match (offset, length) {
            (Some(offset), Some(length)) if is_within => Ok((count, Segment { offset, length })),
            _ => Err(damaged("a segment lies past the end of the physical volume")),
        }
    }
}
