//! Actions of signals.

#![allow(unsafe_code)]

use nix::libc;
use nix::sys::signal::Signal;

/// Returns whether this process ignores a signal, for example because it was started with `nohup`.
pub fn is_ignored(signal: Signal) -> bool {
    // SAFETY: a `sigaction` of zeros has no flags and the default action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: `action` lives until the call returns, and nothing is changed.
    let result = unsafe { libc::sigaction(signal as i32, std::ptr::null(), &raw mut action) };
    result == 0 && action.sa_sigaction == libc::SIG_IGN
}
