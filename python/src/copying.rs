//! The copy that `blkhash.copy()` makes.

use std::path::PathBuf;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use blkcopy::{Copied, Existing, ExpectedMap, Logging, Reading, Verify, What, Written, Zeros};
use blkhash::Parameters;
use blksum::changes::Changes;
use blksum::{Progress, Tuning};

use crate::copied::Done;
use crate::destination;
use crate::errors::Failure;
use crate::open::{Name, Opened, Request};
use crate::open_map::{self, OpenMap};
use crate::unfinished::Unfinished;

/// The copy to make.
pub struct Job {
    pub source: Request,
    pub destination: Name,
    pub existing: Existing,
    pub only: Option<Only>,
    pub parameters: Parameters,
    pub zeros: Zeros,
    pub updates: bool,
    pub shares: bool,
    pub verify: Verify,
    pub expected: Option<Vec<u8>>,
    /// The map of what the destination should hold.
    pub expected_map: Option<PathBuf>,
    pub log: Option<Log>,
    pub tuning: Tuning,
}

/// What to copy, if it is not all.
pub enum Only {
    Extents(Changes),
    /// The extents that a bitmap with this name marks.
    Bitmap(String),
    /// The blocks that differ from the map in this file.
    Differing(PathBuf),
}

/// The map to write.
pub struct Log {
    pub path: PathBuf,
    pub resumes: bool,
    /// Time between checkpoints.
    pub interval: Duration,
}

/// The passes of a copy: what was copied before is compared with the log, the rest is written, everything is read back, and compared
/// with the map that is expected.
pub struct Passes<'a> {
    checking: &'a Progress,
    writing: &'a Progress,
    reading: &'a Progress,
    comparing: &'a Progress,
}

impl<'a> Passes<'a> {
    pub fn new([checking, writing, reading, comparing]: &'a [Progress; 4]) -> Self {
        Self { checking, writing, reading, comparing }
    }
}

impl Job {
    /// Copies. The caller removes the files that are not kept if that fails.
    pub fn run(&self, files: &Arc<Unfinished>, passes: &Passes<'_>) -> Result<Done, Failure> {
        let opened = self.source.open()?;
        let source = opened.content();
        let only = self.extents(&opened)?;
        let expected = self.expected_map.as_deref().map(open_map::expected).transpose()?;
        let size = source.size();
        if let Some(expected) = &expected {
            expected.check_size(size).map_err(|error| self.not_expected(error))?;
            passes.comparing.set_total(expected.bytes());
        }
        // What is compared with the source is read after all of the destination.
        let (to_write, to_read) = match &only {
            None => (size, size),
            Some(only) => (only.bytes(), size.saturating_add(only.bytes())),
        };
        passes.writing.set_total(to_write);
        if self.verify == Verify::ReadBack {
            passes.reading.set_total(to_read);
        }
        let base = match &self.only {
            Some(Only::Differing(path)) => Some(OpenMap::open(path, None)?),
            _ => None,
        };
        let (destination, found) = self.open_destination(&opened, files)?;
        let is_whole = self.shares && opened.selected.part().is_none();
        let what = match (&base, &only) {
            (Some(base), _) => What::Differing(&base.map),
            (None, Some(only)) => What::Only(only),
            (None, None) => What::All,
        };
        let copy = blkcopy::Job::new(what, slice::from_ref(&self.parameters))
            .share(opened.image().whole_file().filter(|_| is_whole))
            .zeros(self.zeros)
            .update(self.updates)
            .verify(self.verify);
        let copied = match &self.log {
            Some(log) => self.with_log(log, copy, &opened, destination, &found, files, passes)?,
            None => {
                let written = copy.write(source, destination, &self.tuning, passes.writing);
                let written = written.map_err(|error| self.failed(error))?;
                self.read_back(written, &opened, expected.as_ref(), passes)?
            }
        };
        self.check_expected(&copied)?;
        found.check_named().map_err(|refused| self.refused(refused))?;
        let format = opened.image().format().name();
        Ok(Done { copied, format, verify: self.verify })
    }

    fn open_destination(
        &self,
        opened: &Opened,
        files: &Arc<Unfinished>,
    ) -> Result<(Box<dyn blkcopy::Destination>, blkcopy::Found), Failure> {
        let base = match &self.only {
            Some(Only::Differing(path)) => Some(path),
            _ => None,
        };
        let others = [
            (base, "the map of destination_map"),
            (self.expected_map.as_ref(), "the map of expect_map"),
            (self.log.as_ref().map(|log| &log.path), "the file of map"),
        ];
        let others = others.into_iter().filter_map(|(path, name)| Some((&**path?, name)));
        let source = Reading::Name(self.source.name().location());
        destination::open(
            &self.destination,
            self.existing,
            Some((source, opened.image())),
            &others.collect::<Vec<_>>(),
            self.zeros,
            self.source.options(),
            files,
        )
    }

