//! Verifies layers, each kind in a file of its own.

pub(crate) mod btrfs;
mod erofs;
mod file_system;
pub(crate) mod gpt;
pub(crate) mod luks;
pub(crate) mod lvm;
pub(crate) mod named;
pub(crate) mod other;
pub(crate) mod verity;
