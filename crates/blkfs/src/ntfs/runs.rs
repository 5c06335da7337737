//! Data runs: where the clusters of an attribute are.

use crate::error::Result;
use crate::volume::Volume;

/// Consecutive clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The first cluster within the content.
    pub vcn: u64,
    /// The first cluster on the volume. `None` for a hole.
    pub lcn: Option<u64>,
    /// Number of clusters, not 0.
    pub length: u64,
}

/// Iterator over the runs that mapping pairs describe. After an error there are no more.
pub(super) struct Pairs<'a> {
    bytes: &'a [u8],
    vcn: u64,
    highest: u64,
    lcn: i64,
    clusters: u64,
    is_finished: bool,
}

impl<'a> Pairs<'a> {
    /// `vcn` is the first cluster within the content, `highest` the last one as stored, and `clusters` are on the volume.
    pub fn new(bytes: &'a [u8], vcn: u64, highest: u64, clusters: u64) -> Self {
        Self { bytes, vcn, highest, lcn: 0, clusters, is_finished: false }
    }

    /// Returns the next run, `Ok(None)` at the end.
    fn step(&mut self) -> std::result::Result<Option<Run>, &'static str> {
        let (header, rest) = self.bytes.split_first().ok_or("data runs without an end")?;
        if *header == 0 {
            // A part without clusters has -1, and some programs write 0.
            let is_complete = self.highest == 0 || self.vcn == self.highest.wrapping_add(1);
            return if is_complete { Ok(None) } else { Err("data runs of another length") };
        }
        let (length_size, delta_size) = (usize::from(header & 15), usize::from(header >> 4));
        if length_size > 8 || delta_size > 8 || rest.len() < length_size + delta_size {
            return Err("a data run with impossible sizes");
        }
        let (length, rest) = rest.split_at(length_size);
        let (delta, rest) = rest.split_at(delta_size);
        let length = u64::try_from(signed(length)).ok().filter(|length| *length > 0);
        let length = length.ok_or("a data run without a length")?;
        let next = self.vcn.checked_add(length).filter(|next| *next < 1 << 62);
        let next = next.ok_or("too long data runs")?;
        let lcn = if delta_size == 0 {
            None
        } else {
            self.lcn = self.lcn.checked_add(signed(delta)).ok_or("a data run out of range")?;
            let lcn = u64::try_from(self.lcn).map_err(|_| "a data run before the volume")?;
            let end = lcn.checked_add(length).filter(|end| *end <= self.clusters);
            end.ok_or("a data run past the end of the volume")?;
            Some(lcn)
        };
        let run = Run { vcn: self.vcn, lcn, length };
        (self.bytes, self.vcn) = (rest, next);
        Ok(Some(run))
    }
}

impl Iterator for Pairs<'_> {
    type Item = std::result::Result<Run, &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_finished {
            return None;
        }
        let run = self.step();
        self.is_finished = !matches!(run, Ok(Some(_)));
        run.transpose()
    }
}

/// Returns a number of up to 8 bytes, whose last bit is the sign.
fn signed(bytes: &[u8]) -> i64 {
    let is_negative = bytes.last().is_some_and(|last| last & 0x80 != 0);
    let mut whole = [if is_negative { 0xff } else { 0 }; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    i64::from_le_bytes(whole)
}

/// The content of an attribute in clusters.
#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    /// By cluster within the content, without gaps.
    runs: Vec<Run>,
    cluster: u64,
    /// Number of bytes that are stored. It is not longer than the runs.
    size: u64,
}

/// Bytes of a stream that are contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Offset on the volume. `None` in a hole.
    pub offset: Option<u64>,
    pub length: u64,
}

impl Stream {
    /// Makes an empty one, with clusters of `cluster` bytes.
    pub fn new(cluster: u64) -> Self {
        Self { cluster, ..Self::default() }
    }

    /// Appends the next part, whose runs begin where the last ones end.
    pub fn append(&mut self, pairs: Pairs<'_>) -> std::result::Result<(), &'static str> {
        for run in pairs {
            let run = run?;
            if run.vcn != self.clusters() {
                return Err("data runs with a gap");
            }
            if self.runs.len() == MAX_RUNS {
                return Err("too many data runs");
            }
            self.runs.push(run);
        }
        Ok(())
    }

    /// Sets the number of bytes that are stored, as far as there are clusters.
    pub fn set_size(&mut self, size: u64) {
        self.size = size.min(self.clusters().saturating_mul(self.cluster));
    }

    /// Returns the number of clusters, with holes.
    pub fn clusters(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.vcn + run.length)
    }

