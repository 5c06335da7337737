//! Connections to a server that has not started yet.
//!
//! The listening socket has a name in the abstract namespace that the kernel chose, so no file or
//! folder remains. The connections of this process fill its queue before the server starts. Then
//! it is shut down, and no other process can connect.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType, bind, connect, getsockname,
    listen, shutdown, socket_with,
};

/// A listening socket with its clients.
pub(in crate::formats::served) struct Sockets {
    /// Socket for the server, with all connections in its queue. It accepts no further ones.
    pub listener: OwnedFd,
    /// Other ends of those connections.
    pub clients: Vec<OwnedFd>,
}

/// Connects `count` clients, at least one.
pub(in crate::formats::served) fn connected(count: usize) -> io::Result<Sockets> {
    for _ in 0..MAX_TRIES {
        if let Some(sockets) = try_connect(count)? {
            return Ok(sockets);
        }
    }
    Err(io::Error::other("another process connects to sockets that are none of its business"))
}

/// Returns `None` if the queue holds a connection of another process.
fn try_connect(count: usize) -> io::Result<Option<Sockets>> {
    let listener = socket(SocketFlags::CLOEXEC)?;
    bind(&listener, &SocketAddrUnix::new_unnamed())?;
    let address = SocketAddrUnix::try_from(getsockname(&listener)?)?;
    // The kernel queues one connection more than the backlog.
    listen(&listener, i32::try_from(count - 1).unwrap_or(i32::MAX))?;
    let mut clients = Vec::with_capacity(count);
    loop {
        let client = socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
        match connect(&client, &address) {
            Ok(()) => clients.push(client),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => break,
            Err(error) => return Err(error.into()),
        }
        if clients.len() > count {
            return Err(io::Error::other("the queue of a socket has no end"));
        }
    }
    // The queue is full. The server sees only the connections in it.
    if clients.len() < count {
        return Ok(None);
    }
    shutdown(&listener, Shutdown::Both)?;
    for client in &clients {
        rustix::io::ioctl_fionbio(client, false)?;
    }
    Ok(Some(Sockets { listener, clients }))
}

fn socket(flags: SocketFlags) -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

/// Maximum number of attempts to connect to the child. A process that wins the race for an unpredictable name this
/// often will always win it.
/// Limit in attempts.
const MAX_TRIES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn clients_are_connected_and_nobody_else_is() {
        for count in [1, 2, 5] {
            let Sockets { listener, clients } = connected(count).unwrap();
            assert_eq!(clients.len(), count);
            let address = SocketAddrUnix::try_from(getsockname(&listener).unwrap()).unwrap();
            let stranger = socket(SocketFlags::NONBLOCK).unwrap();
            assert_eq!(connect(&stranger, &address), Err(Errno::CONNREFUSED));

            let listener = UnixListener::from(listener);
            for (number, client) in clients.into_iter().enumerate() {
                let (mut server, _) = listener.accept().unwrap();
                server.write_all(&[number as u8]).unwrap();
                let mut byte = [0];
                UnixStream::from(client).read_exact(&mut byte).unwrap();
                assert_eq!(byte, [number as u8]);
            }
            assert!(listener.accept().is_err());
        }
    }
}
