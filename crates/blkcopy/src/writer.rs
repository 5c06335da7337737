//! Writes what a pass reads to a destination.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use blkhash::SinkError;
use blkimage::{Buffer, Extent, ExtentKind, Image, Source};
use blksum::{Progress, Retries, Tee};

use crate::copied::Amounts;
use crate::destination::{Destination, Zeroing};
use crate::error::Error;
use crate::replaced::Replaced;
use crate::zeros::{UNIT, Zeros, runs, runs_of_zeros};

/// Writes the content to a destination.
pub(crate) struct Writer<'a> {
    destination: &'a dyn Destination,
    zeros: Zeros,
    /// Whether all of the destination was zero when the copy began.
    is_blank: bool,
    /// The destination as it was, if only what differs is written.
    old: Option<&'a Image>,
    /// Whether data is compared, too.
    updates: bool,
    /// What an update wrote or made zero.
    replaced: Option<Replaced>,
    retries: Retries<'a>,
    buffers: Mutex<Vec<Buffer>>,
    written: AtomicU64,
    zeroed: AtomicU64,
    equal: AtomicU64,
}

impl<'a> Writer<'a> {
    pub fn new(
        destination: &'a dyn Destination,
        zeros: Zeros,
        is_blank: bool,
        old: Option<&'a Image>,
        updates: bool,
        progress: &'a Progress,
    ) -> Self {
        Self {
            destination,
            zeros,
            is_blank,
            old,
            updates,
            replaced: (updates && old.is_some()).then(Replaced::default),
            retries: Retries::new(UNREAD_UNIT, progress),
            buffers: Mutex::default(),
            written: AtomicU64::new(0),
            zeroed: AtomicU64::new(0),
            equal: AtomicU64::new(0),
        }
    }

    /// Returns what was done so far.
    pub fn amounts(&self) -> Amounts {
        let [written, zeroed, equal] =
            [&self.written, &self.zeroed, &self.equal].map(|count| count.load(Relaxed));
        Amounts { written, zeroed, equal, shared: 0 }
    }

    /// Returns the places that an update replaced. `None` if all was written, or if there are too many.
    pub fn replaced(&self) -> Option<Vec<Range<u64>>> {
        self.replaced.as_ref()?.ranges()
    }

    fn note_replaced(&self, offset: u64, length: u64) {
        if let Some(replaced) = &self.replaced {
            replaced.add(offset, length);
        }
    }

