//! Files that share storage.

use std::fs::File;
use std::os::fd::AsFd;

use rustix::fs::ioctl_ficlone;

/// Makes `to` a file of the bytes of `from`, whose storage both share until one of them is written to. Returns `false` if the
/// system does not do that for these files. Then `to` may hold a part of the bytes.
pub fn share_storage(from: impl AsFd, to: &File) -> bool {
    ioctl_ficlone(to, from).is_ok()
}
