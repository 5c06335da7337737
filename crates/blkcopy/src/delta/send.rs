//! Sends what differs from a map.

use std::io::{self, Write};

use blkhash::Parameters;
use blkimage::Source;
use blkmap::Map;
use blksum::{Pass, Progress, Tuning};

use super::differing::Differing;
use super::format::{self, Encoder, Header};
use crate::Error;
use crate::copied::Copied;

/// The result of sending a delta.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Sent {
    /// The result: the checksum and the size of the source.
    pub copied: Copied,
    /// Number of bytes in the blocks that differ.
    pub changed: u64,
    /// Number of bytes that were written.
    pub length: u64,
}

/// Writes the delta to `output` that turns the content of `base` into the content of `source`. It states the checksum
/// with `parameters`.
///
/// Reads all of the source, and the blocks that differ twice. If a checksum is expected and the source has another one, the
/// delta gets no end, so that it cannot pass as a whole one.
///
/// # Errors
///
/// Fails if the source cannot be read or changed meanwhile, if the map cannot be read or does not know every block, if the
/// output cannot be written, and with [`Error::Unexpected`].
pub fn send_delta(
    base: &Map,
    source: &dyn Source,
    output: &mut (dyn Write + Send),
    parameters: &Parameters,
    expected: Option<&[u8]>,
    tuning: &Tuning,
    progress: &Progress,
) -> Result<Sent, Error> {
    let header = Header::new(base, source.size());
    let mut encoder = Encoder::new(output, &header).map_err(unwritten)?;
    let take =
        |record, old: &[u8], data: &[u8]| encoder.record(record, old, data).map_err(unwritten);
    let mut differing = Differing::new(base, header, source, Box::new(take))?;
    let (leaf, parameters) = (base.header().leaf(), std::slice::from_ref(parameters));
    let pass = Pass::new(parameters).blocks(&leaf, &mut differing);
    let digests = pass.run(source, tuning, progress).map_err(Error::of_pass)?;
    let changed = differing.end()?;
    source.check_unchanged().map_err(|error| Error::Source(error.into()))?;
    if expected.is_some_and(|expected| expected != digests[0].as_bytes()) {
        return Err(Error::Unexpected(digests[0]));
    }
    encoder.end(&format::end(&parameters[0], &digests[0])).map_err(unwritten)?;
    let length = encoder.length;
    Ok(Sent { copied: Copied::new(digests, header.size, None), changed, length })
}

fn unwritten(source: io::Error) -> Error {
    Error::Destination { what: "cannot be written", source }
}
