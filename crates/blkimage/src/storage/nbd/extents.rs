//! Extents that the server reports, checked and cached.
//!
//! One reply describes many extents, which are kept until a lookup misses them. The size of the next
//! request follows from the number of extents in the last reply.

use std::borrow::Cow;
use std::ffi::{CStr, CString};
use std::ops::Range;

use super::library::ExtentSink;
use crate::{Extent, ExtentKind};

/// A metadata context of servers, and the interpretation of its flags.
#[derive(Clone, Debug)]
pub(super) struct MetaContext {
    pub name: Cow<'static, CStr>,
    pub kind: fn(flags: u64) -> ExtentKind,
}

/// Allocation. A hole means that nothing is allocated, not that it reads as zeros.
pub(super) const ALLOCATION: MetaContext = MetaContext {
    name: Cow::Borrowed(c"base:allocation"),
    kind: |flags| if flags & STATE_ZERO != 0 { ExtentKind::Zero } else { ExtentKind::Data },
};

impl MetaContext {
    /// Returns the context of a bitmap, whose data is what changed. Returns `None` if no context has this name.
    pub fn of_bitmap(name: &str) -> Option<Self> {
        let name = CString::new(format!("qemu:dirty-bitmap:{name}")).ok()?;
        let kind =
            |flags| if flags & STATE_DIRTY != 0 { ExtentKind::Data } else { ExtentKind::Zero };
        Some(Self { name: name.into(), kind })
    }
}

/// The server's reply to one request.
#[derive(Debug)]
pub(super) struct Answer {
    context: MetaContext,
    asked: Range<u64>,
    size: u64,
    /// Extents without gaps. Neighbours differ in kind.
    extents: Vec<Extent>,
    count: usize,
    is_cut: bool,
    fault: Option<&'static str>,
}

impl Answer {
    /// Creates an empty reply about `asked`, a range of an export of `size` bytes.
    pub fn new(context: MetaContext, asked: Range<u64>, size: u64) -> Self {
        let (extents, count, is_cut, fault) = Default::default();
        Self { context, asked, size, extents, count, is_cut, fault }
    }

    /// Returns the error in the complete reply, if any.
    pub fn fault(&self) -> Option<&'static str> {
        self.fault.or(if self.count == 0 { Some("holds none") } else { None })
    }

    fn try_add(
        &mut self,
        entries: &mut dyn Iterator<Item = (u64, u64)>,
    ) -> Result<(), &'static str> {
        if self.count > 0 {
            return Err("comes twice");
        }
        let mut position = self.asked.start;
        for (length, flags) in entries {
            self.count += 1;
            if length == 0 {
                return Err("has one without a length");
            }
            if position >= self.asked.end {
                return Err("has more than was asked for");
            }
            let end = position.checked_add(length).filter(|end| *end <= self.size);
            let end = end.ok_or("has one past the end of the export")?;
            self.push(Extent { offset: position, length, kind: (self.context.kind)(flags) });
            position = end;
        }
        Ok(())
    }

    fn push(&mut self, extent: Extent) {
        let is_full = self.extents.len() == MAX_KNOWN;
        match self.extents.last_mut() {
            _ if self.is_cut => {}
            Some(last) if last.kind == extent.kind => last.length += extent.length,
            _ if is_full => self.is_cut = true,
            _ => self.extents.push(extent),
        }
    }
}

impl ExtentSink for Answer {
    fn extents(
        &mut self,
        context: &[u8],
        offset: u64,
        entries: &mut dyn Iterator<Item = (u64, u64)>,
    ) -> u64 {
        if context != self.context.name.to_bytes() || offset != self.asked.start {
            return 0;
        }
        self.fault = self.fault.or(self.try_add(entries).err());
        let end = self.extents.last().map_or(self.asked.start, Extent::end);
        end.min(self.asked.end) - self.asked.start
    }
}

/// The extents of the last reply.
#[derive(Debug)]
pub(super) struct ExtentCache {
    size: u64,
    /// Requests start and end at multiples of this, or at the end of the export.
    alignment: u64,
    known: Vec<Extent>,
    /// Size of the next request in bytes.
    window: u64,
    max_window: u64,
    /// Offset from which on the server reports no extents.
    lost: u64,
}

