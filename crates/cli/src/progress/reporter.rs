//! The progress of a run, and the thread that reports it.
//!
//! A run is a sequence of images. [`Reporter::begin`] records that an image is being opened,
//! [`Reporter::watch`] how far the work on it is, [`Reporter::end`] that it is done. The thread reads this a
//! few times a second if progress is shown, and otherwise on a signal. While it writes, it holds no lock that
//! the working threads take.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use blkimage::names;
use blksys::Signals;

use super::line::line;
use super::pace::{Amount, Counts, Pace};
use super::snapshot::{Pass, Snapshot, State, Unit};
use crate::stdio::Stderr;
use crate::{messages, status_line};

/// When to show progress, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// On a terminal, if the work takes longer than a moment.
    #[default]
    Auto,
    /// On a terminal.
    Always,
    Never,
    /// As JSON objects, also if standard error is no terminal.
    Json,
}

names!(When { Auto = "auto", Always = "always", Never = "never", Json = "json" });

/// The progress of a run. Dropping it ends what is shown.
pub struct Reporter {
    shared: Arc<Shared>,
    /// The thread that reports. It costs more than the checksum of a small file, and is started when there is more to do.
    thread: Once,
}

/// Ends the watch over the work on an image.
pub struct Watch<'a>(&'a Reporter);

struct Shared {
    unit: Unit,
    shown: Shown,
    started: Instant,
    run: Mutex<Run>,
    /// Held while something is written, never by the working threads. True after the end of the run.
    is_over: Mutex<bool>,
}

/// The output without a signal.
#[derive(Clone, Copy)]
enum Shown {
    Nothing,
    /// A line on the terminal, after this delay.
    Line(Duration),
    Objects,
}

/// State of a run.
struct Run {
    images: Option<u64>,
    ended: u64,
    /// Time from the start to the end of the last image.
    ended_at: Duration,
    /// The current image, or the last one.
    image: Option<Image>,
    /// Sums over all images that are not watched any more.
    before: Counts,
    pace: Pace,
}

struct Image {
    name: OsString,
    began: Duration,
    state: State,
    amount: Option<Amount>,
    /// The most recent counts.
    counts: Counts,
    pass: Option<Pass>,
    watched: Option<Box<Watched>>,
}

/// Returns the amount of work, which may become known late, how far it is, and which of several passes it is in.
type Watched = dyn Fn() -> (Option<Amount>, Counts, Option<Pass>) + Send;

impl Reporter {
    /// Starts the progress of a run over `images` images, if the number is known. Call it after the
    /// sandbox is in force, because it starts a thread.
    pub fn new(when: When, images: Option<u64>) -> Self {
        Self::start(when, images, Unit::Bytes)
    }

    pub(super) fn start(when: When, images: Option<u64>, unit: Unit) -> Self {
        let shown = match when {
            When::Json => Shown::Objects,
            When::Always if is_terminal() => Shown::Line(Duration::ZERO),
            When::Auto if is_terminal() => Shown::Line(PATIENCE),
            When::Always | When::Auto | When::Never => Shown::Nothing,
        };
        let run = Run {
            images,
            ended: 0,
            ended_at: Duration::ZERO,
            image: None,
            before: Counts::default(),
            pace: Pace::default(),
        };
        let (started, run, is_over) = (Instant::now(), Mutex::new(run), Mutex::new(false));
        let shared = Arc::new(Shared { unit, shown, started, run, is_over });
        let reporter = Self { shared, thread: Once::new() };
        if matches!(shown, Shown::Line(Duration::ZERO) | Shown::Objects) {
            reporter.start_thread();
        }
        reporter
    }

    fn start_thread(&self) {
        self.thread.call_once(|| {
            let signals = Signals::new().ok();
            if signals.is_some() || !matches!(self.shared.shown, Shown::Nothing) {
                let shared = self.shared.clone();
                let thread = thread::Builder::new().name("progress".to_owned());
                // The work continues if the thread cannot be started. Nothing joins it: after the end of the run it
                // writes nothing.
                let _ = thread.spawn(move || shared.report(signals.as_ref()));
            }
        });
    }

    /// Records that the image `name` is being opened.
    pub fn begin(&self, name: &OsStr) {
        let began = self.shared.started.elapsed();
        if !fs::metadata(name).is_ok_and(|file| file.is_file() && file.len() <= SMALL) {
            self.start_thread();
        }
        let mut run = self.shared.run();
        run.image = Some(Image {
            name: name.to_owned(),
            began,
            state: State::Opening,
            amount: None,
            counts: Counts::default(),
            pass: None,
            watched: None,
        });
    }

