//! `blkhash map verify` with a bmap, which has a checksum for each range of blocks and none for blocks in no range.

use std::ffi::OsString;
use std::fs::File;

use blkindex::Bmap;
use blksum::map::RangePairing;

use super::args::Verify;
use super::compare::{self, Job, of_other_part, partitions};
use super::picture_file::PictureFile;
use super::tail::{self, End};
use crate::blkhash::source::Data;
use crate::image::contents::Contents;
use crate::map::open;
use crate::problem::{Failure, Outcome, Problem, WithName as _};
use crate::progress::Reporter;

/// Returns the file of a bmap that is compared range by range. Parts have pages of blocks, and only maps have a seal, so that
/// these options need the bmap as a map.
pub fn file(args: &Verify) -> Option<File> {
    if args.shard.is_some() || args.range.is_some() || args.key_file.is_some() {
        return None;
    }
    open::bmap(&args.map)
}

/// Compares an image with a bmap.
pub fn verify(args: &Verify, file: &File) -> Result<Outcome, Failure> {
    compare::refuse_salt(&args.source)?;
    let names = [&args.map, &args.image];
    let picture = PictureFile::open(&args.output, &names).map_err(Failure::usage)?;
    let bmap = Bmap::open(file);
    let options = args.source.confine([&args.image])?;
    let bmap = bmap.named(&args.map)?;
    let reporter = Reporter::new(args.source.progress.when(), Some(1));
    reporter.begin(&args.image);
    let mut data = Data::open(&args.image, &options, &args.source).named(&args.image)?;
    if args.ignore_tail {
        data = data.without_tail(bmap.image_size()).named(&args.image)?;
    }
    picture.check_apart(data.image()).map_err(Failure::usage)?;
    let size = bmap.image_size();
    let pairing = RangePairing::new(bmap.algorithm(), bmap.block_size(), size, &data.selected);
    let pairing = pairing.map_err(|error| match error {
        blksum::Error::OtherPart(other) => of_other_part(&other),
        error => Problem::new(error.to_string()),
    });
    let pairing = pairing.named(&args.map)?;
    let mut sides = pairing.sides();
    if args.ignore_zero_tail {
        let ends = [End::Ranges(size), End::Image(&data)];
        sides.ignores_tail = tail::is_zero(ends, &reporter).named(&args.image)?;
    }
    let job = Job {
        print: &args.output,
        names: names.map(OsString::as_os_str),
        picture,
        if_all_differ: None,
        ignores_free: args.ignore_free,
        ignores_unknown: args.ignore_unknown,
        has_ranges: true,
    };
    let contents = Contents::of(vec![data.shared_source()]);
    let total = bmap.mapped_blocks().saturating_mul(bmap.block_size().into()).min(data.size());
    let outcome = job.run(sides, partitions(&data), contents, |report| {
        let ranges = bmap.ranges().map_err(|error| Problem::from(error).about(&args.map))?;
        let compared = data.watched(total, &reporter, |tuning, progress| {
            pairing.compare(ranges, report, tuning, progress)
        });
        compared.map_err(|error| match error {
            blksum::Error::Map(error) => Problem::from(error).about(&args.map),
            error => data.failed(&error).about(&args.image),
        })
    });
    reporter.end(&args.image, None);
    outcome
}
