//! `blkhash owners`: shows which file or structure bytes of an image belong to.

use std::sync::Arc;

use blkfs::{Contents, Span};
use blkimage::Source;
use blkrecord::Flat;
use blksum::{Part, Selected};

use super::args::Owners;
use super::out::Out;
use super::range::Range;
use crate::image;
use crate::image::contents::holder_text;
use crate::json;
use crate::messages;
use crate::problem::{Failure, Outcome, Problem};
use crate::records::common::Owner;
use crate::records::owners;

/// Prints the owners of the ranges on the command line.
pub fn run(args: &Owners) -> Result<Outcome, Failure> {
    let options = args.opening.confine([&args.image])?;
    let selected = image::open::open(&args.image, &options).and_then(|image| {
        let part = args.partition.map(Part::Partition);
        Selected::new(image, part).map_err(|error| Problem::new(error.to_string()))
    });
    let selected = match selected {
        Ok(selected) => selected,
        Err(problem) => return Ok(problem.report(&args.image)),
    };
    let size = selected.size();
    let disk: Arc<dyn Source> = Arc::new(selected.source().clone());
    let contents = Contents::of(&disk);
    if !contents.has_files() {
        let problem = Problem::new(
            "has no file system that is read: ext2 to ext4, XFS, NTFS, FAT, exFAT or btrfs",
        );
        return Ok(problem.report(&args.image));
    }
    let all = [Range { from: 0, to: None }];
    let ranges = if args.ranges.is_empty() { &all[..] } else { &args.ranges };
    if let Some(beyond) = ranges.iter().find(|range| range.from >= size) {
        let reason = format!("has {size} bytes, and no byte {}", beyond.from);
        return Ok(Problem::new(reason).report(&args.image));
    }
    let mut out = Out::buffered();
    let width = size.to_string().len().max("offset".len());
    if !args.json {
        out.write(&format!("{:>width$} {:>width$}  owner\n", "offset", "length"));
    }
    for range in ranges {
        let end = range.to.unwrap_or(size).min(size);
        contents.spans(range.from..end, &mut |span| out.write(&line(args, span, width)));
    }
    out.end()?;
    for (partition, remark) in contents.remarks() {
        let place = partition.map(|number| format!("partition {number}: ")).unwrap_or_default();
        messages::remark(&format!("note: {place}{remark}"));
    }
    // The bytes of the file systems were read, and may have changed since.
    if let Err(error) = disk.check_unchanged() {
        return Ok(Problem::of_image(&error, &args.image).report(&args.image));
    }
    Ok(Outcome::Clean)
}

fn line(args: &Owners, span: &Span, width: usize) -> String {
    let Span { offset, length, partition, file_system, holder, .. } = span;
    if args.json {
        return json::line(&owners::Span {
            r#type: "extent",
            offset: *offset,
            length: *length,
            partition: *partition,
            file_system: *file_system,
            owner: Flat(Owner::new(holder)),
        });
    }
    let place = partition.map(|number| format!("partition {number}: ")).unwrap_or_default();
    let at = holder.offset.filter(|offset| *offset > 0);
    let at = at.map(|offset| format!(" from byte {offset} on")).unwrap_or_default();
    let text = holder_text(holder, file_system.unwrap_or("the disk"));
    format!("{offset:>width$} {length:>width$}  {place}{text}{at}\n")
}
