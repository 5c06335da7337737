//! `blkhash map`: makes maps of the blocks of images, and compares images and maps.
//!
//! [`args`] is the command line, [`report`] prints differences, and each subcommand is a module.

pub mod args;
mod audit;
mod bitmaps;
mod changes;
mod check;
mod checksum;
mod compare;
mod create;
mod dups;
mod export;
mod history;
mod import;
mod merge;
mod part;
mod picture;
mod picture_file;
mod ranges;
mod relations;
mod report;
mod seal;
mod show;
mod svg;
mod tail;
mod tracker;
mod update;
mod watched;

use self::args::Command;
use crate::problem::{Failure, Outcome};

/// Runs a subcommand.
pub fn run(command: &Command) -> Result<Outcome, Failure> {
    match command {
        Command::Create(args) => create::run(args),
        Command::Show(args) => show::run(args),
        Command::History(args) => history::run(args),
        Command::Check(args) => check::run(args),
        Command::Checksum(args) => checksum::run(args),
        Command::Verify(args) => match ranges::file(args) {
            Some(bmap) => ranges::verify(args, &bmap),
            None => compare::verify(args),
        },
        Command::Diff(args) => compare::diff(args),
        Command::Update(args) => update::run(args),
        Command::Audit(args) => audit::run(args),
        Command::Changes(args) => changes::run(args),
        Command::Bitmaps(args) => bitmaps::run(args),
        Command::Merge(args) => merge::run(args),
        Command::Seal(args) => seal::run(args),
        Command::Dups(args) => dups::run(args),
        Command::Export(args) => export::run(args),
        Command::Import(args) => import::run(args),
    }
}
