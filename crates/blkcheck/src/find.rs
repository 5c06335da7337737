//! Finds the layers of a disk.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};

use blkfs::volumes::luks::Luks;
use blkfs::volumes::lvm::{Content, LogicalVolume, PhysicalVolume};
use blkfs::{FileSystem, has_btrfs, signature};
use blkimage::partition::{self, Gpt, Label, Partition, Protection, Table, verify_gpt};
use blkverity::Superblock;

use crate::error::Result;
use crate::finding::{Finding, FindingKind};
use crate::found::{Found, Layer};
use crate::place::{Place, Step};
use crate::tally::of_bytes;
use crate::window::Window;

/// Returns the layers in the order of the disk.
pub(crate) fn layers(disk: Window) -> Result<Vec<Layer>> {
    let budget = disk.size().saturating_mul(MAX_OVERLAP);
    let mut finder = Finder { budget, ..Finder::default() };
    finder.disk(Layer::new(Place::default(), disk, Found::Other), 0)?;
    let Finder { mut layers, seen, elsewhere, .. } = finder;
    // What no physical volume on this disk has.
    layers
        .extend(elsewhere.into_iter().filter(|(id, _)| !seen.contains(id)).map(|(_, layer)| layer));
    Ok(layers)
}

#[derive(Default)]
struct Finder {
    layers: Vec<Layer>,
    /// Number of bytes of layers that may still be verified.
    budget: u64,
    /// Number of physical volumes.
    physical: usize,
    /// Logical volumes that were added, by their UUIDs. Each physical volume describes all of its group.
    seen: HashSet<String>,
    /// Logical volumes that may be on other physical volumes of the disk.
    elsewhere: BTreeMap<String, Layer>,
}

impl Layer {
    fn new(place: Place, window: Window, found: Found) -> Self {
        let remarks = Vec::new();
        Self { place, window, found, details: None, missing: 0, tree: None, remarks }
    }

    /// Returns what is found instead if the bytes cannot be read.
    fn unreadable(self, error: blkimage::Error) -> Result<Self> {
        let found = Found::Skipped("unknown", of_bytes(error)?);
        Ok(Self { found, ..self })
    }
}

impl Finder {
    fn push(&mut self, layer: Layer) {
        let reason = match self.layers.len().cmp(&MAX_LAYERS) {
            Ordering::Greater => return,
            Ordering::Equal => "the disk has more layers",
            Ordering::Less => {
                let left = match layer.found {
                    Found::Other | Found::Btrfs(_) => self.budget.checked_sub(layer.window.size()),
                    _ => Some(self.budget),
                };
                if let Some(left) = left {
                    self.budget = left;
                    self.layers.push(layer);
                    return;
                }
                "too many partitions or volumes overlap"
            }
        };
        let finding = Finding::new(FindingKind::Skipped, "layer", 0, reason);
        self.layers.push(Layer { found: Found::Skipped("unknown", finding), ..layer });
    }

    /// Adds a disk, or a logical volume that may be the disk of a guest.
    fn disk(&mut self, mut layer: Layer, depth: usize) -> Result<()> {
        if self.layers.len() > MAX_LAYERS {
            return Ok(());
        }
        let source = &*layer.window.source;
        match verify_gpt(source) {
            Err(error) => {
                self.push(layer.unreadable(error)?);
                return Ok(());
            }
            Ok(Some(gpt)) => match gpt.protection {
                Protection::Protective | Protection::Damaged => return self.gpt(&layer, gpt),
                Protection::Missing if !is_known(&layer.window)? => return self.gpt(&layer, gpt),
                Protection::Missing | Protection::Replaced => {
                    let remark = "there is a GPT that is not used, as no protective MBR is there";
                    layer.remarks.push(remark.to_owned());
                }
            },
            Ok(None) => {}
        }
        match partition::table(&*layer.window.source) {
            Ok(table)
                if table.label == Some(Label::Mbr)
                    && !table.partitions.is_empty()
                    && !table.is_of_file_system() =>
            {
                let lost = table.lost.as_ref().map(ToString::to_string);
                let mut own =
                    Layer::new(layer.place.clone(), layer.window.clone(), Found::Mbr(lost));
                own.remarks.append(&mut layer.remarks);
                self.push(own);
                self.partitions(&layer, table)
            }
            _ => self.volume(layer, depth),
        }
    }

    fn gpt(&mut self, layer: &Layer, mut gpt: Gpt) -> Result<()> {
        let table = std::mem::take(&mut gpt.table);
        let found = Found::Gpt(Box::new(gpt));
        self.push(Layer::new(layer.place.clone(), layer.window.clone(), found));
        self.partitions(layer, table)
    }

    /// Adds the partitions of a disk, and the file system of a hybrid one.
    fn partitions(&mut self, disk: &Layer, mut table: Table) -> Result<()> {
        if let Ok(Some("iso9660")) = signature(&*disk.window.source) {
            self.push(Layer::new(disk.place.clone(), disk.window.clone(), Found::Other));
        }
        for Partition { number, offset, length } in table.partitions {
            let place = disk.place.then(Step::Partition(number));
            let details = table.details.remove(&number);
            let Some(window) = disk.window.range(offset, length) else {
                let reason = format!("it lies past the end of the image, at {offset}");
                let finding = Finding::new(FindingKind::Unreadable, "partition", 0, reason);
                let found = Found::Skipped("unknown", finding);
                let end = disk.window.range(disk.window.size(), 0);
                let window = end.unwrap_or_else(|| disk.window.clone());
                self.push(Layer { details, ..Layer::new(place, window, found) });
                continue;
            };
            let missing = length.saturating_sub(window.size());
            let layer = Layer::new(place, window, Found::Other);
            self.volume(Layer { details, missing, ..layer }, 1)?;
        }
        Ok(())
    }

