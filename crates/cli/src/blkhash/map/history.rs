//! `blkhash map history`: what each state of a map changed.

use std::ffi::OsStr;

use blkrecord::Name;
use blksum::map::{Changed, History, State};

use super::args;
use crate::blkhash::confine_to_open_files;
use crate::blkhash::out::Out;
use crate::blkhash::range::Range;
use crate::blkhash::source::shown;
use crate::json;
use crate::map::open;
use crate::problem::{Failure, Outcome, Problem, WithName as _};
use crate::quote;
use crate::records;
use crate::size::Bytes;
use crate::stdio::Stdout;

/// Prints the history of the map on the command line.
pub fn run(args: &args::History) -> Result<Outcome, Failure> {
    let key = open::key(args.key_file.as_deref()).map_err(Failure::usage)?;
    let map = open::open(&args.map);
    confine_to_open_files();
    let checked = map.and_then(|map| match &key {
        Some(key) => map.check_seals(key).map(|()| map),
        None => Ok(map),
    });
    let map = checked.named(&args.map)?;
    // Each state takes a comparison.
    let mut out = Out::new(Box::new(Stdout), 0);
    if !args.json {
        out.write(&(shown(&args.map) + "\n"));
    }
    let range = args.range.unwrap_or(Range { from: 0, to: None });
    for state in History::new(map, range.from..range.to.unwrap_or(u64::MAX)) {
        let state = state.map_err(|error| match error {
            blksum::Error::Map(error) => Problem::from(error),
            error => Problem::new(error.to_string()),
        });
        let state = state.named(&args.map)?;
        let is_unchanged = state.changed.is_some_and(|changed| changed.blocks == 0);
        if args.range.is_some() && is_unchanged {
            continue;
        }
        out.write(&if args.json { object(&args.map, &state) } else { row(&state) });
        if out.has_failed() {
            break;
        }
    }
    out.end()?;
    Ok(Outcome::Clean)
}

fn row(state: &State) -> String {
    let commit = state.map.commit();
    let changed = match state.changed {
        None => format!("the first state, of {} blocks", commit.blocks()),
        Some(Changed { blocks: 0, .. }) => "no block changed".to_owned(),
        Some(Changed { blocks, bytes, extents, .. }) => {
            let ranges = if extents == 1 { "range" } else { "ranges" };
            let (total, bytes) = (commit.blocks(), Bytes(bytes));
            format!("{blocks} of {total} blocks changed, {bytes}, in {extents} {ranges}")
        }
    };
    let created = state.created().unwrap_or_default();
    format!("  {:>4}  {:<20}  {changed}\n", commit.sequence(), quote::printable(&created))
}

fn object(name: &OsStr, state: &State) -> String {
    let (commit, changed) = (state.map.commit(), state.changed);
    json::line(&records::map::State {
        r#type: "state",
        name: Name::new(name),
        sequence: commit.sequence(),
        created: state.created(),
        virtual_size: commit.image_size(),
        blocks: commit.blocks(),
        changed_blocks: changed.map(|it| it.blocks),
        changed_bytes: changed.map(|it| it.bytes),
        ranges: changed.map(|it| it.extents),
    })
}
