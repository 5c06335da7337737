//! Locks and threads, from the standard library. A build with `--cfg shuttle` takes them from shuttle, which runs the
//! models of this crate under many schedules (`make models`).

#[cfg(not(shuttle))]
pub(crate) use std::{
    sync::{Condvar, Mutex, MutexGuard, atomic::AtomicUsize},
    thread,
};

#[cfg(shuttle)]
pub(crate) mod thread;
#[cfg(shuttle)]
pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard, atomic::AtomicUsize};
