//! Opens the images of `blkhash verity` and `blkhash map`, and hashes their blocks.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;

use blkhash::{BlockDigests, BlockSize, Digest, Digester, Leaf, Parameters, Sink, SinkError};
use blkimage::{ErrorKind, Image, OpenOptions, Slice, Source};
use blksum::{Part, Progress, Tuning};

use super::PROGRAM;
use super::opening::explain;
use super::source_args::SourceArgs;
use super::verdict::Outcome;
use crate::map::output::Refused;
use crate::map::padded_last;
use crate::progress::{Amount, Counts, Reporter};
use crate::{messages, quote};

/// Opens an image and prints its warnings. The error is a message without the name.
pub fn open(name: &OsStr, options: &OpenOptions) -> Result<Arc<Image>, String> {
    let image =
        crate::open::open(Path::new(name), options).map_err(|error| without_name(name, &error))?;
    for warning in image.warnings() {
        messages::message(PROGRAM, &format!("warning: {warning}"));
    }
    Ok(Arc::new(image))
}

/// Describes an error of an image for a message that begins with `name`.
pub fn without_name(name: &OsStr, error: &blkimage::Error) -> String {
    let text = explain(error);
    let own = format!("{}: ", Path::new(name).display());
    text.strip_prefix(&own).unwrap_or(&text).to_owned()
}

/// The data of an image.
pub struct Data {
    pub image: Arc<Image>,
    pub name: OsString,
    source: Slice<Arc<dyn Source>>,
    /// Offset of the data in the image.
    start: u64,
    is_part: bool,
    tuning: Tuning,
}

impl Data {
    /// Opens the data on the command line. The error is a message without the name.
    pub fn open(name: &OsStr, options: &OpenOptions, args: &SourceArgs) -> Result<Self, String> {
        let image = open(name, options)?;
        let (offset, length) = match args.partition {
            None => (0, image.size()),
            Some(number) => Part::Partition(number).range(&image)?,
        };
        let source: Arc<dyn Source> = image.clone();
        let source =
            Slice::new(source, offset, length).ok_or("reaches past the end of the image")?;
        let defaults = Tuning::default();
        let threads = args.threads.map_or(defaults.threads, usize::from);
        let tuning = Tuning { threads, max_zeros: args.max_zeros, ..defaults };
        let is_part = args.partition.is_some();
        Ok(Self { image, name: name.to_owned(), source, start: offset, is_part, tuning })
    }

    /// Returns the content.
    pub fn source(&self) -> &Slice<Arc<dyn Source>> {
        &self.source
    }

