//! `blkhash verity`: makes and verifies Merkle trees of fs-verity and dm-verity.
//!
//! [`args`] is the command line, and each subcommand is a module.

pub mod args;
mod digest;
mod format;
mod verify;

use self::args::Command;
use crate::problem::{Failure, Outcome};

/// Runs a subcommand.
pub fn run(command: &Command) -> Result<Outcome, Failure> {
    match command {
        Command::Digest(args) => digest::run(args),
        Command::Format(args) => format::run(args),
        Command::Verify(args) => verify::run(args),
    }
}
