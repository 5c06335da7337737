//! The name of the command in messages.

pub const PROGRAM: &str = "blksum";
