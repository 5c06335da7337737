//! `blkhash map check`: checks every byte of maps.

use std::io::Write;
use std::ops::ControlFlow;

use blkmap::{Error, PAGE};

use super::args::Check;
use super::watched::watched;
use crate::blkhash::confine_to_open_files;
use crate::blkhash::source::shown;
use crate::map::open;
use crate::problem::{Failure, Outcome, Problem};
use crate::progress::Reporter;
use crate::stdio::Stdout;

/// Checks the maps on the command line.
pub fn run(args: &Check) -> Result<Outcome, Failure> {
    let key = open::key(args.key_file.as_deref());
    let key = key.map_err(Failure::usage)?;
    let maps: Vec<_> = args.maps.iter().map(|name| (name, open::open_own(name))).collect();
    confine_to_open_files();
    let mut outcome = Outcome::Clean;
    let count = Some(maps.len() as u64);
    let reporter = Reporter::new(args.progress.when(), count);
    for (name, map) in maps {
        reporter.begin(name);
        let checked = map.and_then(|map| {
            if let Some(key) = &key {
                map.check_seals(key)?;
            }
            // Every commit is checked with all of its pages.
            let pages =
                map.log().map(|commit| commit.map_or(0, |(_, commit)| commit.stored_pages()));
            let total = pages.fold(0, u64::saturating_add).saturating_mul(PAGE as u64);
            let checked = watched(&reporter, total, |watch| {
                blkmap::check(&map, &mut |bytes| {
                    watch(bytes);
                    ControlFlow::Continue(())
                })
            });
            checked.map(|()| map)
        });
        reporter.end(name, None);
        let found = match checked {
            Ok(map) => {
                let is_sealed = map.commit().seal().is_some();
                let seal = match (is_sealed, &key) {
                    (false, _) => "",
                    (true, None) => " (sealed, not checked)",
                    (true, Some(_)) => " (seal OK)",
                };
                if !args.quiet {
                    Stdout.write_all(format!("{}: OK{seal}\n", shown(name)).as_bytes())?;
                }
                Outcome::Clean
            }
            Err(error) => {
                Problem::from(&error).report(name);
                match error {
                    Error::Damaged { .. } | Error::Seal(_) | Error::Unfinished => Outcome::Errors,
                    _ => Outcome::Unknown,
                }
            }
        };
        outcome = outcome.and(found);
    }
    Ok(outcome)
}
