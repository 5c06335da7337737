//! `--expect-map`: the map or bmap whose content the destination should hold.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use blkcopy::{ExpectedMap, NotExpected};

use super::args::Args;
use crate::map::open;
use crate::messages;
use crate::problem::{Outcome, Problem};
use crate::size::Bytes;

/// Opens the map on the command line, if there is one.
pub fn open(args: &Args) -> Result<Option<ExpectedMap>, Problem> {
    let Some(name) = args.expect_map.as_deref() else { return Ok(None) };
    let name = name.as_os_str();
    let map = match open::bmap(name) {
        Some(file) => ExpectedMap::of_bmap(file),
        None => open::open(name).map(ExpectedMap::of_map).map_err(NotExpected::Map),
    };
    map.map(Some).map_err(|error| problem(args, &error))
}

/// Describes why the destination is not what was expected.
pub fn problem(args: &Args, error: &NotExpected) -> Problem {
    let (name, destination) = (name(args), &*args.destination);
    let of_source =
        |reason: String| Problem::new(reason).with_outcome(Outcome::Errors).about(&args.source);
    let shown = messages::shown(name.as_bytes());
    match error {
        NotExpected::Size { size, mapped } => {
            of_source(format!("has {size} bytes, and {shown} is of {mapped}"))
        }
        NotExpected::Differs { bytes, first } => {
            let bytes = Bytes(*bytes);
            of_source(format!("differs from {shown} in {bytes}, the first at {first}"))
                .with_hint("'blkhash map verify' lists what differs")
        }
        NotExpected::Unknown { bytes } => {
            Problem::new(format!("has no digests of {}", Bytes(*bytes))).about(name)
        }
        NotExpected::Map(error) => Problem::from(error).about(name),
        NotExpected::Destination(error) => Problem::of_pass(error, destination).about(destination),
        NotExpected::Unreadable(error) => Problem::of_image(error, destination).about(destination),
        error if error.is_of_map() => Problem::new(error.to_string()).about(name),
        error => Problem::new(error.to_string()).about(destination),
    }
}

fn name(args: &Args) -> &OsStr {
    args.expect_map.as_deref().unwrap_or(Path::new("-")).as_os_str()
}
