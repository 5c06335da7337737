//! `blkhash btrfs algorithms`

use super::{Outcome, args};

/// Nothing yet.
pub fn run(_args: &args::Algorithms) -> std::io::Result<Outcome> {
    Ok(Outcome::Clean)
}
