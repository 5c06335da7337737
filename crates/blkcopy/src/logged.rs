//! Copies with a map that is their log: an interrupted copy continues after its last checkpoint.
//!
//! [`Job::logged`] compares a map that is there with the source and the destination, and writes nothing but the header of a new
//! one. [`Logged::write`] copies what is left, and [`LoggedCopy::finish`] ends the map, which is not finished if its copy turns out
//! to hold something else: [`FinishedLog::withdraw`].

use std::fs::File;
use std::io::{self, Seek};
use std::time::Duration;

use blkhash::{Parameters, Salt};
use blkimage::Identity;
use blkmap::{Commit, Header, Map, Recovered, Writer};
use blksum::map::{Info, Made, Subject};
use blksum::{Progress, Tuning};

use crate::copy::{Job, Verify, What, Written};
use crate::destination::Destination;
use crate::log::Log;
use crate::place::{Found, Refused, Resumed};
use crate::{Copied, Error, Zeros};

/// The log of a copy, and what it is compared with.
pub struct Logging<'a> {
    /// The source, all of which is copied.
    pub subject: &'a Subject<'a>,
    /// What the destination was.
    pub found: &'a Found,
    /// The file of the map, which is open for reading and writing, and locked.
    pub file: &'a File,
    /// Whether a copy that was interrupted continues. Otherwise a map with a checkpoint is refused.
    pub resumes: bool,
    /// Time between checkpoints.
    pub interval: Duration,
    /// Is called once, as soon as there is a checkpoint: the destination and the map are of use from then on.
    pub committed: Box<dyn FnOnce() + Send>,
}

/// A copy with a log, of which nothing is written yet.
pub struct Logged<'a> {
    parameters: &'a [Parameters],
    own: Parameters,
    zeros: Zeros,
    updates: bool,
    verify: Verify,
    subject: &'a Subject<'a>,
    file: &'a File,
    info: String,
    left: Left,
}

/// What is left of a copy.
enum Left {
    /// The bytes from an offset on.
    From(u64, Box<Writer<Log<File>>>),
    /// Only reading back: everything was copied before an interruption.
    ReadBack,
}

impl<'a> Job<'a> {
    /// Begins a copy with a log, or continues it. The map has the blocks of the first checksum. `expect` is told how many bytes are
    /// compared now, which `progress` counts, and how many are left to be copied.
    ///
    /// The job must be of all of the source, and without [`blocks`](Self::blocks).
    ///
    /// # Errors
    ///
    /// Fails if the file holds something else than the log of this copy, or a log that is not to be continued, and like
    /// [`Found::check_resumed`].
    ///
    /// # Panics
    ///
    /// Panics if the job has no checksum.
    pub fn logged<'l>(
        self,
        log: Logging<'l>,
        destination: &dyn Destination,
        tuning: &Tuning,
        progress: &Progress,
        expect: impl FnOnce(u64, u64),
    ) -> Result<Logged<'l>, Refused>
    where
        'a: 'l,
    {
        let Self { parameters, zeros, updates, verify, .. } = self;
        let own = *parameters.first().expect("a map has a digest");
        let Logging { subject, found, file, resumes, interval, committed } = log;
        let of_file = |error: io::Error| of_map(error.into());
        let metadata = file.metadata().map_err(of_file)?;
        if Identity::new(&metadata).is_in(subject.image) {
            return Err(Refused::LogOfSource);
        }
        let size = subject.source.size();
        let header = Header::new(own.algorithm(), own.block_size(), Salt::EMPTY);
        let header = header.map_err(of_file)?;
        let info = Info::new(Made::Read).describe(subject);
        let old = found_log(file)?;
        if let Some(old) = &old {
            check(old, resumes, &header, size)?;
        }
        let reads_back = verify == Verify::ReadBack;
        let resumed = old.as_ref().map(|old| Resumed::new(old, &info, subject, reads_back));
        let resumed = resumed.transpose()?;
        match &resumed {
            None => expect(0, size),
            Some(resumed) => expect(resumed.amount() - resumed.left(), resumed.left()),
        }
        let from = found.check_resumed(destination, resumed.as_ref(), size, tuning, progress)?;
        let is_finished = resumed.is_some_and(|resumed| resumed.is_finished());
        let text = info.to_string();
        let logged = |left| {
            let info = text.clone();
            Ok(Logged { parameters, own, zeros, updates, verify, subject, file, info, left })
        };
        if is_finished {
            return logged(Left::ReadBack);
        }
        let writer = match old {
            Some(old) => old.continued(size),
            None => emptied(file).map_err(Into::into).and_then(|it| Writer::new(it, header, size)),
        };
        let writer = blksum::map::prepared(writer.map_err(of_map)?, subject.source);
        let writer = writer.map_err(Refused::Unreadable)?;
        let sync = destination.syncer().map_err(Refused::Open)?;
        let writer = writer.with_output(|file| Log::new(file, sync).committed(committed));
        logged(Left::From(from, Box::new(writer.checkpoint_every(interval, text.clone()))))
    }
}