    /// Returns the number of clusters that are on the volume.
    pub fn stored_clusters(&self) -> u64 {
        let lengths = self.runs.iter().filter(|run| run.lcn.is_some()).map(|run| run.length);
        lengths.fold(0, u64::saturating_add)
    }

    /// Returns the number of bytes that are stored.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns where the bytes from `offset` on are, at most `length` and as far as there are clusters.
    pub fn places(&self, offset: u64, length: u64) -> impl Iterator<Item = Place> + '_ {
        let vcn = offset / self.cluster;
        let first = self.runs.partition_point(|run| run.vcn + run.length <= vcn);
        let end = offset.saturating_add(length);
        let cluster = self.cluster;
        self.runs[first..].iter().map_while(move |run| {
            let start = run.vcn.saturating_mul(cluster).max(offset);
            let stop = (run.vcn + run.length).saturating_mul(cluster).min(end);
            let length = stop.checked_sub(start).filter(|length| *length > 0)?;
            let offset = run.lcn.map(|lcn| lcn * cluster + (start - run.vcn * cluster));
            Some(Place { offset, length })
        })
    }

    /// Fills `bytes` from `offset` on, with zeros in holes and where there are no clusters.
    pub fn read_into(&self, volume: &Volume, bytes: &mut [u8], offset: u64) -> Result<()> {
        let mut rest = &mut *bytes;
        for place in self.places(offset, rest.len() as u64) {
            let (part, next) = rest.split_at_mut(place.length as usize);
            match place.offset {
                Some(offset) => volume.read_into(part, offset)?,
                None => part.fill(0),
            }
            rest = next;
        }
        rest.fill(0);
        Ok(())
    }
}

/// Maximum number of runs of a structure of the file system. Files have any number.
/// Limit in runs.
const MAX_RUNS: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn run(vcn: u64, lcn: impl Into<Option<u64>>, length: u64) -> Run {
        Run { vcn, lcn: lcn.into(), length }
    }

    fn decode(bytes: &[u8], highest: u64) -> std::result::Result<Vec<Run>, &'static str> {
        Pairs::new(bytes, 0, highest, 0x2000).collect()
    }

    #[test]
    fn pairs() {
        let bytes = [0x21, 0x18, 0x34, 0x12, 0x01, 0x10, 0x11, 0x08, 0xf0, 0];
        let runs = [run(0, 0x1234, 0x18), run(0x18, None, 0x10), run(0x28, 0x1224, 8)];
        assert_eq!(decode(&bytes, 0x2f), Ok(runs.to_vec()));
        assert_eq!(decode(&bytes, 0x30), Err("data runs of another length"));
        assert_eq!(decode(&[0], u64::MAX), Ok(vec![]));
        assert_eq!(decode(&bytes[..9], 0x2f), Err("data runs without an end"));
        for bad in [
            &[0x01, 0][..],
            &[0x01, 0x80],
            &[0x11, 1, 0xff],
            &[0x21, 1, 0, 0x20],
            &[0x19],
            &[0x91],
            &[0x10, 5],
        ] {
            assert!(decode(bad, 0).is_err(), "{bad:?}");
        }
        let huge = [0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0];
        assert!(decode(&huge, 0).is_err());
    }

    #[test]
    fn places() {
        let mut stream = Stream::new(512);
        stream.append(Pairs::new(&[0x11, 2, 100, 0x01, 1, 0x11, 3, 50, 0], 0, 0, 1000)).unwrap();
        assert_eq!((stream.clusters(), stream.stored_clusters()), (6, 5));
        let found: Vec<_> = stream.places(600, 2000).collect();
        let place = |offset: Option<u64>, length| Place { offset, length };
        let expected = [place(Some(51_800), 424), place(None, 512), place(Some(76_800), 1064)];
        assert_eq!(found, expected);
        assert_eq!(stream.places(3000, 1000).collect::<Vec<_>>(), [place(Some(78_264), 72)]);
        assert_eq!(stream.places(4000, 1000).count(), 0);
    }
}
