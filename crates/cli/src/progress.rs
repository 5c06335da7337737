//! Progress on the terminal.
//!
//! Nothing is set up before it is shown, and no thread starts for work that will not take long:
//! most images are done before a bar could be read.

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, IsTerminal};
use std::os::unix::ffi::OsStrExt;
use std::str::FromStr;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{
    BinaryBytes, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle,
};

use crate::quote;

/// When to show progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// Where it takes long.
    #[default]
    Auto,
    Always,
    Never,
}

impl FromStr for When {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "auto" => Ok(Self::Auto),
            "always" => Ok(Self::Always),
            "never" => Ok(Self::Never),
            _ => Err("use auto, always or never"),
        }
    }
}

/// Their names.
pub fn when_names() -> Vec<&'static str> {
    vec!["auto", "always", "never"]
}

/// Whether, and after how long, progress is shown.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    delay: Option<Duration>,
    size: Option<u64>,
}

impl Watch {
    /// For work on `size` bytes, if that is known. Nothing is ever shown where standard error is
    /// not a terminal.
    pub fn new(when: When, size: Option<u64>) -> Self {
        let delay = match when {
            When::Never => None,
            When::Always => Some(Duration::ZERO),
            When::Auto if size.is_some_and(|size| size < LONG) => None,
            When::Auto => Some(PATIENCE),
        };
        Self { delay: delay.filter(|_| io::stderr().is_terminal()), size }
    }

    /// Whether anything may be shown.
    pub fn is_shown(self) -> bool {
        self.delay.is_some()
    }

    /// Does `work`, and shows until it is done how many bytes `progress` says are done.
    pub fn during<T>(
        self,
        name: &OsStr,
        progress: impl Fn() -> u64 + Send,
        work: impl FnOnce() -> T,
    ) -> T {
        let Some(delay) = self.delay else { return work() };
        let (done, is_done) = mpsc::channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                if !is_over(&is_done, delay) {
                    show(self, name, &progress, &is_done);
                }
            });
            let result = work();
            drop(done);
            result
        })
    }
}

fn show(watch: Watch, name: &OsStr, progress: &impl Fn() -> u64, is_done: &Receiver<()>) {
    let template = if watch.size.is_some() { SIZED } else { STREAM };
    let started = Instant::now() - watch.delay.unwrap_or_default();
    let style = ProgressStyle::with_template(template)
        .expect("the template is correct")
        .progress_chars("=> ")
        .with_key("pace", move |state: &ProgressState, out: &mut dyn fmt::Write| {
            // An error would be one of formatting, and only the bar would suffer.
            let _ = out.write_str(&pace(state.pos(), watch.size, started.elapsed()));
        });
    let bar = ProgressBar::with_draw_target(watch.size, ProgressDrawTarget::stderr())
        .with_style(style)
        .with_message(shortened(&quote::name(name.as_bytes())));
    loop {
        bar.set_position(progress());
        if is_over(is_done, INTERVAL) {
            return bar.finish_and_clear();
        }
    }
}

/// How fast it has been since the start, and how long it will take at that.
fn pace(done: u64, size: Option<u64>, elapsed: Duration) -> String {
    let rate = done as f64 / elapsed.as_secs_f64().max(0.001);
    let speed = format!("{}/s", BinaryBytes(rate as u64));
    match size {
        Some(size) if rate >= 1.0 => {
            let left = Duration::from_secs((size.saturating_sub(done) as f64 / rate) as u64);
            format!("{speed}, {:#} left", HumanDuration(left))
        }
        _ => speed,
    }
}

/// Waits; true as soon as the work is done.
fn is_over(is_done: &Receiver<()>, timeout: Duration) -> bool {
    is_done.recv_timeout(timeout) != Err(RecvTimeoutError::Timeout)
}

fn shortened(name: &str) -> String {
    let length = name.chars().count();
    if length <= MAX_NAME {
        return name.to_owned();
    }
    format!("...{}", name.chars().skip(length - MAX_NAME + 3).collect::<String>())
}

const SIZED: &str =
    "{msg} {percent:>3}% [{wide_bar}] {binary_bytes} of {binary_total_bytes}, {pace}";
const STREAM: &str = "{msg} {binary_bytes}, {pace}";

/// A name longer than that leaves no room for the bar.
const MAX_NAME: usize = 30;

/// How long people wait before they wonder.
const PATIENCE: Duration = Duration::from_secs(1);

const INTERVAL: Duration = Duration::from_millis(100);

/// Bytes that take less than [`PATIENCE`] on any machine that is not starved.
const LONG: u64 = 64 << 20;
