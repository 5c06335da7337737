//! The kernel's crypto API over a socket (AF_ALG), with one system call to write an input and one
//! to read its digest.

use std::os::fd::{AsRawFd, OwnedFd};

use blkhash::Algorithm;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, AlgAddr, MsgFlags, SockFlag, SockType, accept, bind, recv, send, socket,
};

use super::{Absent, Contestant, Entry};

/// The algorithm, its name in the kernel, and whether the kernel prints the value in little endian.
const ALGORITHMS: [(Algorithm, &str, bool); 6] = [
    (Algorithm::Crc32c, "crc32c", true),
    (Algorithm::Xxh64, "xxhash64", true),
    (Algorithm::Sha256, "sha256", false),
    (Algorithm::Sha512, "sha512", false),
    (Algorithm::Sha3_256, "sha3-256", false),
    (Algorithm::Blake2b256, "blake2b-256", false),
];

pub fn contestants() -> impl Iterator<Item = Entry> {
    ALGORITHMS.into_iter().map(|(algorithm, name, little_endian)| {
        open(name).map_err(|error| Absent {
            name: format!("{algorithm} (kernel, AF_ALG)"),
            reason: format!("this kernel does not offer it: {}", error.desc()),
        })?;
        Ok(Contestant::one(algorithm, "kernel, AF_ALG", move || {
            let operation = open(name).expect("it was there before");
            move |input: &[u8], out: &mut [u8]| {
                let fd = operation.as_raw_fd();
                let more = MsgFlags::from_bits_retain(nix::libc::MSG_MORE);
                let mut rest = input;
                // Every part except the last is marked to be continued.
                while rest.len() > MAX_SEND {
                    let (part, after) = rest.split_at(MAX_SEND);
                    assert_eq!(send(fd, part, more), Ok(MAX_SEND));
                    rest = after;
                }
                assert_eq!(send(fd, rest, MsgFlags::empty()), Ok(rest.len()));
                assert_eq!(recv(fd, out, MsgFlags::empty()), Ok(out.len()));
                if little_endian {
                    out.reverse();
                }
            }
        }))
    })
}

fn open(name: &str) -> Result<OwnedFd, Errno> {
    use std::os::fd::FromRawFd;

    let flags = SockFlag::SOCK_CLOEXEC;
    let algorithm = socket(AddressFamily::Alg, SockType::SeqPacket, flags, None)?;
    bind(algorithm.as_raw_fd(), &AlgAddr::new("hash", name))?;
    let operation = accept(algorithm.as_raw_fd())?;
    // SAFETY: `accept` returned a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(operation) })
}

/// Maximum length of a part. The kernel takes at most 16 pages at a time.
const MAX_SEND: usize = 64 << 10;
