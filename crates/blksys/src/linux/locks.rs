//! Locks of open file descriptions on single bytes.

use std::fs::File;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

/// Takes a lock for reading on a byte, which others can hold as well. Returns `false` if the file system has no locks.
pub fn lock_byte(file: &File, byte: i64) -> bool {
    fcntl(file, FcntlArg::F_OFD_SETLK(&lock(libc::F_RDLCK, byte))).is_ok()
}

/// Gives up a lock.
pub fn unlock_byte(file: &File, byte: i64) {
    // It ends with the file in any case.
    let _ = fcntl(file, FcntlArg::F_OFD_SETLK(&lock(libc::F_UNLCK, byte)));
}

/// Returns whether another open file holds a lock on a byte. Returns `false` if the file system has no locks.
pub fn is_byte_locked(file: &File, byte: i64) -> bool {
    // The fcntl_getlk of rustix asserts that the holder has a process id. An OFD lock has none.
    let mut lock = lock(libc::F_WRLCK, byte);
    let answer = fcntl(file, FcntlArg::F_OFD_GETLK(&mut lock));
    answer.is_ok() && i32::from(lock.l_type) != libc::F_UNLCK
}

fn lock(kind: libc::c_int, byte: i64) -> libc::flock {
    libc::flock {
        l_type: kind as _,
        l_whence: libc::SEEK_SET as _,
        l_start: byte,
        l_len: 1,
        l_pid: 0,
    }
}
