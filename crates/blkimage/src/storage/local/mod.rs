//! Files and block devices of this host: reading them and detecting changes.

pub(crate) mod access;
mod device;
mod direct;
pub(crate) mod file;
mod holes;
pub(crate) mod mapped;
mod page_cache;
mod page_cache_bypass;
mod stamps;
mod volume;
