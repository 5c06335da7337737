//! A system that has no rules for the files of a process. [`Sandbox::IS_SUPPORTED`] says so, and everything is allowed, but for
//! what [`Sandbox::keep_open_files`] does.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use blkimage::{Follow, OpenOptions};

use crate::in_force::{InForce, Landlock, Reading, SystemCalls};

/// Permissions of a process on a system that cannot take any away.
pub struct Sandbox(());

impl Sandbox {
    /// Whether this system can restrict a process.
    pub const IS_SUPPORTED: bool = false;

    /// Creates a sandbox that restricts nothing.
    pub fn new(_: Follow) -> Self {
        Self(())
    }

    /// Creates a sandbox that restricts nothing.
    pub fn for_images(_: &OpenOptions) -> Self {
        Self(())
    }

    /// Allows what is allowed already.
    pub fn allow_name(&mut self, _: &OsStr) {}

    /// Allows what is allowed already.
    pub fn allow_images_beneath(&mut self, _: &Path) {}

    /// Allows what is allowed already.
    pub fn allow_all_images(&mut self) {}

    /// Allows what is allowed already.
    pub fn allow_image(&mut self, _: &Path) {}

    /// Allows what is allowed already.
    pub fn allow_alone(&mut self, _: &Path) {}

    /// Allows what is allowed already.
    pub fn allow_file(&mut self, _: &Path) {}

    /// Allows what is allowed already.
    pub fn allow_listing(&mut self, _: &Path) {}

    /// Allows what is allowed already.
    pub fn allow_standard_input(&mut self) {}

    /// Allows what is allowed already.
    pub fn allow_reading_everything(&mut self) {}

    /// Allows what is allowed already.
    pub fn allow_libraries(&mut self) {}

    /// Allows what is allowed already.
    pub fn allow_programs(&mut self) {}

    /// Allows what is allowed already.
    pub fn allow_program(&mut self, _: &Path) {}

    /// Allows what is allowed already.
    pub fn allow_uri(&mut self, _: &[u8]) {}

    /// Restricts the process to the files that are open, by Capsicum. `None` if the system cannot.
    pub fn keep_open_files() -> Option<io::Result<()>> {
        blksys::enter_capability_mode()
    }

    /// Restricts nothing.
    pub fn enforce(self) -> InForce {
        InForce {
            landlock: Landlock::NotImplemented,
            no_new_privileges: false,
            system_calls: SystemCalls::NotImplemented,
            capabilities: Err(io::ErrorKind::Unsupported.into()),
            reading: Reading::Everything,
            runs_programs: true,
            ports: Vec::new(),
        }
    }
}
