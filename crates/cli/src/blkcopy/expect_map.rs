//! `--expect-map`: the map or bmap whose content the destination should hold.

use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use blkimage::Image;
use blkindex::Bmap;
use blkmap::{DigestedRange, Map};
use blksum::map::{RangePairing, verify};
use blksum::{Difference, Part, Progress, Relation, Selected, Tuning};

use super::args::Args;
use crate::map::open;
use crate::messages;
use crate::problem::{Outcome, Problem};
use crate::size::Bytes;

/// What the content should be.
pub struct ExpectedMap<'a> {
    name: &'a Path,
    args: &'a Args,
    digests: Digests,
}

enum Digests {
    Blocks(Box<Map>),
    /// A bmap, which may have ranges of several blocks, and the number of bytes in them.
    Ranges(File, u64),
}

impl<'a> ExpectedMap<'a> {
    /// Opens the map on the command line, if there is one. All of a bmap is read.
    pub fn open(args: &'a Args) -> Result<Option<Self>, Problem> {
        let Some(name) = args.expect_map.as_deref() else { return Ok(None) };
        let of_map = |error: blkmap::Error| Problem::from(error).about(name.as_os_str());
        let digests = match open::bmap(name.as_os_str()) {
            Some(file) => {
                let bytes = Bmap::open(&file).and_then(|bmap| bytes_in_ranges(&bmap));
                match bytes.map_err(of_map)? {
                    0 => {
                        let reason = "has no range with a checksum, so nothing would be compared";
                        return Err(Problem::new(reason).about(name.as_os_str()));
                    }
                    bytes => Digests::Ranges(file, bytes),
                }
            }
            None => Digests::Blocks(Box::new(open::open(name.as_os_str()).map_err(of_map)?)),
        };
        Ok(Some(Self { name, args, digests }))
    }

    /// Returns the number of bytes that are compared.
    pub fn bytes(&self) -> u64 {
        match &self.digests {
            Digests::Blocks(map) => map.commit().image_size(),
            Digests::Ranges(_, bytes) => *bytes,
        }
    }

    /// Fails unless the map is of a content of `size` bytes, as the source has.
    pub fn check_size(&self, size: u64) -> Result<(), Problem> {
        let mapped = match &self.digests {
            Digests::Blocks(map) => map.commit().image_size(),
            Digests::Ranges(file, _) => self.bmap(file)?.image_size(),
        };
        let name = self.shown();
        match mapped == size {
            true => Ok(()),
            false => Err(self.of_source(format!("has {size} bytes, and {name} is of {mapped}"))),
        }
    }

    /// Compares the first `size` bytes of the destination, which equals the source. Blocks in no range of a bmap are not
    /// compared.
    pub fn check(
        &self,
        image: Image,
        size: u64,
        tuning: &Tuning,
        progress: &Progress,
    ) -> Result<(), Problem> {
        self.check_size(size)?;
        let part = Part::Range { offset: 0, length: Some(size) };
        let copy = Selected::new(Arc::new(image), Some(part));
        let destination = &*self.args.destination;
        let copy = copy.map_err(|error| Problem::new(error.to_string()).about(destination))?;
        let mut found = Found::default();
        let mut take = |difference| found.push(difference);
        let compared = match &self.digests {
            Digests::Blocks(map) => verify(map, &copy, &mut take, tuning, progress),
            Digests::Ranges(file, _) => {
                let bmap = self.bmap(file)?;
                let pairing = RangePairing::new(bmap.algorithm(), bmap.block_size(), size, &copy);
                let ranges = bmap.ranges().map_err(|error| self.problem(error))?;
                pairing.and_then(|it| it.differences(ranges, &mut take, tuning, progress))
            }
        };
        let unreadable = compared.map_err(|error| match error {
            blksum::Error::Map(error) => self.problem(error),
            error => Problem::of_pass(&error, destination).about(destination),
        })?;
        if let Some(unreadable) = unreadable.first() {
            return Err(Problem::of_image(&unreadable.error, destination).about(destination));
        }
        match (found.first, &self.digests) {
            (Some(offset), _) => {
                let (bytes, name) = (Bytes(found.differing), self.shown());
                let reason = format!("differs from {name} in {bytes}, the first at {offset}");
                Err(self.of_source(reason).with_hint("'blkhash map verify' lists what differs"))
            }
            (None, Digests::Blocks(_)) if found.unknown > 0 => {
                let reason = format!("has no digests of {}", Bytes(found.unknown));
                Err(Problem::new(reason).about(self.name.as_os_str()))
            }
            (None, _) => Ok(()),
        }
    }

    fn bmap<'f>(&self, file: &'f File) -> Result<Bmap<'f>, Problem> {
        Bmap::open(file).map_err(|error| self.problem(error))
    }

    fn problem(&self, error: blkmap::Error) -> Problem {
        Problem::from(error).about(self.name.as_os_str())
    }

    fn of_source(&self, reason: String) -> Problem {
        Problem::new(reason).with_outcome(Outcome::Errors).about(&self.args.source)
    }

    fn shown(&self) -> String {
        messages::shown(self.name.as_os_str().as_bytes())
    }
}

fn bytes_in_ranges(bmap: &Bmap<'_>) -> Result<u64, blkmap::Error> {
    let at = |block: u64| block.saturating_mul(bmap.block_size().into()).min(bmap.image_size());
    bmap.ranges()?.try_fold(0, |sum: u64, range| {
        let DigestedRange { first, count, .. } = range?;
        Ok(sum.saturating_add(at(first.saturating_add(count)) - at(first)))
    })
}

/// Sums of what was found, in bytes.
#[derive(Default)]
struct Found {
    /// Offset of the first difference.
    first: Option<u64>,
    differing: u64,
    unknown: u64,
}

impl Found {
    fn push(&mut self, found: Difference) {
        match found.relation {
            Relation::Unknown => self.unknown += found.length,
            _ => {
                self.first.get_or_insert(found.offset);
                self.differing += found.length;
            }
        }
    }
}