    /// Records that work on the image has begun. `counts` returns how far it is, until the watch is dropped.
    pub fn watch(
        &self,
        amount: Option<Amount>,
        counts: impl Fn() -> Counts + Send + 'static,
    ) -> Watch<'_> {
        self.look_at(amount, counts);
        Watch(self)
    }

    /// Like [`watch`](Self::watch), for an amount of work that becomes known later.
    pub fn watch_growing(
        &self,
        watched: impl Fn() -> (Option<Amount>, Counts, Option<Pass>) + Send + 'static,
    ) -> Watch<'_> {
        self.look(Box::new(watched));
        Watch(self)
    }

    /// Like [`watch`](Self::watch), until the end of the run.
    pub(super) fn look_at(
        &self,
        amount: Option<Amount>,
        counts: impl Fn() -> Counts + Send + 'static,
    ) {
        self.look(Box::new(move || (amount, counts(), None)));
    }

    fn look(&self, watched: Box<Watched>) {
        let at = self.shared.started.elapsed();
        let mut run = self.shared.run();
        if let Some(image) = &mut run.image {
            image.state = State::Working;
            image.watched = Some(watched);
        }
        run.look(at);
        let is_first = run.ended == 0;
        let amount = run.image.as_ref().and_then(|image| image.amount);
        drop(run);
        if amount.is_none_or(|amount| amount.total > SMALL) {
            self.start_thread();
        }
        if is_first && matches!(self.shared.shown, Shown::Line(Duration::ZERO)) {
            let _writing = self.shared.is_over();
            self.shared.show_line();
        }
    }

    /// Records the end of the work on an image. `beside` is the size of an image that was hashed with others and never
    /// begun.
    pub fn end(&self, name: &OsStr, beside: Option<u64>) {
        let at = self.shared.started.elapsed();
        let mut run = self.shared.run();
        run.ended += 1;
        if run.images != Some(1) {
            self.start_thread();
        }
        run.ended_at = at;
        if let Some(size) = beside {
            let counts = Counts { done: size, data: size, read: size };
            run.before.add(counts);
            run.image = Some(Image {
                name: name.to_owned(),
                began: at,
                state: State::Done,
                amount: Some(Amount { total: size, stored: None }),
                counts,
                pass: None,
                watched: None,
            });
        } else if let Some(image) = &mut run.image {
            image.state = State::Done;
        }
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        let mut is_over = self.shared.is_over();
        *is_over = true;
        match self.shared.shown {
            Shown::Nothing => {}
            Shown::Line(_) => status_line::clear(),
            Shown::Objects => self.shared.write_object(),
        }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let at = self.0.shared.started.elapsed();
        let mut run = self.0.shared.run();
        run.look(at);
        let Some(image) = &mut run.image else { return };
        // What it holds is dropped here, with the image.
        image.watched = None;
        let counts = image.counts;
        run.before.add(counts);
    }
}

impl Shared {
    /// Reports until the end of the run.
    fn report(&self, signals: Option<&Signals>) {
        let (interval, delay) = match self.shown {
            Shown::Nothing => (None, Duration::ZERO),
            Shown::Line(delay) => (Some(LINE_INTERVAL), delay.max(LINE_INTERVAL)),
            Shown::Objects => (Some(OBJECT_INTERVAL), OBJECT_INTERVAL),
        };
        let mut due = self.started + delay;
        loop {
            let timeout = interval.map(|_| due.saturating_duration_since(Instant::now()));
            let is_asked = match (signals, timeout) {
                (Some(signals), timeout) => signals.wait(timeout),
                (None, Some(timeout)) => {
                    thread::sleep(timeout);
                    false
                }
                (None, None) => return,
            };
            let is_over = self.is_over();
            if *is_over {
                return;
            }
            if is_asked {
                self.answer();
            }
            if let Some(interval) = interval
                && Instant::now() >= due
            {
                due = Instant::now() + interval;
                match self.shown {
                    Shown::Nothing => {}
                    Shown::Line(_) => self.show_line(),
                    Shown::Objects => self.write_object(),
                }
            }
        }
    }

    fn answer(&self) {
        match self.with_snapshot(|snapshot| (snapshot.name.to_owned(), snapshot.sentence())) {
            Some((name, text)) => {
                messages::remark_of(name.as_encoded_bytes(), &text);
            }
            None => messages::remark("no image has begun"),
        }
    }

