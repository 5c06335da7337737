//! `blkhash map changes`: prints what changed in an image.

use std::ffi::OsStr;
use std::io::{BufWriter, Write as _};

use super::args::Changes;
use super::tracker::Opened;
use crate::blkhash::out::Out;
use crate::blkhash::source::Data;
use crate::json;
use crate::problem::{Failure, Outcome, Problem, WithName as _};
use crate::records;
use crate::stdio::Stdout;

/// Prints the changes of the image on the command line.
pub fn run(args: &Changes) -> Result<Outcome, Failure> {
    super::compare::refuse_salt(&args.source)?;
    let tracker = Opened::open(&args.tracker)?;
    let names = [&args.image].into_iter().chain(&args.tracker.reflink);
    let options = tracker.options(args.source.confine(names)?);
    let open = |name: &OsStr| Data::open(name, &options, &args.source);
    let found = open(&args.image).and_then(|data| {
        let changes = tracker.changes(&data, None, &open)?;
        data.image().check_digests().map_err(|error| Problem::of_image(&error, &args.image))?;
        Ok((changes, data.size()))
    });
    let (changes, size) = found.named(&args.image)?;
    if !args.json {
        let mut out = BufWriter::new(Stdout);
        changes.print(args.to.unwrap_or_default(), size, &mut out)?;
        out.flush()?;
        return Ok(Outcome::Clean);
    }
    let mut out = Out::buffered();
    for extent in changes.extents() {
        let (offset, length) = (extent.start, extent.end - extent.start);
        out.write(&json::line(&records::map::Extent { r#type: "extent", offset, length }));
    }
    out.end()?;
    Ok(Outcome::Clean)
}
