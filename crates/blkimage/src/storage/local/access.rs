//! How a file of this host may be used.

use crate::options::Cache;

/// How a host file is used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Access {
    pub cache: Cache,
    /// Read it although somebody may be writing to it.
    pub force_share: bool,
    /// Others read through this very descriptor: its offset and its flags are not ours to change.
    pub shared: bool,
}