    fn show_line(&self) {
        let columns = status_line::columns();
        if let Some(line) = self.with_snapshot(|snapshot| line(snapshot, columns)) {
            status_line::show(line);
        }
    }

    fn write_object(&self) {
        if let Some(object) = self.with_snapshot(|snapshot| snapshot.object() + "\n") {
            // An error does not matter for the work.
            let _ = Stderr.write_all(object.as_bytes());
        }
    }

    /// Calls `make` with the current state, if an image has begun.
    fn with_snapshot<T>(&self, make: impl FnOnce(&Snapshot<'_>) -> T) -> Option<T> {
        let mut run = self.run();
        // An image that began while this waited for the lock began before now.
        let now = self.started.elapsed();
        run.look(now);
        run.snapshot(self.unit, now).as_ref().map(make)
    }

    fn run(&self) -> MutexGuard<'_, Run> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> MutexGuard<'_, bool> {
        self.is_over.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Run {
    /// Updates the counts.
    fn look(&mut self, now: Duration) {
        let mut all = self.before;
        if let Some(image) = &mut self.image
            && let Some(watched) = &image.watched
        {
            (image.amount, image.counts, image.pass) = watched();
            all.add(image.counts);
        }
        self.pace.sample(now, all);
    }

    fn snapshot(&self, unit: Unit, now: Duration) -> Option<Snapshot<'_>> {
        let image = self.image.as_ref()?;
        let is_done = image.state == State::Done;
        let part = match image.amount {
            _ if is_done => None,
            Some(Amount { total: 0, .. }) => Some(1.0),
            Some(amount) => Some((image.counts.done as f64 / amount.total as f64).min(1.0)),
            None => None,
        };
        let fraction = match self.images {
            Some(1) => part,
            Some(images) => {
                Some(((self.ended as f64 + part.unwrap_or(0.0)) / images as f64).min(1.0))
            }
            // The fraction of short work would only flicker.
            None => part.filter(|_| now.saturating_sub(image.began) >= PATIENCE),
        };
        Some(Snapshot {
            name: &image.name,
            number: self.ended + u64::from(!is_done),
            images: self.images,
            state: image.state,
            unit,
            counts: image.counts,
            pass: image.pass,
            total: image.amount.map(|amount| amount.total),
            fraction,
            rate: self.pace.rate(),
            elapsed: now,
            left: self.left(image, now),
        })
    }

    /// Estimates the time to the end of the run. Later images are assumed to take as long as earlier ones.
    fn left(&self, image: &Image, now: Duration) -> Option<Duration> {
        let own = match (image.state, image.amount) {
            (State::Done, _) => Duration::ZERO,
            (State::Working, Some(amount)) => {
                let data = amount.left(image.counts, now.saturating_sub(image.began))?;
                self.pace.time_for(data)?
            }
            _ => return None,
        };
        let begun = self.ended + u64::from(image.state != State::Done);
        let later = self.images?.saturating_sub(begun);
        if later == 0 {
            return Some(own);
        }
        let average = self.ended_at.as_secs_f64() / Some(self.ended).filter(|it| *it > 0)? as f64;
        Duration::try_from_secs_f64(average * later as f64).ok()?.checked_add(own)
    }
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.done = self.done.saturating_add(other.done);
        self.data = self.data.saturating_add(other.data);
        self.read = self.read.saturating_add(other.read);
    }
}

/// Returns whether standard error is a terminal on which a line can be rewritten.
fn is_terminal() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Time after which users expect to see something.
const PATIENCE: Duration = Duration::from_secs(1);

/// Size in bytes up to which an image is read before its progress is shown.
const SMALL: u64 = 4 << 20;

const LINE_INTERVAL: Duration = Duration::from_millis(100);

const OBJECT_INTERVAL: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_began_after_the_question() {
        let amount = Some(Amount { total: 10, stored: None });
        let image = Image {
            name: "disk".into(),
            began: Duration::from_secs(2),
            state: State::Working,
            amount,
            counts: Counts::default(),
            pass: None,
            watched: None,
        };
        let run = Run {
            images: None,
            ended: 0,
            ended_at: Duration::ZERO,
            image: Some(image),
            before: Counts::default(),
            pace: Pace::default(),
        };
        let snapshot = run.snapshot(Unit::Bytes, Duration::from_secs(1)).unwrap();
        assert_eq!((snapshot.number, snapshot.fraction), (1, None));
    }
}