    /// Writes bytes as they are.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let length = bytes.len() as u64;
        let failed = |source| Error::Range { offset, length, what: "written", source };
        self.destination.write_all_at(bytes, offset).map_err(failed)?;
        self.written.fetch_add(length, Relaxed);
        Ok(())
    }

    /// Writes those units of data that differ from the destination, and all that cannot be read there.
    fn write_changed(&self, old: &Image, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.with_old(old, offset, bytes.len(), |part, old| {
            let (at, bytes) = (offset + part.start as u64, &bytes[part]);
            let Some(old) = old else { return self.replace(at, bytes) };
            let is_equal = |unit: Range<usize>| bytes[unit.clone()] == old[unit];
            runs(at, bytes.len(), is_equal, |range, is_equal| match is_equal {
                true => {
                    self.equal.fetch_add(range.len() as u64, Relaxed);
                    Ok(())
                }
                false => self.replace(at + range.start as u64, &bytes[range]),
            })
        })
    }

    /// Writes bytes, and makes zeros as the policy says.
    fn replace(&self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.note_replaced(offset, bytes.len() as u64);
        runs_of_zeros(offset, bytes, |part, is_zero| {
            let at = offset + part.start as u64;
            match is_zero && self.zeros != Zeros::Write {
                true => self.make_zero(at, part.len() as u64),
                false => self.write(at, &bytes[part]),
            }
        })
    }

    /// Makes bytes zero that may be zero already.
    fn zero(&self, offset: u64, length: u64) -> Result<(), Error> {
        // A file system without holes writes them, so that a demand for holes has to be made.
        if self.is_blank && !matches!(self.zeros, Zeros::Write | Zeros::Punch) {
            self.zeroed.fetch_add(length, Relaxed);
            return Ok(());
        }
        let Some(old) = self.old else { return self.make_zero(offset, length) };
        let (mut at, end) = (offset, offset + length);
        while at < end {
            let extent = match old.extent(at, end - at) {
                // Reading it tells what of it cannot be read.
                Err(error) if error.is_of_bytes() => {
                    let length = (end - at).min(UNREAD_UNIT - at % UNREAD_UNIT);
                    Ok(Extent { offset: at, length, kind: ExtentKind::Data })
                }
                found => found.map_err(|error| unread(at, end - at, error)),
            }?;
            if extent.kind == ExtentKind::Zero {
                self.equal.fetch_add(extent.length, Relaxed);
                at += extent.length;
                continue;
            }
            let part = extent.length.min(PART - at % PART);
            self.with_old(old, at, part as usize, |part, old| {
                let at = at + part.start as u64;
                let Some(old) = old else { return self.empty(at, part.len() as u64) };
                runs_of_zeros(at, old, |range, is_zero| match is_zero {
                    true => {
                        self.equal.fetch_add(range.len() as u64, Relaxed);
                        Ok(())
                    }
                    false => self.empty(at + range.start as u64, range.len() as u64),
                })
            })?;
            at += part;
        }
        Ok(())
    }

    /// Makes bytes zero that hold something else.
    fn empty(&self, offset: u64, length: u64) -> Result<(), Error> {
        self.note_replaced(offset, length);
        self.make_zero(offset, length)
    }

    /// Makes bytes zero as the policy says.
    fn make_zero(&self, offset: u64, length: u64) -> Result<(), Error> {
        let failed = |source| Error::Range { offset, length, what: "zeroed", source };
        let how = match self.zeros {
            Zeros::Write => None,
            Zeros::Punch => Some(Zeroing::Punch),
            Zeros::Auto | Zeros::KeepIfZero => Some(Zeroing::Any),
        };
        let is_done = match how {
            Some(how) => self.destination.zero(offset, length, how).map_err(failed)?,
            None => false,
        };
        if !is_done && self.zeros == Zeros::Punch && length >= UNIT as u64 {
            let source = io::Error::other("the destination does not deallocate");
            return Err(Error::Range { offset, length, what: "deallocated", source });
        }
        if is_done {
            self.zeroed.fetch_add(length, Relaxed);
            return Ok(());
        }
        let (mut at, end) = (offset, offset + length);
        while at < end {
            let part = (end - at).min(ZEROS.len() as u64);
            self.write(at, &ZEROS[..part as usize])?;
            at += part;
        }
        Ok(())
    }

    /// Reads a part of the destination, and passes it to `work`, as ranges of the part. Those that cannot be read have no bytes.
    fn with_old(
        &self,
        old: &Image,
        offset: u64,
        length: usize,
        work: impl Fn(Range<usize>, Option<&[u8]>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let lock = || self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffer = lock().pop().unwrap_or_default();
        buffer.grow(length);
        let bytes = &mut buffer.as_mut()[..length];
        let mut gaps: Vec<Range<usize>> = Vec::new();
        let read = self.retries.read(old, bytes, offset, &mut |range, _| {
            let (start, end) = ((range.start - offset) as usize, (range.end - offset) as usize);
            match gaps.last_mut() {
                // A server may need all of a large cluster at once to replace it.
                Some(last) if last.end == start => last.end = end,
                _ => gaps.push(start..end),
            }
        });
        let result = read.map_err(|error| unread(offset, length as u64, error)).and_then(|()| {
            let mut at = 0;
            for gap in gaps {
                if at < gap.start {
                    work(at..gap.start, Some(&bytes[at..gap.start]))?;
                }
                at = gap.end;
                work(gap, None)?;
            }
            if at < length { work(at..length, Some(&bytes[at..length])) } else { Ok(()) }
        });
        lock().push(buffer);
        result
    }
}

fn unread(offset: u64, length: u64, error: blkimage::Error) -> Error {
    Error::Range { offset, length, what: "read", source: io::Error::other(error) }
}

impl Tee for Writer<'_> {
    fn data(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        if let Some(old) = self.old.filter(|_| self.updates) {
            return Ok(self.write_changed(old, offset, bytes)?);
        }
        if self.zeros == Zeros::Write {
            return Ok(self.write(offset, bytes)?);
        }
        runs_of_zeros(offset, bytes, |range, is_zero| {
            let at = offset + range.start as u64;
            match is_zero {
                true => self.zero(at, range.len() as u64),
                false => self.write(at, &bytes[range]),
            }
        })?;
        Ok(())
    }

    fn zeros(&self, offset: u64, length: u64) -> Result<(), SinkError> {
        Ok(self.zero(offset, length)?)
    }
}

/// Bytes of the destination that are read at a time where more cannot be read: the usual cluster of an image.
const UNREAD_UNIT: u64 = 64 << 10;

/// Bytes of the destination that are read at a time to look for zeros.
const PART: u64 = 1 << 20;

static ZEROS: [u8; 1 << 20] = [0; 1 << 20];
