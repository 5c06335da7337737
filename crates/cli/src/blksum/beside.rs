//! Where an image that does not match its checksum differs from the map next to it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use blkhash::{Comparison, Parameters};
use blkimage::Format;
use blkmap::{Map, Report};
use blksum::map::{Info, Pairing};
use blksum::{Part, Progress, Selected};

use super::hash::counts;
use super::settings::{Meaning, Settings};
use crate::image::contents::Used;
use crate::image::input;
use crate::map;
use crate::map::open::{self, Beside};
use crate::problem::Problem;
use crate::progress::{Amount, Reporter};
use crate::quote;

/// Returns the name of the map next to an image.
pub fn map_of(name: &OsStr) -> Option<OsString> {
    let is_file = name != "-" && !input::is_uri(name);
    is_file.then(|| {
        [&*map::path_of(name).into_os_string(), OsStr::new(".blkmap")].into_iter().collect()
    })
}

/// Returns whether there is a map. A link is none: the folder may be another user's.
pub fn is_there(map: &OsStr) -> bool {
    std::fs::symlink_metadata(map).is_ok_and(|metadata| metadata.is_file())
}

/// An image that does not match.
pub struct Failed<'a> {
    pub name: &'a OsStr,
    pub settings: &'a Settings,
    pub meaning: &'a Meaning<'a>,
    /// Parameters of the checksum that it should have, if they are known.
    pub parameters: Option<&'a Parameters>,
    /// The checksum that it should have.
    pub expected: &'a [u8],
}

impl Failed<'_> {
    /// Reads the image again and says where it differs from the map next to it. Returns `None` if there is no map
    /// of this content.
    pub fn differences(&self, reporter: &Reporter) -> Option<String> {
        let map_name = map_of(self.name)?;
        if !is_there(&map_name) {
            return None;
        }
        let map = match open::beside(Path::new(self.name), Path::new(&map_name)) {
            Beside::None => return None,
            Beside::Untrusted => return Some(of_map(&map_name, UNTRUSTED)),
            Beside::Map(map) => match *map {
                Ok(map) => map,
                Err(error) => return Some(of_map(&map_name, &Problem::from(error).text())),
            },
        };
        if !self.is_of_content(&map) {
            return None;
        }
        let has_checksum = || {
            let parameters = self.parameters?;
            let construction = parameters.construction();
            let known = blkmap::parameters(&map, construction).ok()?;
            let checksum = || blkmap::checksum(&map, construction, self.settings.tuning.threads);
            let is_cheap = map.commit().zero_blocks() <= MAX_ZERO_BLOCKS;
            (known == *parameters && is_cheap)
                .then(|| checksum().map(|it| it.as_bytes() == self.expected))
        };
        let unproven = match has_checksum() {
            Some(Ok(true)) => "",
            None | Some(Err(blkmap::Error::Incomplete { .. })) => {
                ", which cannot be compared with the checksum,"
            }
            Some(Ok(false)) => return Some(of_map(&map_name, OF_OTHER)),
            Some(Err(error)) => return Some(of_map(&map_name, &Problem::from(error).text())),
        };
        reporter.begin(self.name);
        let found = self.compare(&map, reporter);
        reporter.end(self.name, None);
        let shown = quote::name(map_name.as_bytes());
        Some(match found {
            Ok(found) => match found.describe(&map) {
                None => format!("has no differences from {shown}"),
                Some(what) => format!(
                    "differs from {shown}{unproven} in {what}: blkhash map verify{} {} {} shows where",
                    self.options(),
                    quote::name(&argument(&map_name)),
                    quote::name(&argument(self.name))
                ),
            },
            Err(reason) => format!("compared with {shown}: {reason}"),
        })
    }

    /// Returns whether the map is of the content that is checked, as far as it says.
    fn is_of_content(&self, map: &Map) -> bool {
        let Some(source) = Info::of(map).and_then(|info| info.source) else { return true };
        let partition = self.meaning.part.and_then(Part::partition);
        let is_range = self.meaning.part.is_some() && partition.is_none();
        let format = self.meaning.open.format.map(Format::name);
        !is_range
            && source.partition == partition
            && source.snapshot.as_deref() == self.meaning.open.snapshot.as_deref()
            && format.is_none_or(|format| source.format == format)
    }

    /// Returns the options that say what of the image is read.
    fn options(&self) -> String {
        let partition = self.meaning.part.and_then(Part::partition);
        let partition = partition.map(|number| format!(" --partition {number}"));
        let snapshot = self.meaning.open.snapshot.as_ref();
        let snapshot = snapshot.map(|it| format!(" --snapshot {}", quote::name(it.as_bytes())));
        let format = self.meaning.open.format.map(|format| format!(" -f {format}"));
        [format, partition, snapshot].into_iter().flatten().collect()
    }

    fn compare(&self, map: &Map, reporter: &Reporter) -> Result<Found, String> {
        let image = self.meaning.open.open(Path::new(self.name));
        let image = Arc::new(image.map_err(|error| error.to_string())?);
        let image = Selected::new(image, self.meaning.part).map_err(|error| error.to_string())?;
        let mut found = Found { size: image.size(), ..Found::default() };
        let pairing = Pairing::new(map, &image).map_err(|other| other.to_string())?;
        let mut take = |first, count, kind| found.add(first, count, kind);
        let progress = Arc::new(Progress::new());
        let amount = Amount { total: pairing.length(), stored: None };
        let watch = reporter.watch(Some(amount), {
            let progress = progress.clone();
            move || counts(&progress)
        });
        // Zeros that the image does not store cost nothing.
        let tuning = self.settings.tuning.with_max_zeros(Some(u64::MAX));
        let compared = pairing.compare(Report::new(&mut take), &tuning, &progress);
        drop(watch);
        compared.map_err(|error| error.to_string())?;
        let block = u64::from(map.header().block_size);
        found.used = Used::of(Arc::new(image.source().clone()), &found.runs, block).text();
        Ok(found)
    }
}

