//! LVM2: the label and the metadata of a physical volume, and the logical volumes that are on it alone.
//!
//! 1. `label.rs` finds the label in one of the first four sectors, which names the metadata areas.
//! 2. `area.rs` verifies the header of each area, and the text that it names in its ring buffer.
//! 3. `text.rs` parses the text, and `group.rs` finds the logical volumes in it.

mod area;
mod crc;
mod group;
mod label;
mod text;

use std::sync::Arc;

use blkimage::Source;

pub use self::group::{Content, LogicalVolume, Segment};

use self::group::Group;
use self::label::Label;
use super::Checks;
use crate::error::Result;
use crate::visitor::ProblemKind;
use crate::volume::Volume;

/// A physical volume.
#[derive(Clone, Debug)]
pub struct PhysicalVolume {
    /// UUID as `pvs` prints it.
    pub uuid: String,
    /// Name of the volume group, if it belongs to one whose metadata could be read.
    pub group: Option<String>,
    /// The logical volumes of the group that are meant to be used, those on other physical volumes included.
    pub volumes: Vec<LogicalVolume>,
    /// The structures that were verified.
    pub checks: Checks,
}

impl PhysicalVolume {
    /// Reads the label and the metadata of a physical volume. Returns `None` if there is no label.
    ///
    /// # Errors
    ///
    /// Fails if the first sectors cannot be read.
    pub fn open(source: &Arc<dyn Source>) -> Result<Option<Self>> {
        let volume = Volume::new(source.clone());
        let mut checks = Checks::default();
        let Some(label) = Label::find(&volume, &mut checks)? else { return Ok(None) };
        let uuid = dashed(&label.uuid);
        if label.size > volume.size() {
            let (size, there) = (label.size, volume.size());
            let reason = format!("it has {size} bytes, of which {there} are here");
            checks.problem(ProblemKind::Unreadable, "physical volume", 0, reason);
        }
        if label.areas.len() > MAX_AREAS {
            let reason = format!("it has {} metadata areas", label.areas.len());
            checks.problem(ProblemKind::Skipped, "physical volume", 0, reason);
        }
        let areas = label.areas.iter().take(MAX_AREAS);
        let texts: Vec<_> =
            areas.filter_map(|area| area::read(&volume, *area, &mut checks)).collect();
        let groups = texts.iter().filter_map(|text| match Group::parse(&text.bytes, &label.uuid) {
            Ok(group) => Some((group, text)),
            Err(reason) => {
                checks.damaged("metadata text", text.offset, reason);
                None
            }
        });
        let groups: Vec<_> = groups.collect();
        let sequences = || groups.iter().map(|(group, _)| group.sequence);
        if let (Some(first), Some(last)) = (sequences().min(), sequences().max()) {
            if first != last {
                checks.remarks.push(format!(
                    "the metadata areas have the sequence numbers {first} and {last}: an update was interrupted"
                ));
            } else if let [(_, first), others @ ..] = groups.as_slice() {
                for (_, other) in others.iter().filter(|(_, other)| other.bytes != first.bytes) {
                    let reason = "it has the sequence number of the first one, and other content";
                    checks.damaged("metadata text", other.offset, reason);
                }
            }
        }
        let Some((group, _)) = groups.into_iter().max_by_key(|(group, _)| group.sequence) else {
            return Ok(Some(Self { uuid, group: None, volumes: Vec::new(), checks }));
        };
        checks.remarks.extend(group.remarks);
        Ok(Some(Self { uuid, group: Some(group.name), volumes: group.volumes, checks }))
    }
}

/// Returns a UUID with dashes.
fn dashed(uuid: &[u8; 32]) -> String {
    let mut text = String::from_utf8_lossy(uuid).into_owned();
    if text.len() == uuid.len() && text.is_ascii() {
        for at in [26, 22, 18, 14, 10, 6] {
            text.insert(at, '-');
        }
    }
    text
}

/// Maximum number of metadata areas that are read. LVM makes two at most.
/// Limit in areas.
const MAX_AREAS: usize = 4;

#[cfg(test)]
mod tests;
