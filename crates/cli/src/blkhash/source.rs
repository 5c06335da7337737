//! Opens the images of `blkhash verity` and `blkhash map`, and hashes their blocks.

use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use blkhash::{BlockDigests, BlockSize, Digest, Digester, Parameters, Sink, SinkError};
use blkimage::{Image, OpenOptions, Source};
use blksum::{Part, Progress, Selected, Tuning};

use super::source_args::SourceArgs;
use crate::image;
use crate::problem::Problem;
use crate::progress::{Amount, Counts, Reporter};
use crate::{messages, quote};

/// The data of an image.
pub struct Data {
    pub selected: Selected,
    pub name: OsString,
    tuning: Tuning,
}

impl Data {
    /// Opens the data on the command line. The error is a message without the name.
    pub fn open(name: &OsStr, options: &OpenOptions, args: &SourceArgs) -> Result<Self, String> {
        let selected =
            Selected::new(image::open::open(name, options)?, args.partition.map(Part::Partition));
        let selected = selected.map_err(|error| error.to_string())?;
        let defaults = Tuning::default();
        let threads = args.threads.map_or(defaults.threads, usize::from);
        let tuning = defaults.with_threads(threads).with_max_zeros(args.max_zeros);
        Ok(Self { selected, name: name.to_owned(), tuning })
    }

    /// Returns the image.
    pub fn image(&self) -> &Arc<Image> {
        self.selected.image()
    }

    /// Returns the content.
    pub fn source(&self) -> &dyn Source {
        self.selected.source()
    }

    /// Returns whether the data is a part of the image.
    pub fn is_part(&self) -> bool {
        self.selected.part().is_some()
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> u64 {
        self.selected.size()
    }

    /// Cuts the data to `length` bytes. The error is a message without the name.
    pub fn cut(&mut self, length: u64) -> Result<(), String> {
        let size = self.size();
        if length > size {
            return Err(format!("has {size} bytes, and the tree is for {length}"));
        }
        self.selected.truncate(length);
        Ok(())
    }

    /// Returns the checksum of the data.
    pub fn checksum(&self, parameters: &Parameters, reporter: &Reporter) -> Result<Digest, String> {
        let checksum = self.watched(self.size(), reporter, |tuning, progress| {
            blksum::checksum(self.source(), parameters, tuning, progress)
        });
        checksum.map_err(|error| self.failed(&error).text())
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
        let limit = MAX_ZERO_BLOCKS.saturating_mul(parameters.block_size().into());
        let leaf = parameters.leaf(&Digester::new(parameters.algorithm()));
        let hashed = self.watched(self.size(), reporter, |tuning, progress| {
            let tuning = tuning.with_max_zeros(tuning.max_zeros.or(Some(limit)));
            blksum::block_digests(self.source(), &leaf, sink, &tuning, progress)
        });
        hashed.map_err(|error| match error {
            blksum::Error::Sink(error) => format!("{target}: {}", reason_of_sink(&error)),
            error => self.failed(&error).text(),
        })
    }

    /// Compares the data with that of another image, as far as both reach.
    pub fn compare(
        &self,
        other: &Self,
        block_size: BlockSize,
        sink: &mut (dyn Sink<blksum::ComparedRun> + Send),
        reporter: &Reporter,
    ) -> Result<(), Problem> {
        let common = self.size().min(other.size());
        let compared = self.watched(common, reporter, |tuning, progress| {
            blksum::compare(self.source(), other.source(), block_size, sink, tuning, progress)
        });
        compared.map_err(|error| self.failed(&error))
    }

    /// Returns whether there are only zeros from `offset` on.
    pub fn has_zeros_from(&self, offset: u64, reporter: &Reporter) -> Result<bool, Problem> {
        let length = self.size().saturating_sub(offset);
        let found = self.watched(length, reporter, |tuning, progress| {
            blksum::first_nonzero(self.source(), offset, tuning, progress)
        });
        found.map(|found| found.is_none()).map_err(|error| self.failed(&error))
    }

    /// Does work over `total` bytes, and shows its progress.
    pub fn watched<T>(
        &self,
        total: u64,
        reporter: &Reporter,
        work: impl FnOnce(&Tuning, &Progress) -> Result<T, blksum::Error>,
    ) -> Result<T, blksum::Error> {
        let progress = Arc::new(Progress::new());
        let amount = Amount { total, stored: None };
        let watch = reporter.watch(Some(amount), {
            let (progress, image) = (progress.clone(), self.image().clone());
            move || {
                let (done, data) = (progress.done(), progress.data());
                Counts { done, data, read: image.bytes_read() }
            }
        });
        let result = work(&self.tuning, &progress);
        drop(watch);
        result
    }

    /// Describes an error of the image.
    pub fn failed(&self, error: &blksum::Error) -> Problem {
        Problem::of_pass(error, &self.name).about(&self.name)
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
    messages::message_of(name.as_encoded_bytes(), reason);
}

/// Returns a name as it is printed in text.
pub fn shown(name: &OsStr) -> String {
    quote::name(name.as_encoded_bytes())
}

/// Maximum number of zero blocks that an image does not store, if its tree is written or read. That is 1 TiB
/// with blocks of 4 KiB, for which the tree takes 8 GiB.
const MAX_ZERO_BLOCKS: u64 = 1 << 28;
