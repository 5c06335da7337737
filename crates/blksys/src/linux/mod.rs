//! Linux.

mod clone;
mod cores;
mod device;
mod event;
mod file_system;
mod locks;
mod open;
mod page_cache;
mod process;
mod signals;
mod stamps;
mod uses;
mod volume;
mod writes;
mod zeros;

pub use self::clone::share_storage;
pub use self::cores::{allowed_cores, pin_to_core};
pub use self::device::block_size;
pub use self::event::Event;
pub use self::file_system::file_system;
pub use self::locks::{is_byte_locked, lock_byte, unlock_byte};
pub use self::open::{
    Found, find, find_beneath, open_folder, open_folder_beneath, path_of, reopen, reopen_direct,
};
pub use self::page_cache::{
    advise_sequential, cached_pages, drop_cached, has_no_writer, is_clean, write_out,
};
pub use self::process::{
    NAME, enter_capability_mode, memory_file, open_descriptors, widen_pipe, wipe_on_fork,
};
pub use self::signals::Signals;
pub use self::stamps::{stamp, stamp_clock};
pub use self::uses::{uses_of, writer_of_file};
pub use self::volume::{volume_extents, volume_of};
pub use self::writes::Writes;
pub use self::zeros::{punch_hole, write_zeros};
pub use crate::direct::{clear_direct, is_direct, set_direct};
pub use crate::posix::{device_size, stamp_of};

/// The names under which libnbd may be installed.
pub const LIBNBD: &[&str] = &["libnbd.so.0"];

/// Whether the system tells which devices share bytes with others: partitions, loop devices, and devices on top of others.
pub const TELLS_RELATED_DEVICES: bool = true;
