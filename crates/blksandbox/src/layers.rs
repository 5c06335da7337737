//! Layers in addition to Landlock: the filter of system calls, and capabilities.

use std::io;

use blkconfine::{Families, Filter, capabilities};
use rustix::io::Errno;

use crate::in_force::SystemCalls;

/// Drops everything that reading does not need. Returns what is in force, and the names of the
/// capabilities that are left. `connects_to_others` allows connecting to Unix sockets of other
/// users, and `runs_programs` running programs.
pub(crate) fn enter(
    families: Families,
    runs_programs: bool,
    connects_to_others: bool,
) -> (SystemCalls, io::Result<Vec<&'static str>>) {
    let system_calls =
        match Filter::for_reader(families, runs_programs).map(|filter| filter.enter()) {
            Some(Ok(())) => SystemCalls::Filtered,
            Some(Err(Errno::INVAL | Errno::NOSYS)) => SystemCalls::NotImplemented,
            Some(Err(error)) => SystemCalls::Failed(error.into()),
            None => SystemCalls::UnknownCpu,
        };
    let mut wanted = capabilities::READ;
    // This capability also allows changing attributes, so it is kept only if the filter refuses
    // that.
    if matches!(system_calls, SystemCalls::Filtered) {
        wanted |= capabilities::QUERY_CACHE;
    }
    if connects_to_others {
        wanted |= capabilities::CONNECT;
    }
    let kept = capabilities::keep(wanted);
    let names = kept.map(|kept| capabilities::names(kept).collect()).map_err(io::Error::from);
    (system_calls, names)
}
