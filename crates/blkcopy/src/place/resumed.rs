//! Whether an interrupted copy may continue.

use blkimage::Slice;
use blkmap::{Commit, Recovered};
use blksum::map::{Info, Sample, Subject, first_unlike, known_bytes};
use blksum::{Progress, Tuning};

use super::refused::{Refused, Unlike};
use super::{Existing, Found};
use crate::destination::Destination;

/// A copy to continue.
pub struct Resumed<'a> {
    log: &'a Recovered,
    then: Info,
    now: &'a Info,
    subject: &'a Subject<'a>,
    /// Number of bytes that were copied before.
    from: u64,
    is_read_back: bool,
}

impl Found {
    /// Checks that a copy may continue where its log ends, and returns this offset. `None` is a log in which nothing
    /// was copied.
    ///
    /// Nothing is trusted: what the destination holds before the offset is compared with the log, and so is the source.
    /// Where times and inodes show that its files are the same as before, a sample of the blocks is read, otherwise all
    /// of them.
    ///
    /// # Errors
    ///
    /// Fails if the destination is not the interrupted copy, if the source is another one, or if one of them or the log cannot be
    /// read. Without a log, fails if something would be lost.
    pub fn check_resumed(
        &self,
        destination: &dyn Destination,
        resumed: Option<&Resumed<'_>>,
        size: u64,
        tuning: &Tuning,
        progress: &Progress,
    ) -> Result<u64, Refused> {
        let from = match resumed {
            None => 0,
            Some(resumed) if !resumed.then.is_same_image(resumed.now) => {
                return Err(Refused::OtherSource(None));
            }
            Some(resumed) => resumed.from,
        };
        let is_resumed = self.existing == Existing::Resume;
        match from {
            0 if is_resumed && self.length > 0 => return Err(Refused::NoCheckpoint),
            0 if is_resumed => self.check_content(destination)?,
            0 => {}
            _ if self.is_new => return Err(Refused::New),
            // A copy gives its file the size of the source before it writes.
            _ if self.is_file && self.length != size => {
                return Err(Refused::OtherLength { length: self.length });
            }
            _ => {}
        }
        if let Some(resumed) = resumed.filter(|_| from > 0) {
            resumed.check_source(tuning, progress)?;
            if resumed.compares_destination() {
                resumed.check_destination(destination, tuning, progress)?;
            }
        }
        Ok(from)
    }
}

impl<'a> Resumed<'a> {
    /// Takes the map of the copy, which has a commit, and the source with its description. `is_read_back` is whether all of the
    /// destination is compared with the map afterwards.
    ///
    /// # Errors
    ///
    /// Fails if the map cannot be read, is damaged, or is of a part of an image.
    pub fn new(
        log: &'a Recovered,
        now: &'a Info,
        subject: &'a Subject<'a>,
        is_read_back: bool,
    ) -> Result<Self, Refused> {
        let then = log.info().map_err(|error| Refused::Log(error.into()))?;
        let then = then.and_then(|text| Info::parse(&text)).unwrap_or_default();
        let from = known_bytes(log).map_err(Refused::Log)?;
        Ok(Self { log, then, now, subject, from, is_read_back })
    }

    /// Returns whether nothing is left to copy.
    pub fn is_finished(&self) -> bool {
        self.log.commit().is_some_and(Commit::is_final)
    }

    /// Returns the number of bytes that [`Found::check_resumed`] compares and that are to be copied.
    pub fn amount(&self) -> u64 {
        let passes = u64::from(!self.now.shows_changes()) + u64::from(self.compares_destination());
        self.from.saturating_mul(passes).saturating_add(self.left())
    }

    /// Returns the number of bytes that are to be copied.
    pub fn left(&self) -> u64 {
        self.subject.source.size() - self.from
    }

    /// Returns whether the destination is compared before anything is written. If nothing is, reading it back is enough.
    fn compares_destination(&self) -> bool {
        !(self.is_finished() && self.is_read_back)
    }

    fn check_source(&self, tuning: &Tuning, progress: &Progress) -> Result<(), Refused> {
        let blocks = self.from.div_ceil(self.log.header().block_size.into());
        let none = Progress::new();
        let (sample, progress) = match self.now.shows_changes() {
            true => (Sample::of_same(blocks), &none),
            false => (Sample::ALL, progress),
        };
        let unlike = first_unlike(self.log, self.subject.source, sample, tuning, progress);
        match unlike.map_err(|error| Refused::of_log(error, Refused::Unreadable))? {
            None => Ok(()),
            Some(at) => Err(Refused::OtherSource(Some(Unlike(at)))),
        }
    }

    fn check_destination(
        &self,
        destination: &dyn Destination,
        tuning: &Tuning,
        progress: &Progress,
    ) -> Result<(), Refused> {
        let content = destination.current().map_err(Refused::Image)?;
        let size = content.virtual_size();
        let Some(content) = Slice::new(&content, 0, self.from) else {
            return Err(Refused::NotCopied(Unlike(size..self.from)));
        };
        let unlike = first_unlike(self.log, &content, Sample::ALL, tuning, progress);
        match unlike.map_err(|error| Refused::of_log(error, Refused::Content))? {
            None => Ok(()),
            Some(at) => Err(Refused::NotCopied(Unlike(at))),
        }
    }
}
