//! `blkhash map export`: writes a map in another format.

use std::io::{self, Write};
use std::path::Path;

use blkimage::Identity;
use blkmap::Error;

use super::args::Export;
use crate::blkhash::confine_to_open_files;
use crate::blkhash::output::Output;
use crate::blkhash::source::shown;
use crate::map::open;
use crate::messages;
use crate::outputs::mode_of;
use crate::problem::{Failure, Outcome, Problem, WithName as _};
use crate::stdio::Stdout;

/// Exports the map on the command line.
pub fn run(args: &Export) -> Result<Outcome, Failure> {
    let map = open::open(&args.map).named(&args.map)?;
    let mode = mode_of([&*args.map]);
    let output = Output::open("--output", args.output.as_deref(), mode);
    let output = output.map_err(Failure::usage)?;
    // It may be the map itself, under any name.
    if let Some(name) = args.output.as_deref().filter(|name| open::has_magic(name.as_os_str())) {
        let name = shown(name.as_os_str());
        return Err(Failure::usage(format!("--output: {name}: is a block map")));
    }
    // Or the index that is read as a map.
    let of_map = Identity::of(Path::new(&args.map));
    if of_map.is_some() && output.as_ref().is_some_and(|output| output.identity() == of_map) {
        return Err(Failure::usage("--output: is the file to export"));
    }
    confine_to_open_files();
    let mut target = Target { output: output.as_ref(), is_begun: false, is_failed: false };
    let result = blkindex::export(&map, args.to, &mut target).and_then(|()| Ok(target.begin()?));
    let Err(error) = result else {
        output.iter().for_each(Output::keep);
        return Ok(Outcome::Clean);
    };
    match (error, &output) {
        (Error::Io(error), None) if target.is_failed => return Err(Failure::Output(error)),
        (Error::Io(error), Some(output)) if target.is_failed => {
            messages::message(&output.reason(&error));
        }
        (error, _) => {
            Problem::from(&error).report(&args.map);
        }
    }
    // A part of a list looks like a whole one.
    if target.is_begun
        && let Some(output) = &output
        && let Err(reason) = output.empty()
    {
        messages::message(&reason);
    }
    Ok(Outcome::Unknown)
}

/// A file or standard output. Tells errors of writing from errors of the map.
struct Target<'a> {
    /// `None` for standard output.
    output: Option<&'a Output>,
    /// Whether the old content of the file was removed.
    is_begun: bool,
    is_failed: bool,
}

impl Target<'_> {
    /// Removes the old content of the file, which stays if the map cannot be exported.
    fn begin(&mut self) -> io::Result<()> {
        let is_begun = std::mem::replace(&mut self.is_begun, true);
        let Some(output) = self.output.filter(|_| !is_begun) else { return Ok(()) };
        // Devices, pipes and terminals have no length to cut.
        if !matches!(output.identity(), Some(Identity::File(..))) {
            return Ok(());
        }
        let emptied = output.file.set_len(0);
        self.is_failed |= emptied.is_err();
        emptied
    }
}

impl Write for Target<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.begin()?;
        let written = match self.output {
            Some(output) => (&output.file).write(bytes),
            None => Stdout.write(bytes),
        };
        self.is_failed |= written.is_err();
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
