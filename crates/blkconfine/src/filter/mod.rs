//! A seccomp filter that refuses system calls.
//!
//! It lists what is refused, not what is allowed: a list of what is allowed breaks with the next
//! libc. Calls that are newer than the list do not exist for the process (`ENOSYS`), as on an older
//! kernel, so that no later kernel opens a hole. Calls of other ABIs (32 bits, x32) kill the process
//! or do not exist.
//!
//! The kernel walks the filter once for every call number when it is put in force. A search tree
//! makes that cost 40 microseconds. A list, as the usual libraries write it, costs 300, which is more
//! than everything else that starting takes.

#![allow(unsafe_code)]

mod calls;
mod program;

use nix::libc;
use rustix::io::Errno;

use self::program::Instruction;

/// Families of sockets that may still be created.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Families {
    /// Sockets of this host, `AF_UNIX`.
    pub unix: bool,
    /// TCP and UDP, and asking the kernel for addresses, which looking up names takes.
    pub internet: bool,
    /// Sockets to the hypervisor, `AF_VSOCK`.
    pub hypervisor: bool,
}

/// A filter, ready to be put in force.
#[derive(Debug)]
pub struct Filter(Vec<Instruction>);

impl Filter {
    /// The filter for a process that reads images. None: not written for this CPU.
    #[must_use]
    pub fn for_reader(families: Families) -> Option<Self> {
        Some(Self(program::assemble(calls::AUDIT_ARCH?, &calls::refused(Some(families)))))
    }

    /// A stricter one for a server that is handed its connections: it makes none. None: not written
    /// for this CPU.
    #[must_use]
    pub fn for_server() -> Option<Self> {
        Some(Self(program::assemble(calls::AUDIT_ARCH?, &calls::refused(None))))
    }

    /// Puts the filter in force for the calling thread and all that it starts. `no_new_privs` must be
    /// set.
    ///
    /// # Errors
    ///
    /// `ENOSYS` and `EINVAL`: the kernel was built without filters.
    pub fn enter(&self) -> rustix::io::Result<()> {
        // Without the flag, kernels before 5.16 slow down every load of the process that may pass a
        // store. That protects programs that run foreign code beside their own secrets.
        match self.enter_with(libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW) {
            // Linux before 4.17 does not know the flag.
            Err(Errno::INVAL) => self.enter_with(0),
            result => result,
        }
    }

    fn enter_with(&self, flags: libc::c_ulong) -> rustix::io::Result<()> {
        let program = libc::sock_fprog {
            len: self.0.len() as libc::c_ushort,
            // The kernel only reads it.
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
