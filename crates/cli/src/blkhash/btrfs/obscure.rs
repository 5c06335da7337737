//! `blkhash btrfs obscure-name`: finds other names with the same CRC-32C.

use std::io::{self, Write};

use super::args;
use crate::problem::{Outcome, Problem};
use crate::stdio::Stdout;

/// Prints a replacement for each name.
pub fn run(args: &args::ObscureName) -> io::Result<Outcome> {
    let mut outcome = Outcome::Clean;
    let mut text = Vec::new();
    for name in &args.names {
        match blkbtrfs::obscure_name(name.as_encoded_bytes()) {
            Ok(other) => {
                text.extend_from_slice(&other);
                text.push(b'\n');
            }
            Err(error) => {
                Problem::new(error.to_string()).report(name);
                outcome = Outcome::Errors;
            }
        }
    }
    Stdout.write_all(&text)?;
    Ok(outcome)
}