    /// Copies with a map that is the log.
    #[expect(clippy::too_many_arguments, reason = "are the parts of a copy")]
    fn with_log(
        &self,
        log: &Log,
        copy: blkcopy::Job<'_>,
        opened: &Opened,
        destination: Box<dyn blkcopy::Destination>,
        found: &blkcopy::Found,
        files: &Arc<Unfinished>,
        passes: &Passes<'_>,
    ) -> Result<Copied, Failure> {
        let file = open_map::log(&log.path, opened, files)?;
        let (subject, kept) = (opened.subject(), Arc::clone(files));
        let logging = Logging {
            subject: &subject,
            found,
            file: &file,
            resumes: log.resumes,
            interval: log.interval,
            committed: Box::new(move || kept.keep()),
        };
        let expect = |compared, left| {
            passes.checking.set_total(compared);
            passes.writing.set_total(left);
        };
        let logged = copy.logged(logging, &*destination, &self.tuning, passes.checking, expect);
        let logged = logged.map_err(|refused| self.refused(refused))?;
        let copied = logged.write(destination, &self.tuning, passes.writing);
        let copied = copied.map_err(|error| self.failed(error))?;
        // A finished map keeps the new files, so this comes first.
        copied.whole().map_or(Ok(()), |copied| self.check_expected(copied))?;
        let (written, log) = copied.finish(&self.tuning).map_err(|error| self.failed(error))?;
        self.read_back(written, opened, None, passes).inspect_err(|failure| {
            // What was only not compared yet is compared when the copy is resumed.
            if !failure.is_cancelled() {
                log.withdraw();
            }
        })
    }

    /// Reads back what was written, if that is wanted, and compares it with the map that is expected.
    fn read_back(
        &self,
        written: Written,
        opened: &Opened,
        expected: Option<&ExpectedMap>,
        passes: &Passes<'_>,
    ) -> Result<Copied, Failure> {
        if self.verify == Verify::Source {
            return Ok(written.into_copied());
        }
        let (parameters, again) = (slice::from_ref(&self.parameters), Some(opened.content()));
        let read = written.read_back(parameters, again, &self.tuning, passes.reading);
        let (copied, image) = read.map_err(|error| self.failed(error))?;
        if let Some(expected) = expected {
            let checked = expected.check(image, copied.size, &self.tuning, passes.comparing);
            checked.map_err(|error| self.not_expected(error))?;
        }
        Ok(copied)
    }

    /// Returns the extents of the content to copy, or `None` for all.
    fn extents(&self, opened: &Opened) -> Result<Option<Changes>, Failure> {
        let selected = &opened.selected;
        Ok(match &self.only {
            None | Some(Only::Differing(_)) => None,
            // Offsets are in the content.
            Some(Only::Extents(changes)) => Some(changes.in_part(0, selected.size())),
            Some(Only::Bitmap(name)) => {
                let marked = Changes::of_bitmap(opened.image(), name.as_bytes())?;
                Some(marked.in_part(selected.offset(), selected.size()))
            }
        })
    }

    /// Fails unless the checksum is the one that is expected.
    fn check_expected(&self, copied: &Copied) -> Result<(), Failure> {
        match (&self.expected, copied.digests.first()) {
            (Some(expected), Some(digest)) if digest.as_bytes() != expected => {
                let reason = format!("has the checksum {digest}, and not the one of expect");
                let name = self.destination.as_os_str().to_owned();
                Err(Failure::Unexpected("expected", reason, name))
            }
            _ => Ok(()),
        }
    }

    fn failed(&self, error: blkcopy::Error) -> Failure {
        match (error, &self.log) {
            (blkcopy::Error::Log(error), Some(log)) => {
                Failure::Map(error, log.path.as_os_str().to_owned())
            }
            (error, _) => Failure::Copy(error, self.destination.as_os_str().to_owned()),
        }
    }

    fn refused(&self, refused: blkcopy::Refused) -> Failure {
        match &self.log {
            Some(log) if refused.is_of_log() => {
                Failure::Log(refused, log.path.as_os_str().to_owned())
            }
            _ => Failure::Refused(refused, self.destination.as_os_str().to_owned()),
        }
    }

    fn not_expected(&self, error: blkcopy::NotExpected) -> Failure {
        let map = self.expected_map.as_ref().map(|path| path.as_os_str().to_owned());
        let destination = self.destination.as_os_str().to_owned();
        Failure::NotExpected(error, destination, map.unwrap_or_default())
    }
}
