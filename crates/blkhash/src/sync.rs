//! Locks, threads and clocks, from the standard library. A build with `--cfg shuttle` takes them from shuttle, which
//! runs the models of this crate under many schedules (`make models`).

#[cfg(not(shuttle))]
pub(crate) use std::{
    sync::{Condvar, Mutex, MutexGuard, atomic::AtomicBool},
    thread::{Builder, JoinHandle, yield_now},
    time::Instant,
};

#[cfg(shuttle)]
pub(crate) use self::model::Instant;
#[cfg(shuttle)]
pub(crate) use shuttle::{
    sync::{Condvar, Mutex, MutexGuard, atomic::AtomicBool},
    thread::{Builder, JoinHandle, yield_now},
};

#[cfg(shuttle)]
pub use self::model::check;

#[cfg(shuttle)]
mod model {
    use std::time::Duration;

    use shuttle::rand::{Rng, thread_rng};

    /// A clock by which either no time has passed or any wait is over.
    #[derive(Clone, Copy)]
    pub(crate) struct Instant;

    impl Instant {
        pub(crate) fn now() -> Self {
            Self
        }

        pub(crate) fn elapsed(&self) -> Duration {
            if thread_rng().r#gen() { Duration::MAX } else { Duration::ZERO }
        }
    }

    /// Runs `model` under `count` schedules, of which half are random, and half let a thread run until it blocks,
    /// except for up to 3 preemptions.
    pub fn check(count: usize, model: impl Fn() + Send + Sync + Clone + 'static) {
        use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
        use shuttle::{Config, Runner};

        fn run(scheduler: impl Scheduler + 'static, model: impl Fn() + Send + Sync + 'static) {
            let mut config = Config::new();
            config.stack_size = 1 << 20;
            Runner::new(scheduler, config).run(move || {
                // The scheduler rejects a model that starts no thread, as some do if the first item fails.
                let other = shuttle::thread::spawn(|| ());
                model();
                other.join().unwrap();
            });
        }
        run(RandomScheduler::new(count / 2), model.clone());
        run(PctScheduler::new(3, count / 2), model);
    }
}
