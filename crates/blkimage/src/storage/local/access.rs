//! Options for using a file of this host.

use crate::options::Cache;

/// Options for using a host file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Access {
    pub cache: Cache,
    /// Whether to read the file although another process may be writing to it.
    pub force_share: bool,
    /// Whether other processes share this open file description, so that its offset and
    /// flags must not change.
    pub shared: bool,
}
