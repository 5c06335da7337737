//! Copies from and to streams, which are read and written once and in order.

use std::io::{self, Read, Write};

use blkhash::{Digest, Parameters, SinkError};
use blkimage::{Announcer, ExtentKind, Source};
use blksum::{Progress, Tuning, stream_checksums};

use crate::Error;
use crate::copied::Copied;

/// Writes all bytes of `source` to `output` in order.
///
/// # Errors
///
/// Fails if the source cannot be read or changed, or the output cannot be written.
pub fn to_stream(
    source: &dyn Source,
    output: &mut dyn Write,
    parameters: &[Parameters],
    tuning: &Tuning,
    progress: &Progress,
) -> Result<Copied, Error> {
    progress.set_total(source.size());
    let mut reader = Bytes { source, at: 0, announcer: Announcer::default() };
    let mut write = |_, bytes: &[u8]| {
        let written = output.write_all(bytes);
        Ok(written.map_err(|source| Error::Destination { what: "cannot be written", source })?)
    };
    let (digests, size) = received(&mut reader, &mut write, parameters, tuning, progress)?;
    source.check_unchanged().map_err(|error| Error::Source(error.into()))?;
    output.flush().map_err(|source| Error::Destination { what: "cannot be written", source })?;
    Ok(Copied::new(digests, size, None))
}

/// Takes bytes with their offset.
pub(crate) type Take<'a> = dyn FnMut(u64, &[u8]) -> Result<(), SinkError> + 'a;

/// Reads a stream, passes it to `take` with its offsets, and returns its checksums and its length.
pub(crate) fn received(
    reader: &mut dyn Read,
    take: &mut Take<'_>,
    parameters: &[Parameters],
    tuning: &Tuning,
    progress: &Progress,
) -> Result<(Vec<Digest>, u64), Error> {
    let mut failure = None;
    let through = Through { reader, take, at: 0, failure: &mut failure };
    let read = stream_checksums(through, parameters, tuning, progress);
    match failure {
        Some(error) => Err(Error::of_pass(blksum::Error::Sink(error))),
        None => read.map_err(of_image),
    }
}

/// Unwraps an error of an image that came by way of a reader.
fn of_image(error: blksum::Error) -> Error {
    Error::Source(match error {
        blksum::Error::Stream(error) => match error.downcast::<blkimage::Error>() {
            Ok(error) => error.into(),
            Err(error) => blksum::Error::Stream(error),
        },
        error => error,
    })
}

/// All bytes of a source in order.
struct Bytes<'a> {
    source: &'a dyn Source,
    at: u64,
    announcer: Announcer,
}

impl Read for Bytes<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = self.source.size() - self.at;
        if left == 0 || buf.is_empty() {
            return Ok(0);
        }
        self.announcer.advance(self.source, self.at);
        let extent = self.source.extent(self.at, left.min(buf.len() as u64));
        let extent = extent.map_err(io::Error::other)?;
        let buf = &mut buf[..extent.length as usize];
        match extent.kind {
            ExtentKind::Zero => buf.fill(0),
            ExtentKind::Data => {
                self.source.read_exact_at(buf, self.at).map_err(io::Error::other)?;
            }
        }
        self.at += extent.length;
        Ok(buf.len())
    }
}

/// A reader whose bytes are passed on as they are read.
struct Through<'a> {
    reader: &'a mut dyn Read,
    take: &'a mut Take<'a>,
    at: u64,
    failure: &'a mut Option<SinkError>,
}

impl Read for Through<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buf)?;
        if let Err(error) = (self.take)(self.at, &buf[..count]) {
            *self.failure = Some(error);
            return Err(io::ErrorKind::Other.into());
        }
        self.at += count as u64;
        Ok(count)
    }
}