    /// Returns the offset of the data in the image.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Returns whether the data is a part of the image.
    pub fn is_part(&self) -> bool {
        self.is_part
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> u64 {
        self.source.size()
    }

    /// Cuts the data to `length` bytes. The error is a message without the name.
    pub fn cut(&mut self, length: u64) -> Result<(), String> {
        let size = self.size();
        if length > size {
            return Err(format!("has {size} bytes, and the tree is for {length}"));
        }
        let whole: Arc<dyn Source> = Arc::new(self.source.clone());
        self.source = Slice::new(whole, 0, length).ok_or("is too short")?;
        Ok(())
    }

    /// Returns the digest of the last block padded with zeros to a whole one, if it is short.
    pub fn padded_last(&self, leaf: &Leaf, size: BlockSize) -> Result<Option<Digest>, Failed> {
        padded_last(&self.source, leaf, size).map_err(|error| self.failed(error.into()))
    }

    /// Returns the checksum of the data.
    pub fn checksum(&self, parameters: &Parameters, reporter: &Reporter) -> Result<Digest, String> {
        let checksum = self.watched(self.size(), reporter, |progress| {
            blksum::checksum(&self.source, parameters, &self.tuning, progress)
        });
        checksum.map_err(String::from)
    }

    /// Passes the digests of all blocks to `sink`, which writes or reads a tree with these parameters in the
    /// file `target`.
    pub fn tree_digests(
        &self,
        parameters: &Parameters,
        sink: &mut (dyn Sink<BlockDigests> + Send),
        target: &str,
        reporter: &Reporter,
    ) -> Result<(), String> {
        parameters.check_length(self.size()).map_err(|error| error.to_string())?;
        // The tree of zeros takes space, or has to be read, although the zeros cost nothing.
        let limit = MAX_ZERO_BLOCKS.saturating_mul(parameters.block_size() as u64);
        let leaf = parameters.leaf(&Digester::new(parameters.algorithm()));
        Ok(self.block_digests(&self.source, &leaf, limit, sink, target, reporter)?)
    }

    /// Passes the digests of all blocks of a part of the data to `sink`. Its errors are those of the file
    /// `target`. More zeros than `max_zeros` that the image does not store are an error, unless the command
    /// line sets the limit.
    pub fn block_digests(
        &self,
        source: &dyn Source,
        leaf: &Leaf,
        max_zeros: u64,
        sink: &mut (dyn Sink<BlockDigests> + Send),
        target: &str,
        reporter: &Reporter,
    ) -> Result<(), Failed> {
        let tuning = Tuning { max_zeros: self.tuning.max_zeros.or(Some(max_zeros)), ..self.tuning };
        let mut failed = None;
        let result = self.watched(source.size(), reporter, |progress| {
            let result = blksum::block_digests(source, leaf, sink, &tuning, progress);
            if let Err(blksum::Error::Sink(error)) = &result {
                failed = Some(reason_of_sink(error));
            }
            result
        });
        match failed {
            Some(reason) => {
                Err(Failed { reason: format!("{target}: {reason}"), ..Failed::default() })
            }
            None => result,
        }
    }

    /// Compares the data with that of another image, as far as both reach.
    pub fn compare(
        &self,
        other: &Self,
        block_size: BlockSize,
        sink: &mut (dyn Sink<blksum::ComparedRun> + Send),
        reporter: &Reporter,
    ) -> Result<(), Failed> {
        let common = self.size().min(other.size());
        self.watched(common, reporter, |progress| {
            blksum::compare(&self.source, &other.source, block_size, sink, &self.tuning, progress)
        })
    }

    /// Returns whether there are only zeros from `offset` on.
    pub fn has_zeros_from(&self, offset: u64, reporter: &Reporter) -> Result<bool, Failed> {
        let found = self.watched(self.size().saturating_sub(offset), reporter, |progress| {
            blksum::first_nonzero(&self.source, offset, &self.tuning, progress)
        });
        found.map(|found| found.is_none())
    }

    fn watched<T>(
        &self,
        total: u64,
        reporter: &Reporter,
        work: impl FnOnce(&Progress) -> Result<T, blksum::Error>,
    ) -> Result<T, Failed> {
        let progress = Arc::new(Progress::new());
        let amount = Amount { total, stored: None };
        let watch = reporter.watch(Some(amount), {
            let (progress, image) = (progress.clone(), self.image.clone());
            move || {
                let (done, data) = (progress.done(), progress.data());
                Counts { done, data, read: image.bytes_read() }
            }
        });
        let result = work(&progress);
        drop(watch);
        result.map_err(|error| self.failed(error))
    }

    /// Describes an error of the image.
    pub fn failed(&self, error: blksum::Error) -> Failed {
        Failed {
            is_changed: matches!(
                &error,
                blksum::Error::Image(it) if matches!(it.kind(), ErrorKind::Changed | ErrorKind::Truncated)
            ),
            reason: match error {
                blksum::Error::Image(error) => without_name(&self.name, &error),
                blksum::Error::Zeros { .. } => format!("{error}: --max-zeros moves the limit"),
                error => error.to_string(),
            },
        }
    }
}

/// The reason why the data could not be processed.
#[derive(Debug, Default)]
pub struct Failed {
    pub reason: String,
    /// Whether the image changed meanwhile.
    pub is_changed: bool,
}

impl From<Failed> for String {
    fn from(failed: Failed) -> Self {
        failed.reason
    }
}

fn reason_of_sink(error: &SinkError) -> String {
    match error.downcast_ref::<blkmap::Error>() {
        Some(blkmap::Error::Io(error)) => messages::reason(error),
        _ => error.downcast_ref().map_or_else(|| error.to_string(), messages::reason),
    }
}

/// Reports a failure of `name` on standard error.
pub fn fail(name: &OsStr, reason: &str) {
    messages::message_of(PROGRAM, name.as_encoded_bytes(), reason);
}

/// Reports that a map cannot be written.
pub fn fail_output(name: &OsStr, refused: &Refused) -> Outcome {
    fail(name, &refused.reason);
    if refused.is_busy { Outcome::Busy } else { Outcome::Unknown }
}

/// Returns a name as it is printed in text.
pub fn shown(name: &OsStr) -> String {
    quote::name(name.as_encoded_bytes())
}

/// Maximum number of zero blocks that an image does not store, if its tree is written or read. That is 1 TiB
/// with blocks of 4 KiB, for which the tree takes 8 GiB.
const MAX_ZERO_BLOCKS: u64 = 1 << 28;
