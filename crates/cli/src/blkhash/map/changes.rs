//! `blkhash map changes`: prints what changed in an image.

use super::args::Changes;
use super::tracker::Opened;
use crate::blkhash::out::Out;
use crate::blkhash::source::Data;
use crate::json::{self, record};
use crate::problem::{Failure, Outcome, Problem};

/// Prints the changes of the image on the command line.
pub fn run(args: &Changes) -> Result<Outcome, Failure> {
    super::compare::refuse_salt(&args.source)?;
    let tracker = Opened::open(&args.tracker)?;
    let options = args.source.confine([&args.image])?;
    let changes = Data::open(&args.image, &options, &args.source)
        .map_err(Problem::new)
        .and_then(|data| tracker.changes(&data, None));
    let changes = match changes {
        Ok(changes) => changes,
        Err(problem) => return Ok(problem.report(&args.image)),
    };
    let mut out = Out::buffered();
    for extent in changes.extents() {
        let (offset, length) = (extent.start, extent.end - extent.start);
        out.write(&match args.json {
            true => json::line(&record! { r#type: "extent", offset, length }),
            false => format!("{offset} {length}\n"),
        });
    }
    out.end()?;
    Ok(Outcome::Clean)
}
