//! `blkhash btrfs info`

use super::{Outcome, args};

/// Nothing yet.
pub fn run(_args: &args::Info) -> std::io::Result<Outcome> {
    Ok(Outcome::Clean)
}
