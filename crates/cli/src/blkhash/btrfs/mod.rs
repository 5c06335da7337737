//! `blkhash btrfs`: verifies the checksums of file systems, and explains them.
//!
//! [`args`] is the command line, [`open`] finds file systems in images, and each subcommand is a
//! module.

mod algorithms;
pub mod args;
mod info;
mod mounted;
mod obscure;
mod open;
mod output;
mod verify;

use self::args::Command;
use crate::problem::{Failure, Outcome};

/// Runs a subcommand.
pub fn run(command: &Command) -> Result<Outcome, Failure> {
    match command {
        Command::Verify(args) => verify::run(args),
        Command::Info(args) => info::run(args),
        Command::Algorithms(args) => algorithms::run(args),
        Command::ObscureName(args) => obscure::run(args).map_err(Failure::Output),
    }
}
