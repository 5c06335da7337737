//! The thread on which all connections of the process are.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread;

use tokio::runtime::{Builder, Handle};

/// Returns the handle of the thread, which the first call starts. It lives as long as the process. A child that was forked has none of
/// its parent's threads, and starts its own.
///
/// One thread is enough: it copies bytes that the kernel or TLS hands out, and the threads that read do the rest. Names of hosts are
/// looked up on threads of their own, which end when they are idle.
pub(super) fn handle() -> io::Result<Handle> {
    static HANDLE: Mutex<Option<(u32, Handle)>> = Mutex::new(None);
    let process = std::process::id();
    let mut started = HANDLE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, handle)) = started.as_ref().filter(|(starter, _)| *starter == process) {
        return Ok(handle.clone());
    }
    let runtime =
        Builder::new_current_thread().enable_io().enable_time().thread_name(NAME).build()?;
    let handle = runtime.handle().clone();
    thread::Builder::new()
        .name(NAME.to_owned())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    *started = Some((process, handle.clone()));
    Ok(handle)
}

/// Name of the threads.
const NAME: &str = "blkhttp";
