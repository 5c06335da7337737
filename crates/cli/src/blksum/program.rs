//! The name of the command in its messages.

pub const PROGRAM: &str = "blksum";
