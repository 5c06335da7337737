//! A server that runs confined: it is connected before it starts ([`sockets`]), may read nothing but its files and the system's
//! programs ([`rules`]), and is killed when this process ends ([`process`]).

mod process;
mod rules;
mod sockets;

pub(super) use blkconfine::Filter;

pub(super) use self::process::{Process, memory, out_of_the_way, seal};
pub(super) use self::rules::rules;
pub(super) use self::sockets::connected;

/// Fails if this system cannot confine a server.
pub(super) fn check() -> Result<(), String> {
    Ok(())
}
