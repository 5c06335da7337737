//! A seccomp filter that refuses system calls.
//!
//! The filter lists refused calls, because a list of allowed calls breaks with the next libc. Calls
//! newer than the list fail with `ENOSYS` as on an older kernel, so a later kernel opens no hole.
//! Calls of other ABIs (32 bits, x32) kill the process or fail.
//!
//! When the filter is put in force, the kernel runs it once for every call number. This takes 40
//! microseconds, because the filter is a search tree. The linear lists of common libraries take 300
//! microseconds, which is more than the rest of the start.

#![allow(unsafe_code)]

mod calls;
mod program;

use nix::libc;
use rustix::io::Errno;

use self::program::Instruction;

/// Families of sockets that may be created.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Families {
    /// Sockets of this host, `AF_UNIX`.
    pub unix: bool,
    /// TCP and UDP, and querying the kernel for addresses, which name resolution needs.
    pub internet: bool,
    /// Sockets to the hypervisor, `AF_VSOCK`.
    pub hypervisor: bool,
}

/// A filter that is ready to be put in force.
#[derive(Debug)]
pub struct Filter(Vec<Instruction>);

impl Filter {
    /// Returns the filter for a process that reads images, or `None` if there is none for this CPU.
    /// `runs_programs` allows running programs.
    #[must_use]
    pub fn for_reader(families: Families, runs_programs: bool) -> Option<Self> {
        let rules = calls::refused_to_reader(families, runs_programs);
        Some(Self(program::assemble(calls::AUDIT_ARCH?, &rules)))
    }

    /// Returns a stricter filter for a server that receives its connections and makes none, or
    /// `None` if there is none for this CPU.
    #[must_use]
    pub fn for_server() -> Option<Self> {
        Some(Self(program::assemble(calls::AUDIT_ARCH?, &calls::refused_to_server())))
    }

    /// Puts the filter in force for the calling thread and all threads and programs that it starts.
    /// `no_new_privs` must be set.
    ///
    /// # Errors
    ///
    /// Fails with `ENOSYS` or `EINVAL` if the kernel was built without filters.
    pub fn enter(&self) -> rustix::io::Result<()> {
        // Without the flag, kernels before 5.16 disable speculative store bypass, which slows down
        // loads. That protects programs that run untrusted code next to their own secrets.
        match self.enter_with(libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW) {
            // Linux before 4.17 does not know the flag.
            Err(Errno::INVAL) => self.enter_with(0),
            result => result,
        }
    }

    fn enter_with(&self, flags: libc::c_ulong) -> rustix::io::Result<()> {
        let program = libc::sock_fprog {
            len: self.0.len() as libc::c_ushort,
            // The kernel does not write through this pointer.
            filter: self.0.as_ptr().cast_mut(),
        };
        let operation = libc::SECCOMP_SET_MODE_FILTER;
        // SAFETY: `program` and the instructions that it points to live until the call returns.
        let result =
            unsafe { libc::syscall(libc::SYS_seccomp, operation, flags, &raw const program) };
        match result {
            0 => Ok(()),
            _ => Err(Errno::from_raw_os_error(nix::errno::Errno::last_raw())),
        }
    }
}

#[cfg(test)]
mod tests;
