//! Opens the images of `blkhash verity` and `blkhash map`, and hashes their blocks.

use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use blkhash::{BlockSize, Digest, Parameters, Sink};
use blkimage::{Image, OpenOptions, Source};
use blksum::{Part, Progress, Selected, Tuning, Unreadable};

use super::source_args::SourceArgs;
use crate::image;
use crate::problem::Problem;
use crate::progress::{Amount, Counts, Reporter};
use crate::quote;

/// The data of an image.
pub struct Data {
    pub selected: Selected,
    pub name: OsString,
    tuning: Tuning,
}

impl Data {
    /// Opens the data on the command line.
    pub fn open(name: &OsStr, options: &OpenOptions, args: &SourceArgs) -> Result<Self, Problem> {
        let selected =
            Selected::new(image::open::open(name, options)?, args.partition.map(Part::Partition));
        let selected = selected.map_err(|error| Problem::new(error.to_string()))?;
        let defaults = Tuning::default();
        let threads = args.threads.map_or(defaults.threads, usize::from);
        let tuning = defaults.with_threads(threads).with_max_zeros(args.opening.open.max_zeros);
        Ok(Self { selected, name: name.to_owned(), tuning })
    }

    /// Leaves out what the whole image has past its first `size` bytes. Fails if that is all of it.
    pub fn without_tail(self, size: u64) -> Result<Self, Problem> {
        let nothing = "is compared with an image of 0 bytes: nothing would be left";
        let selected = self.selected.without_tail(size).ok_or(nothing)?;
        Ok(Self { selected, ..self })
    }

    /// Returns the image.
    pub fn image(&self) -> &Arc<Image> {
        self.selected.image()
    }

    /// Returns the content.
    pub fn source(&self) -> &dyn Source {
        self.selected.source()
    }

    /// Returns the content for a reader that keeps it.
    pub fn shared_source(&self) -> Arc<dyn Source> {
        Arc::new(self.selected.source().clone())
    }

    /// Returns whether the data is a part of the image.
    pub fn is_part(&self) -> bool {
        self.selected.part().is_some()
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> u64 {
        self.selected.size()
    }

    /// Returns the checksum of the data.
    pub fn checksum(
        &self,
        parameters: &Parameters,
        reporter: &Reporter,
    ) -> Result<Digest, Problem> {
        let checksum = self.watched(self.size(), reporter, |tuning, progress| {
            blksum::checksum(self.source(), parameters, tuning, progress)
        });
        checksum.map_err(|error| self.failed(&error))
    }

    /// Compares the data with the data of another image, as far as both reach.
    pub fn compare(
        &self,
        other: &Self,
        block_size: BlockSize,
        sink: &mut (dyn Sink<blksum::ComparedRun> + Send),
        reporter: &Reporter,
    ) -> Result<Vec<Unreadable>, Problem> {
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

/// Returns a name as it is printed in text.
pub fn shown(name: &OsStr) -> String {
    quote::name(name.as_encoded_bytes())
}
