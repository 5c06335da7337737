//! Zeros in the content, and what becomes of them.

use std::ops::Range;

use blkhash::is_zero;
use blkimage::names;

/// The treatment of zeros at the destination. After a copy the destination reads as zeros there in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Zeros {
    /// Leave a new file sparse. Elsewhere, zero in the cheapest way that the destination guarantees, or write.
    #[default]
    Auto,
    /// Write them, which allocates all of the destination.
    Write,
    /// Deallocate them. Fails if the destination cannot.
    Punch,
    /// Read the destination, and zero only what is not zero yet.
    KeepIfZero,
}

names!(Zeros { Auto = "auto", Write = "write", Punch = "punch", KeepIfZero = "keep-if-zero" });

/// Cuts bytes at `offset` into runs of whole units that `is_in` accepts, and of others. Passes each run, as a range of the bytes,
/// and whether it was accepted. Units start at multiples of [`UNIT`], and those at the ends may be short.
pub(crate) fn runs<E>(
    offset: u64,
    length: usize,
    mut is_in: impl FnMut(Range<usize>) -> bool,
    mut pass: impl FnMut(Range<usize>, bool) -> Result<(), E>,
) -> Result<(), E> {
    let (mut start, mut at, mut last) = (0, 0, None);
    while at < length {
        let unit = UNIT - (offset + at as u64) as usize % UNIT;
        let end = (at + unit).min(length);
        let this = is_in(at..end);
        if let Some(kind) = last
            && kind != this
        {
            pass(start..at, kind)?;
            start = at;
        }
        last = Some(this);
        at = end;
    }
    last.map_or(Ok(()), |kind| pass(start..length, kind))
}

/// Passes the runs of zeros in bytes at `offset`, and of others.
pub(crate) fn runs_of_zeros<E>(
    offset: u64,
    bytes: &[u8],
    pass: impl FnMut(Range<usize>, bool) -> Result<(), E>,
) -> Result<(), E> {
    runs(offset, bytes.len(), |unit| is_zero(&bytes[unit]), pass)
}

/// Bytes that are told apart as zeros or as equal: a page, and a block of most file systems.
pub(crate) const UNIT: usize = 4096;

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn found(offset: u64, bytes: &[u8]) -> Vec<(Range<usize>, bool)> {
        let mut found = Vec::new();
        let passed: Result<(), Infallible> = runs_of_zeros(offset, bytes, |range, is_zero| {
            found.push((range, is_zero));
            Ok(())
        });
        passed.unwrap();
        found
    }

    #[test]
    fn runs_end_at_units_of_the_destination() {
        let mut bytes = vec![0; 3 * UNIT];
        assert_eq!(found(0, &[]), []);
        assert_eq!(found(0, &bytes), [(0..3 * UNIT, true)]);
        bytes[UNIT] = 1;
        assert_eq!(
            found(0, &bytes),
            [(0..UNIT, true), (UNIT..2 * UNIT, false), (2 * UNIT..3 * UNIT, true)]
        );
        assert_eq!(
            found(512, &bytes),
            [
                (0..UNIT - 512, true),
                (UNIT - 512..2 * UNIT - 512, false),
                (2 * UNIT - 512..3 * UNIT, true)
            ]
        );
        assert_eq!(found(0, &bytes[UNIT..UNIT + 5]), [(0..5, false)]);
    }
}