impl ExtentCache {
    pub fn new(size: u64, alignment: u64, has_long_status: bool) -> Self {
        let max_window = if has_long_status { MAX_LONG_WINDOW } else { MAX_SHORT_WINDOW };
        Self { size, alignment, known: Vec::new(), window: FIRST_WINDOW, max_window, lost: size }
    }

    /// Returns the extent from `offset` to its end, if it is known.
    pub fn find(&self, offset: u64) -> Option<Extent> {
        if offset >= self.lost {
            let length = self.size.checked_sub(offset)?;
            return Some(Extent { offset, length, kind: ExtentKind::Data });
        }
        let index = self.known.partition_point(|extent| extent.end() <= offset);
        let known = self.known.get(index).filter(|extent| extent.offset <= offset)?;
        Some(Extent { offset, length: known.end() - offset, ..*known })
    }

    /// Returns the range to request for the extent at `offset`.
    pub fn request(&self, offset: u64) -> Range<u64> {
        let start = offset / self.alignment * self.alignment;
        start..start.saturating_add(self.window).min(self.size)
    }

    /// Replaces the known extents by the extents of a reply.
    pub fn store(&mut self, answer: Answer) {
        let asked = answer.asked.end - answer.asked.start;
        let window = match answer.extents.last() {
            Some(last) if answer.is_cut => last.end() - answer.asked.start,
            Some(last) if last.end() < answer.asked.end => asked,
            _ if answer.count > MANY => asked / 2,
            _ => asked.saturating_mul(2),
        };
        let window = window.clamp(MIN_WINDOW, self.max_window) / self.alignment * self.alignment;
        // The last request before the end was cut short and says nothing about the size.
        self.window = if answer.asked.end == self.size { self.window } else { window };
        self.known = answer.extents;
    }

    /// Records that the server reports no extents from `offset` on.
    pub fn lose(&mut self, offset: u64) {
        self.lost = self.lost.min(offset);
    }
}

/// `LIBNBD_STATE_ZERO` in libnbd.h.
const STATE_ZERO: u64 = 2;

/// `STATE_DIRTY` in docs/interop/nbd.rst of QEMU.
const STATE_DIRTY: u64 = 1;

/// Maximum number of extents of a reply, which take 1.5 MiB.
/// Limit in extents.
const MAX_KNOWN: usize = 64 << 10;

/// Number of extents in a reply above which the next request is smaller.
const MANY: usize = 4 << 10;

/// Size of the first request in bytes: enough work for all threads, and a quick reply.
const FIRST_WINDOW: u64 = 128 << 20;

/// Minimum size of a request in bytes, a multiple of every alignment.
const MIN_WINDOW: u64 = 1 << 20;

/// Maximum size of a request with 32 bits, at the largest alignment of the protocol.
const MAX_SHORT_WINDOW: u64 = (1 << 32) - (64 << 10);

