//! A server to start.

use std::ffi::CString;
use std::os::fd::OwnedFd;

#[allow(dead_code, reason = "a system that confines no server reads none of it")]
/// A program to run, with its environment and descriptors.
pub(super) struct Command {
    /// Absolute path of the program.
    pub program: CString,
    pub arguments: Vec<CString>,
    /// Variables as `NAME=VALUE`. The child has no others except for socket activation.
    pub environment: Vec<CString>,
    /// Listening socket, passed by systemd's socket activation protocol.
    pub listener: OwnedFd,
    /// Descriptors that the child inherits under the same numbers.
    pub files: Vec<OwnedFd>,
    /// Landlock rules.
    pub rules: Option<OwnedFd>,
    /// Filter of system calls.
    pub filter: Option<super::confined::Filter>,
}
