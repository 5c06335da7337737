//! What two sources share on a volume, found without reading it.
//!
//! A file system may move extents while they are compared: the address that one source had may be of other bytes when
//! the other source is asked. So the sources are asked in turns, twice each, and a run is shared only if its place was the
//! same in all answers. A change of the bytes is found by [`Source::check_unchanged`] at the end of the pass.

use std::ops::Range;

use blkimage::{Dirty, Origin, OriginKind, Source};

use crate::Error;

/// Two sources on one volume, and the ranges that they share in a window.
pub(super) struct OnVolume<'a> {
    sources: [&'a dyn Source; 2],
    size: u64,
    window: Range<u64>,
    /// In order.
    shared: Vec<Range<u64>>,
    effort: Effort,
}

/// How much is asked about fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effort {
    /// A query must not take longer than reading, so that few parts of a file with many fragments are asked about.
    Fast,
    /// Nothing is read, so all parts are asked about.
    Complete,
}

impl<'a> OnVolume<'a> {
    /// Returns `None` if no volume has files of both sources.
    pub fn new(left: &'a dyn Source, right: &'a dyn Source, effort: Effort) -> Option<Self> {
        let volumes = left.volumes();
        let has_common =
            !volumes.is_empty() && right.volumes().iter().any(|volume| volumes.contains(volume));
        has_common.then(|| Self {
            sources: [left, right],
            size: left.size().min(right.size()),
            window: 0..0,
            shared: Vec::new(),
            effort,
        })
    }

    /// Returns whether the sources share the byte at `offset`, and for how many bytes this is true, at most `limit`. The
    /// offset is at or after the last call's, and below the size of both.
    pub fn is_shared(&mut self, offset: u64, limit: u64) -> Result<(bool, u64), Error> {
        if offset >= self.window.end {
            self.look_ahead(offset)?;
        }
        let next = self.shared.partition_point(|range| range.end <= offset);
        let (is_shared, end) = match self.shared.get(next) {
            Some(range) if range.start <= offset => (true, range.end),
            Some(range) => (false, range.start),
            None => (false, self.window.end),
        };
        Ok((is_shared, (end - offset).min(limit)))
    }

    /// Moves the window to `offset`, and after fragments over what is not worth a query.
    fn look_ahead(&mut self, offset: u64) -> Result<(), Error> {
        self.look(offset)?;
        let length = self.window.end - offset;
        if self.effort == Effort::Fast && length < FRAGMENTED {
            self.window.end = self.window.end.saturating_add(SKIPPED * length).min(self.size);
        }
        Ok(())
    }

    /// Moves the window to `offset`.
    fn look(&mut self, offset: u64) -> Result<(), Error> {
        self.window = offset..offset.saturating_add(WINDOW).min(self.size);
        self.shared.clear();
        let [left, right] = self.sources;
        let mut common = self.places(left, Dirty::Ignore)?;
        for (source, dirty) in
            [(right, Dirty::Ignore), (left, Dirty::WriteBack), (right, Dirty::WriteBack)]
        {
            // Files that share nothing are asked once, and not written back.
            if common.is_empty() {
                return Ok(());
            }
            common = both(&common, &self.places(source, dirty)?);
        }
        self.shared = common.iter().map(|run| run.offset..run.end()).collect();
        Ok(())
    }

    /// Returns the runs in the window that have a place. The window ends where the answer ends.
    fn places(&mut self, source: &dyn Source, dirty: Dirty) -> Result<Vec<Origin>, Error> {
        let Range { start, end } = self.window;
        let mut runs = source.volume_origins(start, end - start, dirty)?;
        let mut position = start;
        for run in &runs {
            let limit = end - position;
            if run.offset != position || run.length == 0 || run.length > limit {
                return Err(Error::Extent { offset: run.offset, length: run.length, limit });
            }
            position = run.end();
        }
        if position == start {
            return Err(Error::Extent { offset: start, length: 0, limit: end - start });
        }
        self.window.end = position;
        runs.retain(|run| matches!(run.kind, OriginKind::Stored(_)));
        Ok(runs)
    }
}

/// Returns the runs that have one place in both lists, which are in order.
fn both(one: &[Origin], other: &[Origin]) -> Vec<Origin> {
    let mut runs = Vec::new();
    let (mut ones, mut others) = (one.iter().peekable(), other.iter().peekable());
    while let (Some(a), Some(b)) = (ones.peek(), others.peek()) {
        let (start, end) = (a.offset.max(b.offset), a.end().min(b.end()));
        let kind = a.kind.advanced(start.saturating_sub(a.offset));
        if start < end && kind == b.kind.advanced(start - b.offset) {
            runs.push(Origin { offset: start, length: end - start, kind });
        }
        if a.end() <= b.end() {
            ones.next();
        } else {
            others.next();
        }
    }
    runs
}

/// Maximum length of a window in bytes. A file without many fragments takes a few queries for each.
const WINDOW: u64 = 1 << 30;

/// Length of a window in bytes below which the answer was cut off because of many fragments. A query of an extent takes as long
/// as reading some 16 KiB from the page cache.
const FRAGMENTED: u64 = 16 << 20;