/// Maximum size of a request with 64 bits. An empty export of any size takes few requests.
const MAX_LONG_WINDOW: u64 = 1 << 50;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ZERO: u64 = 3;
    const DATA: u64 = 0;

    fn answer(asked: Range<u64>, size: u64, entries: &[(u64, u64)]) -> Answer {
        let mut answer = Answer::new(ALLOCATION, asked.clone(), size);
        answer.extents(b"base:allocation", asked.start, &mut entries.iter().copied());
        answer
    }

    #[test]
    fn only_the_zero_flag_means_zeros() {
        let kind = ALLOCATION.kind;
        assert_eq!([0, 1, 4, 9].map(kind), [ExtentKind::Data; 4]);
        assert_eq!([2, 3, 6].map(kind), [ExtentKind::Zero; 3]);
    }

    #[test]
    fn faults() {
        let fault = |entries: &[(u64, u64)]| answer(100..200, 250, entries).fault();
        assert_eq!(fault(&[(100, DATA)]), None);
        assert_eq!(fault(&[(10, DATA)]), None);
        assert_eq!(fault(&[(10, DATA), (140, ZERO)]), None);
        assert_eq!(fault(&[]), Some("holds none"));
        assert_eq!(fault(&[(10, DATA), (0, ZERO)]), Some("has one without a length"));
        assert_eq!(fault(&[(100, DATA), (1, ZERO)]), Some("has more than was asked for"));
        let past = Some("has one past the end of the export");
        assert_eq!(fault(&[(10, DATA), (141, ZERO)]), past);
        assert_eq!(fault(&[(10, DATA), (u64::MAX, ZERO)]), past);
    }

    #[test]
    fn other_contexts_and_ranges_are_ignored() {
        let mut other = Answer::new(ALLOCATION, 0..100, 100);
        other.extents(b"qemu:dirty-bitmap:b", 0, &mut [(100, ZERO)].into_iter());
        other.extents(b"base:allocation", 10, &mut [(90, ZERO)].into_iter());
        assert_eq!(other.fault(), Some("holds none"));
        let mut twice = answer(0..100, 100, &[(100, DATA)]);
        twice.extents(b"base:allocation", 0, &mut [(100, ZERO)].into_iter());
        assert_eq!(twice.fault(), Some("comes twice"));
    }

    #[test]
    fn a_flood_of_extents_is_bounded_and_makes_requests_smaller() {
        let size = 1 << 40;
        let mut cache = ExtentCache::new(size, 512, false);
        let asked = cache.request(0);
        let entries: Vec<_> = (0..asked.end / 512).map(|i| (512, i % 2 * 2)).collect();
        let flood = answer(asked, size, &entries);
        assert_eq!((flood.fault(), flood.extents.len()), (None, MAX_KNOWN));
        cache.store(flood);
        assert_eq!(cache.request(0).end, MAX_KNOWN as u64 * 512);
        assert_eq!(cache.find(MAX_KNOWN as u64 * 512), None);
    }

    #[test]
    fn empty_exports_take_few_requests() {
        for (has_long_status, most) in [(false, 2100), (true, 30)] {
            let size = 8 << 40;
            let mut cache = ExtentCache::new(size, 512, has_long_status);
            let (mut offset, mut requests) = (0, 0);
            while offset < size {
                let asked = cache.request(offset);
                let length = asked.end - offset;
                assert!(has_long_status || length < 1 << 32);
                cache.store(answer(asked, size, &[(length, ZERO)]));
                offset = cache.find(offset).unwrap().end();
                requests += 1;
            }
            assert!(requests <= most, "{requests}");
        }
    }

    #[test]
    fn unreported_ranges_are_data() {
        let mut cache = ExtentCache::new(1000, 1, false);
        cache.store(answer(0..1000, 1000, &[(400, ZERO)]));
        cache.lose(400);
        assert_eq!(cache.find(399).unwrap().kind, ExtentKind::Zero);
        let lost = Extent { offset: 500, length: 500, kind: ExtentKind::Data };
        assert_eq!(cache.find(500), Some(lost));
    }

    proptest! {
        /// A walk over the extents matches the bytes, however few extents a reply contains.
        #[test]
        fn walks_see_what_the_server_has(
            lengths in prop::collection::vec((1u64..2000, 0u64..4), 1..60),
            alignment in (0u32..10).prop_map(|bits| 1u64 << bits),
            most in 1usize..8,
            overrun: bool,
        ) {
            let bytes: Vec<u64> = lengths.iter()
                .flat_map(|(length, flags)| vec![*flags; *length as usize]).collect();
            let size = bytes.len() as u64;
            let mut cache = ExtentCache::new(size, alignment, false);
            cache.window = 1024;
            let mut offset = 0;
            while offset < size {
                let Some(extent) = cache.find(offset) else {
                    let asked = cache.request(offset);
                    prop_assert!(asked.start.is_multiple_of(alignment) && asked.contains(&offset));
                    let limit = if overrun { size } else { asked.end };
                    let rest = &bytes[asked.start as usize..limit as usize];
                    let mut entries: Vec<(u64, u64)> = Vec::new();
                    let mut told = 0;
                    for run in rest.chunk_by(|a, b| a == b) {
                        let wanted = asked.start + told < asked.end;
                        if wanted && (entries.len() < most || asked.start + told <= offset) {
                            entries.push((run.len() as u64, run[0]));
                            told += run.len() as u64;
                        }
                    }
                    let answer = answer(asked, size, &entries);
                    prop_assert_eq!(answer.fault(), None);
                    cache.store(answer);
                    prop_assert!(cache.find(offset).is_some());
                    continue;
                };
                prop_assert!(extent.length > 0 && extent.end() <= size);
                for byte in &bytes[offset as usize..extent.end() as usize] {
                    prop_assert_eq!(extent.kind, (ALLOCATION.kind)(*byte));
                }
                offset = extent.end();
            }
        }
    }
}
