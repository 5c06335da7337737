//! Opens the images of `blkhash verity`, and hashes their blocks.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;

use blkhash::{BlockDigests, Digest, Parameters, Sink};
use blkimage::{Image, OpenOptions, Slice, Source};
use blksum::{Progress, Tuning};

use super::args::SourceArgs;
use crate::blkhash::PROGRAM;
use crate::blkhash::opening::explain;
use crate::blksum::part::Part;
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
fn without_name(name: &OsStr, error: &blkimage::Error) -> String {
    let text = explain(error);
    let own = format!("{}: ", Path::new(name).display());
    text.strip_prefix(&own).unwrap_or(&text).to_owned()
}

/// The data of an image.
pub struct Data {
    pub image: Arc<Image>,
    pub name: OsString,
    source: Slice<Arc<dyn Source>>,
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
        Ok(Self { image, name: name.to_owned(), source, is_part, tuning })
    }

    /// Returns the content.
    pub fn source(&self) -> &Slice<Arc<dyn Source>> {
        &self.source
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

    /// Returns the checksum of the data.
    pub fn checksum(&self, parameters: &Parameters, reporter: &Reporter) -> Result<Digest, String> {
        self.watched(reporter, |progress| {
            blksum::checksum(&self.source, parameters, &self.tuning, progress)
        })
    }

    /// Passes the digests of all blocks to `sink`. Its errors are those of the file `target`.
    pub fn block_digests(
        &self,
        parameters: &Parameters,
        sink: &mut (dyn Sink<BlockDigests> + Send),
        target: &str,
        reporter: &Reporter,
    ) -> Result<(), String> {
        // The tree of zeros takes space, or has to be read, although the zeros cost nothing.
        let limit = MAX_ZERO_BLOCKS.saturating_mul(parameters.block_size() as u64);
        let tuning = Tuning { max_zeros: self.tuning.max_zeros.or(Some(limit)), ..self.tuning };
        let mut failed = None;
        let result = self.watched(reporter, |progress| {
            let result = blksum::block_digests(&self.source, parameters, sink, &tuning, progress);
            if let Err(blksum::Error::Sink(error)) = &result {
                failed = error.downcast_ref().map(messages::reason);
            }
            result
        });
        match failed {
            Some(reason) => Err(format!("{target}: {reason}")),
            None => result,
        }
    }

    fn watched<T>(
        &self,
        reporter: &Reporter,
        work: impl FnOnce(&Progress) -> Result<T, blksum::Error>,
    ) -> Result<T, String> {
        let progress = Arc::new(Progress::new());
        let amount = Amount { total: self.size(), stored: None };
        let watch = reporter.watch(Some(amount), {
            let (progress, image) = (progress.clone(), self.image.clone());
            move || {
                let (done, data) = (progress.done(), progress.data());
                Counts { done, data, read: image.bytes_read() }
            }
        });
        let result = work(&progress);
        drop(watch);
        result.map_err(|error| match error {
            blksum::Error::Image(error) => without_name(&self.name, &error),
            blksum::Error::Zeros { .. } => format!("{error}: --max-zeros moves the limit"),
            error => error.to_string(),
        })
    }
}

/// Reports a failure of `name` on standard error.
pub fn fail(name: &OsStr, reason: &str) {
    messages::message_of(PROGRAM, name.as_encoded_bytes(), reason);
}

/// Returns a name as it is printed in text.
pub fn shown(name: &OsStr) -> String {
    quote::name(name.as_encoded_bytes())
}

/// Maximum number of zero blocks that an image does not store, if its tree is written or read. That is 1 TiB
/// with blocks of 4 KiB, for which the tree takes 8 GiB.
const MAX_ZERO_BLOCKS: u64 = 1 << 28;
