//! A system on which no server can be confined, and so none is started.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use super::command::Command;

/// Fails, as this system cannot confine a server.
pub(super) fn check() -> Result<(), String> {
    let system = crate::sys::NAME;
    Err(format!("is read by a confined qemu-nbd, and {system} has nothing to confine it"))
}

/// There is no filter.
pub(super) enum Filter {}

impl Filter {
    pub fn for_server() -> Option<Self> {
        None
    }
}

/// There is no server.
pub(super) enum Process {}

impl Process {
    pub fn start(_: Command) -> io::Result<Self> {
        unsupported()
    }

    pub fn ended(&self, _: Duration) -> Option<ExitStatus> {
        match *self {}
    }

    pub fn words(&self) -> Vec<u8> {
        match *self {}
    }
}

pub(super) struct Sockets {
    pub listener: OwnedFd,
    pub clients: Vec<OwnedFd>,
}

pub(super) fn connected(_: usize) -> io::Result<Sockets> {
    unsupported()
}

pub(super) fn rules<F: AsFd>(_: &Path, _: impl Iterator<Item = F>) -> io::Result<Option<OwnedFd>> {
    unsupported()
}

pub(super) fn memory(_: &str, _: usize) -> io::Result<File> {
    unsupported()
}

pub(super) fn seal(_: &File) -> io::Result<()> {
    unsupported()
}

pub(super) fn out_of_the_way(_: impl AsFd) -> io::Result<OwnedFd> {
    unsupported()
}

fn unsupported<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}
