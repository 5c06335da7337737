//! What the operating system offers to a program that reads disk images: opening without side effects, time stamps, holes,
//! locks, the page cache, reads past it, devices and what uses them.
//!
//! The functions are the same everywhere, and only this crate, blkconfine and blksandbox know which system there is. `linux/`
//! is what Linux has. `portable/` is what POSIX has; `darwin.rs` (macOS) and `freebsd.rs` add to it. Where a system cannot tell,
//! the answer is the careful one: a page is not cached, a lock is not held. [docs/use/platforms.md] lists what is weaker for it.
//!
//! With `--cfg blkhash_portable`, Linux is used like a system of which nothing but POSIX is known. The tests run on it in this way.
//!
//! # Stability
//!
//! The interface is not stable, not even after 1.0: it serves the other crates of this project.
//!
//! [docs/use/platforms.md]: https://github.com/blkhash/blkhash/blob/main/docs/use/platforms.md

#![deny(clippy::missing_errors_doc)]

#[macro_use]
mod before_main;
#[cfg(all(any(target_os = "linux", target_os = "freebsd"), not(blkhash_portable)))]
mod direct;
mod file_systems;
mod mounts;
mod posix;
mod processors;
mod signal;
mod stamps;
mod time;
mod uses;
mod volume;

#[cfg(all(target_os = "linux", not(blkhash_portable)))]
#[path = "linux/mod.rs"]
mod system;

#[cfg(all(target_os = "macos", not(blkhash_portable)))]
#[path = "darwin.rs"]
mod system;

#[cfg(all(target_os = "freebsd", not(blkhash_portable)))]
#[path = "freebsd.rs"]
mod system;

#[cfg(any(
    not(any(target_os = "linux", target_os = "macos", target_os = "freebsd")),
    blkhash_portable
))]
use self::portable as system;

#[cfg(any(not(target_os = "linux"), blkhash_portable))]
#[cfg_attr(
    not(blkhash_portable),
    allow(dead_code, unused_imports, reason = "a system has its own of some functions")
)]
mod portable;

#[cfg(all(any(target_os = "macos", target_os = "freebsd"), not(blkhash_portable)))]
mod bsd;

pub use self::file_systems::FileSystem;
pub use self::mounts::{Mount, mount_of, mounts, unescaped};
pub use self::posix::{
    AMONG_DEVICES, is_among_devices, is_executable, is_of_bytes, poll, seek_data, seek_hole,
    stored, wait_for_writes,
};
pub use self::processors::processors;
pub use self::signal::is_ignored;
pub use self::stamps::{NodeType, Stamp};
pub use self::system::{
    Event, Found, LIBNBD, NAME, Signals, TELLS_RELATED_DEVICES, Writes, advise_sequential,
    allowed_cores, block_size, cached_pages, clear_direct, device_size, drop_cached,
    enter_capability_mode, file_system, find, find_beneath, has_no_writer, is_byte_locked,
    is_clean, is_direct, lock_byte, memory_file, open_descriptors, open_folder,
    open_folder_beneath, path_of, pin_to_core, punch_hole, reopen, reopen_direct, set_direct,
    share_storage, stamp, stamp_clock, stamp_of, unlock_byte, uses_of, volume_extents, volume_of,
    widen_pipe, wipe_on_fork, write_out, write_zeros, writer_of_file,
};
pub use self::time::{now, utc};
pub use self::uses::Uses;
pub use self::volume::{Reply, Volume, VolumeExtent};