impl Logged<'_> {
    /// Copies what is left.
    ///
    /// # Errors
    ///
    /// Fails like [`Job::write`], and with [`Error::Log`] if the map cannot be written. What has a checkpoint can be continued.
    pub fn write(
        self,
        destination: Box<dyn Destination>,
        tuning: &Tuning,
        progress: &Progress,
    ) -> Result<LoggedCopy, Error> {
        let Self { parameters, own, zeros, updates, verify, subject, file, info, left } = self;
        let file = file.try_clone().map_err(|error| Error::Log(error.into()))?;
        let source = subject.source;
        let (written, is_whole, writer) = match left {
            Left::ReadBack => {
                let rest = Job::new(What::From(source.size()), &[]);
                (rest.write(source, destination, tuning, progress)?, false, None)
            }
            Left::From(from, mut writer) => {
                let leaf = writer.header().leaf();
                let rest = Job::new(What::From(from), parameters).blocks(&leaf, &mut *writer);
                let rest = rest.zeros(zeros).update(updates).verify(verify);
                let written = rest.write(source, destination, tuning, progress).map_err(of_log)?;
                (written, from == 0, Some(writer))
            }
        };
        Ok(LoggedCopy { written, is_whole, writer, own, file, info })
    }
}

/// A copy that was not read back, and whose log is not finished.
pub struct LoggedCopy {
    written: Written,
    is_whole: bool,
    writer: Option<Box<Writer<Log<File>>>>,
    own: Parameters,
    file: File,
    info: String,
}

impl LoggedCopy {
    /// Returns what was copied, if that is all of the source. Its checksums can be judged before the map is finished.
    pub fn whole(&self) -> Option<&Copied> {
        self.is_whole.then(|| self.written.copied())
    }

    /// Ends the map. Of a copy that was continued, the only checksum is the first one, which is of the map.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::Log`] if the map cannot be written or read.
    pub fn finish(self, tuning: &Tuning) -> Result<(Written, FinishedLog), Error> {
        let Self { written, is_whole, writer, own, file, info } = self;
        let end = match writer {
            None => None,
            Some(writer) => {
                let end = file.metadata().map_err(|error| Error::Log(error.into()))?.len();
                writer.finish(&info).map_err(Error::Log)?;
                Some(end)
            }
        };
        let log = FinishedLog { file, end };
        if is_whole {
            return Ok((written, log));
        }
        let map = log.file.try_clone().map_err(blkmap::Error::from).and_then(Map::open);
        let digest = map.and_then(|map| blkmap::checksum(&map, own.construction(), tuning.threads));
        Ok((written.with_digests(vec![digest.map_err(Error::Log)?]), log))
    }
}

/// The map of a copy that was not read back.
#[derive(Debug)]
pub struct FinishedLog {
    file: File,
    /// Where its end was written. `None` if it was finished before.
    end: Option<u64>,
}

impl FinishedLog {
    /// Makes the map one that is not finished: its copy holds something else, or cannot be read. The copy that was only not compared
    /// yet is compared when it is resumed, and needs no withdrawal.
    pub fn withdraw(self) {
        if let Some(end) = self.end {
            // A map whose copy is not what it says is worse than one with a longer end.
            let _ = self.file.set_len(end);
        }
    }
}

/// Returns the log in a file, if it has a commit.
fn found_log(file: &File) -> Result<Option<Recovered>, Refused> {
    match Recovered::find_begun(file) {
        Ok(found) => Ok(found.filter(|found| found.commit().is_some())),
        Err(blkmap::Error::Magic) => Err(Refused::LogFormat),
        Err(error) => Err(of_map(error)),
    }
}

/// Checks that a map is the log of a copy as it is made now. [`Resumed`] is compared with its content.
fn check(old: &Recovered, resumes: bool, header: &Header, size: u64) -> Result<(), Refused> {
    let is_finished = old.commit().is_some_and(Commit::is_final);
    if !resumes {
        return Err(if is_finished { Refused::LogFinished } else { Refused::LogUnfinished });
    }
    let key = |it: &Header| (it.algorithm, it.block_size, it.salt);
    match old.commit().map(Commit::image_size) {
        _ if key(old.header()) != key(header) => Err(Refused::LogParameters),
        Some(then) if then != size => Err(Refused::LogSize { then, size }),
        _ => Ok(()),
    }
}

