//! `blkhash map seal`: seals maps with a key.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::ops::ControlFlow;

use blkmap::{Error, Key};

use super::args::Seal;
use crate::blkhash::confine_to_open_files;
use crate::map::open;
use crate::map::output::{Output, last_state};
use crate::problem::{Failure, Outcome};

/// Seals the maps on the command line.
pub fn run(args: &Seal) -> Result<Outcome, Failure> {
    let key = open::key(Some(&args.key_file));
    let key = key.map_err(Failure::usage)?;
    let Some(key) = key else { return Ok(Outcome::Clean) };
    let maps: Vec<_> = args.maps.iter().map(|name| (name, Output::open_map(name))).collect();
    confine_to_open_files();
    let mut outcome = Outcome::Clean;
    for (name, map) in maps {
        if let Err(problem) = map.and_then(|file| Ok(seal(file, name, &key)?)) {
            problem.report(name);
            outcome = Outcome::Unknown;
        }
    }
    Ok(outcome)
}

fn seal(mut file: File, name: &OsStr, key: &Key) -> Result<(), Error> {
    let map = last_state(&file, name)?;
    // A seal over damaged pages would make them genuine.
    blkmap::check(&map, &mut |_| ControlFlow::Continue(()))?;
    let length = file.seek(SeekFrom::End(0))?;
    blkmap::seal(&map, &mut file, key).inspect_err(|_| {
        // Half a commit at the end would hide the map.
        let _ = file.set_len(length);
    })
}