/// Differences from a map, in blocks.
#[derive(Default)]
struct Found {
    /// Size of the image in bytes.
    size: u64,
    different: u64,
    first: Option<u64>,
    /// Number after the last one that differs.
    end: u64,
    unknown: u64,
    unreadable: u64,
    /// The first runs that differ.
    runs: Vec<(u64, u64)>,
    /// What the blocks of these runs are used for, in words.
    used: String,
}

impl Found {
    fn add(&mut self, first: u64, count: u64, kind: Comparison) {
        match kind {
            Comparison::Zeros | Comparison::Equal => {}
            Comparison::Unknown => self.unknown += count,
            Comparison::Unreadable => self.unreadable += count,
            Comparison::Changed | Comparison::Written | Comparison::Zeroed => {
                self.different += count;
                self.first.get_or_insert(first);
                if self.runs.len() < MAX_RUNS {
                    self.runs.push((first, count));
                }
                self.end = first + count;
            }
        }
    }

    /// Returns the differences in words, `None` if there are none.
    fn describe(&self, map: &Map) -> Option<String> {
        let block_size = u64::from(map.header().block_size);
        let mut parts = Vec::new();
        if let Some(first) = self.first {
            let blocks = if self.different == 1 { "block" } else { "blocks" };
            let (first, end) = (first * block_size, (self.end * block_size).min(self.size));
            let (count, size) = (self.different, map.header().block_size);
            let used = match self.used.as_str() {
                "" => String::new(),
                used if self.runs.len() < MAX_RUNS => format!(", {used}"),
                used => format!(", of the first {used}"),
            };
            parts.push(format!("{count} {blocks} of {size:#} between {first} and {end}{used}"));
        }
        let map_size = map.commit().image_size();
        if self.size != map_size {
            parts.push(format!("its size, {} instead of {map_size}", self.size));
        }
        if self.unreadable > 0 {
            parts.push(format!("{} blocks that cannot be read", self.unreadable));
        }
        if self.unknown > 0 {
            parts.push(format!("up to {} blocks that the map does not know", self.unknown));
        }
        (!parts.is_empty()).then(|| parts.join(" and in "))
    }
}

/// Maximum number of runs of blocks whose owners are looked up.
/// Limit in runs of blocks.
const MAX_RUNS: usize = 1 << 16;

fn of_map(name: &OsStr, reason: &str) -> String {
    format!("{}: {reason}", quote::name(name.as_bytes()))
}

/// Returns a name that no command takes for an option.
fn argument(name: &OsStr) -> Vec<u8> {
    let prefix: &[u8] = if name.as_bytes().starts_with(b"-") { b"./" } else { b"" };
    [prefix, name.as_bytes()].concat()
}

const OF_OTHER: &str =
    "is of other content than the checksum: make a new map together with the next checksum";

const UNTRUSTED: &str =
    "is not used: users who may not write the image may write it, or it is another user's";

/// Maximum number of zero blocks of a map next to an image whose checksum is computed. A map may claim more, for which
/// that would take long.
/// Limit in blocks.
const MAX_ZERO_BLOCKS: u64 = 1 << 26;