/// Empties a file, and returns it for a writer.
fn emptied(file: &File) -> io::Result<File> {
    file.set_len(0)?;
    let mut file = file.try_clone()?;
    file.rewind()?;
    Ok(file)
}

fn of_map(error: blkmap::Error) -> Refused {
    Refused::Log(error.into())
}

/// Tells errors of the log from errors of the source.
fn of_log(error: Error) -> Error {
    match error {
        Error::Source(blksum::Error::Sink(error)) => match error.downcast::<blkmap::Error>() {
            Ok(error) => Error::Log(*error),
            Err(error) => Error::Source(blksum::Error::Sink(error)),
        },
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use blkimage::OpenOptions;

    use super::*;
    use crate::{Existing, FileName, Others, Zeros};

    fn open(path: &Path) -> File {
        File::options().read(true).write(true).create(true).truncate(false).open(path).unwrap()
    }

    /// Copies `source` to `copy` with the log `map`. Returns the bytes that were written, whether the map was committed, and the
    /// map that is finished.
    fn copy(folder: &Path, resumes: bool) -> Result<(u64, u32, FinishedLog), String> {
        let path = |name: &str| folder.join(name);
        let image = OpenOptions::new().open(path("source")).unwrap();
        let subject = Subject {
            name: "source".as_ref(),
            image: &image,
            source: &image,
            snapshot: None,
            partition: None,
        };
        let existing = if resumes { Existing::Resume } else { Existing::Overwrite };
        let is_new = !path("copy").exists();
        let name = FileName::new(&path("copy"), existing).unwrap();
        let place = name.with_file(open(&path("copy")), is_new, &Others::default()).unwrap();
        let found = place.found().clone();
        let destination =
            place.into_destination(Some(&image), Zeros::Auto, &OpenOptions::new()).unwrap();
        let (file, commits) = (open(&path("map")), Arc::new(AtomicU32::new(0)));
        let counted = Arc::clone(&commits);
        let log = Logging {
            subject: &subject,
            found: &found,
            file: &file,
            resumes,
            interval: Duration::ZERO,
            committed: Box::new(move || {
                counted.fetch_add(1, Relaxed);
            }),
        };
        let (tuning, progress) = (Tuning::default(), Progress::new());
        let parameters = [Parameters::default()];
        let mut expected = (0, 0);
        let expect = |compared, left| expected = (compared, left);
        let logged =
            Job::new(What::All, &parameters).logged(log, &*destination, &tuning, &progress, expect);
        let logged = logged.map_err(|refused| {
            assert!(refused.is_of_log(), "{refused}");
            refused.to_string()
        })?;
        let copied = logged.write(destination, &tuning, &progress).unwrap();
        let (written, log) = copied.finish(&tuning).unwrap();
        let amounts = written.copied().amounts.unwrap();
        assert_eq!(amounts.written + amounts.zeroed, expected.1);
        let own = blksum::checksum(&image, &parameters[0], &tuning, &progress).unwrap();
        assert_eq!(written.digests(), [own]);
        let read = written.read_back(&parameters, Some(&image), &tuning, &progress);
        assert_eq!(read.unwrap().0.digests, [own]);
        Ok((expected.1, commits.load(Relaxed), log))
    }

    #[test]
    fn logs_are_finished_withdrawn_and_continued() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let size = 300 << 16;
        let content: Vec<u8> = (0..size).map(|byte: u32| (byte >> 9) as u8).collect();
        fs::write(folder.join("source"), &content).unwrap();
        let (written, commits, log) = copy(folder, false).unwrap();
        assert_eq!((written, commits), (size.into(), 1));
        let is_finished = || Map::open(File::open(folder.join("map")).unwrap()).is_ok();
        assert!(is_finished());
        assert_eq!(copy(folder, false).unwrap_err(), "exists");
        // Nothing is left to copy.
        assert_eq!(copy(folder, true).map(|it| (it.0, it.1)), Ok((0, 0)));
        // The checkpoints stay, which have less than all of it.
        log.withdraw();
        assert!(!is_finished());
        assert_eq!(copy(folder, false).unwrap_err(), "is not finished");
        let (written, _, log) = copy(folder, true).unwrap();
        assert!(written < size.into() && is_finished());
        drop(log);
        fs::write(folder.join("map"), "text").unwrap();
        assert_eq!(copy(folder, true).unwrap_err(), "exists, and is not a block map");
        assert_eq!(fs::read(folder.join("copy")).unwrap(), content);
        fs::remove_file(folder.join("map")).unwrap();
        fs::hard_link(folder.join("source"), folder.join("map")).unwrap();
        assert_eq!(copy(folder, false).unwrap_err(), "is a file of the source");
        assert_eq!(fs::read(folder.join("source")).unwrap(), content);
    }
}
