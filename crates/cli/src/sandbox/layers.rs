//! The layers beside Landlock: system calls and capabilities.

use blkconfine::{Families, Filter, capabilities};
use rustix::io::Errno;

use crate::messages;

/// Drops what reading does not take, and tells what is in force. `connects_to_others`: to Unix sockets
/// that may belong to other users.
pub fn enter(families: Families, connects_to_others: bool) -> [String; 2] {
    let filter = Filter::for_reader(families).map(|filter| filter.enter());
    let mut wanted = capabilities::READ;
    // It changes attributes, too: only where the calls for that are refused.
    if matches!(filter, Some(Ok(()))) {
        wanted |= capabilities::QUERY_CACHE;
    }
    if connects_to_others {
        wanted |= capabilities::CONNECT;
    }
    let kept = match capabilities::keep(wanted) {
        Ok(kept) if kept.is_empty() => "no capabilities".into(),
        Ok(kept) => {
            let names: Vec<_> = capabilities::names(kept).collect();
            format!("no capabilities but {}", names.join(" and "))
        }
        Err(error) => format!("all capabilities: {}", messages::reason(&error.into())),
    };
    let filtered = match filter {
        Some(Ok(())) => "system calls filtered".into(),
        Some(Err(Errno::INVAL | Errno::NOSYS)) => {
            "system calls not filtered, which this kernel cannot".into()
        }
        Some(Err(error)) => {
            format!("system calls not filtered: {}", messages::reason(&error.into()))
        }
        None => "system calls not filtered on this CPU".into(),
    };
    [filtered, kept]
}