/// How many times the length of a window with many fragments is not asked about after it.
const SKIPPED: u64 = 63;

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, OnceLock};

    use blkimage::{Extent, ExtentKind, Memory, OpenOptions, Result};

    use super::*;

    /// A source that gives prepared answers, the last one first.
    struct Scripted(Mutex<Vec<Vec<Origin>>>);

    impl Source for Scripted {
        fn size(&self) -> u64 {
            1000
        }

        fn extent(&self, offset: u64, limit: u64) -> Result<Extent> {
            Ok(Extent { offset, length: limit, kind: ExtentKind::Data })
        }

        fn read_exact_at(&self, _: &mut [u8], _: u64) -> Result<()> {
            panic!("nothing is read");
        }

        fn volume_origins(&self, _: u64, _: u64, _: Dirty) -> Result<Vec<Origin>> {
            Ok(self.0.lock().unwrap().pop().expect("an answer"))
        }
    }

    /// Returns an answer for `(length, place)`, where the places belong to bytes in one file.
    fn answer(runs: &[(u64, Option<u64>)]) -> Vec<Origin> {
        let mut offset = 0;
        let place = |address: u64| first_place().advanced(address);
        let origins = runs.iter().map(|&(length, address)| {
            let kind = address.map_or(OriginKind::Other, place);
            offset += length;
            Origin { offset: offset - length, length, kind }
        });
        origins.collect()
    }

    fn first_place() -> OriginKind {
        static PLACE: OnceLock<OriginKind> = OnceLock::new();
        *PLACE.get_or_init(|| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), [1; 5000]).unwrap();
            let image = OpenOptions::new().open(file.path()).unwrap();
            image.origin(0, 5000).unwrap().kind
        })
    }

    /// Returns the shared ranges of the first window, and its end.
    fn shared(
        left: &[&[(u64, Option<u64>)]],
        right: &[&[(u64, Option<u64>)]],
    ) -> (Vec<Range<u64>>, u64) {
        let script = |answers: &[&[(u64, Option<u64>)]]| {
            Scripted(Mutex::new(answers.iter().rev().map(|it| answer(it)).collect()))
        };
        let sources = [script(left), script(right)];
        let [left, right] = &sources;
        let nothing = Vec::new();
        let mut found = OnVolume {
            sources: [left, right],
            size: 1000,
            window: 0..0,
            shared: nothing,
            effort: Effort::Complete,
        };
        found.look(0).unwrap();
        assert!(
            sources.iter().all(|source| source.0.lock().unwrap().is_empty()),
            "asked too seldom"
        );
        (found.shared, found.window.end)
    }

    #[test]
    fn runs_with_one_place_are_shared() {
        let one = [(100, Some(0)), (100, None), (800, Some(2000))];
        let other = [(50, Some(0)), (150, Some(3000)), (10, None), (790, Some(2010))];
        let expected = (vec![0..50, 210..1000], 1000);
        assert_eq!(shared(&[&one, &one], &[&other, &other]), expected);
        assert_eq!(shared(&[&other, &other], &[&one, &one]), expected);
        // Another place at the same offset of the guest.
        assert_eq!(shared(&[&[(1000, Some(0))]], &[&[(1000, Some(1))]]).0, []);
        // Nothing is shared, so that the other side is not asked.
        assert_eq!(shared(&[&[(1000, None)]], &[]), (vec![], 1000));
    }

    #[test]
    fn the_shortest_answer_ends_the_window() {
        let long = [(1000, Some(0))];
        let short = [(300, Some(0)), (100, Some(300))];
        assert_eq!(shared(&[&long, &short], &[&long[..], &short]), (vec![0..300, 300..400], 400));
        assert_eq!(shared(&[&[(300, None)]], &[]), (vec![], 300));
    }

    #[test]
    fn places_that_change_meanwhile_are_not_shared() {
        let (here, there) = (&[(1000, Some(0))], &[(1000, Some(2000))]);
        let whole = std::iter::once(0..1000);
        assert!(shared(&[here, here], &[here, here]).0.into_iter().eq(whole));
        assert_eq!(shared(&[here, here], &[here, there]).0, []);
        assert_eq!(shared(&[here, there], &[here]).0, []);
        assert_eq!(shared(&[there], &[here]).0, []);
        let half = &[(500, Some(0)), (500, Some(2000))];
        let first = std::iter::once(0..500);
        assert!(shared(&[here, half], &[here, here]).0.into_iter().eq(first));
    }

    #[test]
    fn answers_that_do_not_follow_each_other_are_errors() {
        for runs in [vec![], vec![(10, Some(0)), (0, None)], vec![(1001, Some(0))]] {
            let source = Scripted(Mutex::new(vec![answer(&runs)]));
            let mut found = OnVolume {
                sources: [&source; 2],
                size: 1000,
                window: 0..0,
                shared: Vec::new(),
                effort: Effort::Complete,
            };
            assert!(matches!(found.look(0), Err(Error::Extent { .. })), "{runs:?}");
        }
    }

    #[test]
    fn sources_without_volumes_are_not_asked() {
        let image = OpenOptions::new().open_storage(Box::new(Memory(vec![0; 10])), "x").unwrap();
        assert!(OnVolume::new(&image, &image, Effort::Fast).is_none());
    }

    #[test]
    fn behind_fragments_nothing_is_asked_for_a_while() {
        let part = [(10, Some(0))];
        let script = || Scripted(Mutex::new(vec![answer(&part); 2]));
        let sources = [script(), script()];
        let [left, right] = &sources;
        let mut found = OnVolume {
            sources: [left, right],
            size: 1000,
            window: 0..0,
            shared: Vec::new(),
            effort: Effort::Fast,
        };
        assert_eq!(found.is_shared(0, 100).unwrap(), (true, 10));
        assert_eq!(found.is_shared(10, 100).unwrap(), (false, 100));
        assert_eq!(found.is_shared(600, 100).unwrap(), (false, 40));
    }
}
