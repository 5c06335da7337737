//! Checksums of content that can be read only once and in order.

use std::io::{self, Read};

use blkhash::{Digest, Hasher, Parameters};

use crate::{Error, Progress, Tuning};

/// Returns the checksums of all bytes of `reader`, in the order of their `parameters`, and the
/// number of bytes. Reads them once.
///
/// # Errors
///
/// Fails if reading fails, if a construction is not defined for the length of the content, if
/// [`Tuning::implementation`] cannot run here, or if [`Progress::cancel`] was called.
pub fn stream_checksums(
    reader: impl Read,
    parameters: &[Parameters],
    tuning: &Tuning,
    progress: &Progress,
) -> Result<(Vec<Digest>, u64), Error> {
    let mut hashers = Vec::with_capacity(parameters.len());
    for parameters in parameters {
        let digester = tuning.digester(parameters.algorithm())?;
        hashers.push(Hasher::with_digester(*parameters, &digester, tuning.threads));
    }
    let mut reader = Watched { inner: reader, progress };
    let length = match hashers.as_mut_slice() {
        [hasher] => hasher.update_reader(reader).map_err(|error| failure(error, progress))?,
        hashers => {
            let (mut length, mut buffer) = (0, vec![0; READ_SIZE]);
            loop {
                let filled =
                    fill(&mut reader, &mut buffer).map_err(|error| failure(error, progress))?;
                if filled == 0 {
                    break length;
                }
                hashers.iter_mut().for_each(|hasher| hasher.update(&buffer[..filled]));
                length += filled as u64;
            }
        }
    };
    parameters.iter().try_for_each(|parameters| parameters.check_length(length))?;
    Ok((hashers.into_iter().map(Hasher::finalize).collect(), length))
}

/// Reads until the buffer is full or the reader ends. Returns the number of bytes read.
fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn failure(error: io::Error, progress: &Progress) -> Error {
    if progress.is_cancelled() { Error::Cancelled } else { Error::Stream(error) }
}

/// A reader that reports its progress, and fails once the pass is cancelled.
struct Watched<'a, R> {
    inner: R,
    progress: &'a Progress,
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.progress.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        let count = self.inner.read(buf)? as u64;
        self.progress.advance(count, count);
        Ok(count as usize)
    }
}

const READ_SIZE: usize = 1 << 20;
