//! Deltas: `--delta-from` and `--apply`.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read};
use std::path::Path;

use blkcopy::{Apply, Error, Sent, send_delta};
use blkhash::Parameters;
use blkimage::{Location, Source};
use blkmap::Map;
use blksum::{Progress, Tuning};

use super::args::{Args, Verification};
use crate::image::input::is_url;
use crate::map::open;
use crate::problem::Problem;
use crate::stdio::{self, Patient, Stdout};

/// Checks that the options are allowed with deltas.
pub fn check(args: &Args, verification: Verification) -> Result<(), &'static str> {
    let is_delta = args.apply || args.delta_from.is_some();
    match () {
        () if args.delta_from.is_some() && args.destination != "-" => {
            Err("--delta-from: the destination is -: a delta is written to standard output")
        }
        () if is_delta && verification == Verification::None => {
            Err("--verify=none: a delta has a checksum")
        }
        () if args.delta_from.is_some() && args.digest.is_some_and(|it| it.digest_size() == 0) => {
            Err("--digest: a delta has a checksum")
        }
        () if args.apply && args.opening.of_content().is_some() => {
            Err("--apply: the source is a delta, for which there are no options of images")
        }
        () => Ok(()),
    }
}

/// Opens the map of what the receiver has.
pub fn base(name: &Path) -> Result<Map, Problem> {
    open::open(name.as_os_str()).map_err(|error| Problem::from(error).about(name.as_os_str()))
}

/// Opens a delta: a file or a pipe.
pub fn open(args: &Args) -> Result<Box<dyn Read>, Problem> {
    let file = match Location::new(&args.source) {
        _ if args.source == "-" => stdio::stdin().map(Patient),
        // The sandbox denies folders.
        Location::Path(path) if path.is_dir() => return Err("Is a directory".into()),
        Location::Path(path) => File::open(path).map(Patient),
        _ => {
            let problem = Problem::new("is a URI, and a delta is a file or a pipe");
            return Err(match is_url(&args.source) {
                true => problem.with_hint("curl -L URL | blkcopy --apply - DESTINATION applies it"),
                false => problem,
            });
        }
    };
    let file = file.map_err(|error| Problem::from(&error))?;
    Ok(Box::new(BufReader::with_capacity(BUFFER, file)))
}

/// Writes the delta of a source to standard output.
pub fn send(
    base: &Map,
    source: &dyn Source,
    parameters: &Parameters,
    expected: Option<&[u8]>,
    tuning: &Tuning,
    progress: &Progress,
) -> Result<Sent, Error> {
    let mut output = BufWriter::with_capacity(BUFFER, Stdout);
    let sent = send_delta(base, source, &mut output, parameters, expected, tuning, progress)?;
    let written = stdio::sync_stdout();
    written
        .map_err(|source: io::Error| Error::Destination { what: "cannot be written", source })?;
    Ok(sent)
}

/// Returns how a delta is applied.
pub fn apply(args: &Args, verification: Verification) -> Apply {
    let zeros = args.zeros.unwrap_or_default();
    Apply::new().zeros(zeros).verify(verification.of_copy()).force(args.force)
}

/// Number of bytes that are read and written at a time.
const BUFFER: usize = 256 << 10;