    /// Adds a part of a disk that has no partition table.
    fn volume(&mut self, layer: Layer, depth: usize) -> Result<()> {
        let found = match self.recognise(&layer.window) {
            Ok(found) => found,
            Err(blkfs::Error::Image(error)) => {
                self.push(layer.unreadable(error)?);
                return Ok(());
            }
            Err(_) => Found::Other,
        };
        let Found::Lvm(mut volume) = found else {
            self.push(Layer { found, ..layer });
            return Ok(());
        };
        let (place, window) = (layer.place.clone(), layer.window.clone());
        let volumes = std::mem::take(&mut volume.volumes);
        self.push(Layer { found: Found::Lvm(volume), ..layer });
        for volume in volumes {
            self.logical(&window, &place, volume, depth)?;
        }
        Ok(())
    }

    fn logical(
        &mut self,
        outer: &Window,
        place: &Place,
        volume: LogicalVolume,
        depth: usize,
    ) -> Result<()> {
        let LogicalVolume { name, uuid, content, .. } = volume;
        let place = place.then(Step::Volume(name));
        let id = uuid.unwrap_or_else(|| place.to_string());
        if content != Content::Elsewhere && !self.seen.insert(id.clone()) {
            return Ok(());
        }
        let skipped = |kind, reason| {
            Found::Skipped("logical volume", Finding::new(kind, "logical volume", 0, reason))
        };
        let (found, window) = match content {
            Content::Linear(_) if depth >= MAX_DEPTH => {
                let reason = "too many volumes within each other".to_owned();
                (skipped(FindingKind::Skipped, reason), None)
            }
            Content::Linear(segments) => match outer.linear(&segments) {
                Some(window) => (Found::Other, Some(window)),
                None => {
                    let reason = "it ends past the end of the image".to_owned();
                    (skipped(FindingKind::Unreadable, reason), None)
                }
            },
            Content::Elsewhere => {
                let reason = "it is on other physical volumes".to_owned();
                let found = skipped(FindingKind::Skipped, reason);
                if self.elsewhere.len() < MAX_LAYERS {
                    self.elsewhere.insert(id, Layer::new(place, outer.clone(), found));
                }
                return Ok(());
            }
            Content::Skipped(reason) => (skipped(FindingKind::Skipped, reason), None),
            Content::Damaged(reason) => (skipped(FindingKind::Damaged, reason), None),
        };
        match window {
            Some(window) => self.disk(Layer::new(place, window, found), depth + 1),
            None => {
                self.push(Layer::new(place, outer.clone(), found));
                Ok(())
            }
        }
    }
}

impl Finder {
    /// Returns what a part of a disk begins with. The metadata of a physical volume take time, so that their number is
    /// limited.
    fn recognise(&mut self, window: &Window) -> blkfs::Result<Found> {
        if self.physical == MAX_PHYSICAL {
            let reason = "the disk has too many physical volumes";
            let finding = Finding::new(FindingKind::Skipped, "layer", 0, reason);
            return Ok(Found::Skipped("unknown", finding));
        }
        let found = recognise(window)?;
        self.physical += usize::from(matches!(found, Found::Lvm(_)));
        Ok(found)
    }
}

/// Returns what a part of a disk begins with.
fn recognise(window: &Window) -> blkfs::Result<Found> {
    let source = &window.source;
    if let Some(luks) = Luks::open(source)? {
        return Ok(Found::Luks(Box::new(luks)));
    }
    if let Some(volume) = PhysicalVolume::open(source)? {
        return Ok(Found::Lvm(Box::new(volume)));
    }
    if Superblock::has_magic(&window.head(Superblock::SIZE as u64)?) {
        return Ok(Found::Verity(None));
    }
    if has_btrfs(source)? {
        return Ok(Found::Btrfs(None));
    }
    Ok(Found::Other)
}

/// Returns whether a disk without partitions begins with anything that is known.
fn is_known(window: &Window) -> Result<bool> {
    match recognise(window) {
        Ok(Found::Other) => Ok(!matches!(FileSystem::open(window.source.clone()), Ok(None))
            || !matches!(signature(&*window.source), Ok(None))),
        Ok(_) => Ok(true),
        Err(blkfs::Error::Image(error)) => of_bytes(error).map(|_| false),
        Err(_) => Ok(false),
    }
}

/// Maximum depth of logical volumes within each other.
/// Limit in volumes.
const MAX_DEPTH: usize = 4;

/// Maximum number of physical volumes of a disk, those in logical volumes included.
/// Limit in volumes.
const MAX_PHYSICAL: usize = 32;

/// How often the bytes of a disk may be in different layers, on average. Partitions of a damaged table may all overlap.
const MAX_OVERLAP: u64 = 8;

/// Maximum number of layers of a disk.
/// Limit in layers.
const MAX_LAYERS: usize = 4096;
