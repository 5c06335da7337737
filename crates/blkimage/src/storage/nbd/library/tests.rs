use super::functions::LongExtent;
use super::*;

/// A reported context, its offset and its entries.
type Told = (Vec<u8>, u64, Vec<(u64, u64)>);

#[derive(Default)]
struct Seen(Vec<Told>);

impl ExtentSink for Seen {
    fn extents(
        &mut self,
        context: &[u8],
        offset: u64,
        entries: &mut dyn Iterator<Item = (u64, u64)>,
    ) -> u64 {
        self.0.push((context.to_owned(), offset, entries.collect()));
        0
    }
}

/// Calls the callback for 64 bits as a newer library does, and the one for 32 bits.
#[test]
fn extents_of_both_sizes() {
    let tracker = Arc::new(Tracker::default());
    let status = Arc::new(Status::new(&tracker, Seen::default()));
    tracker.start();
    let long = Callback::<OnExtents<_>>::new(on_extents_64::<Seen>, &status);
    let short = Callback::<OnExtents<_>>::new(on_extents::<Seen>, &status);
    let completed = Callback::<OnCompletion>::new(on_status_completed::<Seen>, &status);
    let mut pairs = [LongExtent { length: 1 << 40, flags: 3 }, LongExtent { length: 9, flags: 0 }];
    let mut numbers = [512u32, 2, 7, 0];
    let (name, mut errno) = (c"base:allocation".as_ptr(), 0);
    // SAFETY: the data belongs to the callbacks, and the arrays have the given lengths.
    unsafe {
        (long.callback.unwrap())(long.data, name, 5, pairs.as_mut_ptr(), 2, &raw mut errno);
        (long.callback.unwrap())(long.data, name, 6, std::ptr::null_mut(), 0, &raw mut errno);
        (short.callback.unwrap())(short.data, name, 7, numbers.as_mut_ptr(), 4, &raw mut errno);
        errno = 22;
        for _ in 0..2 {
            (completed.callback.unwrap())(completed.data, &raw mut errno);
        }
        (long.free.unwrap())(long.data);
        (short.free.unwrap())(short.data);
        (completed.free.unwrap())(completed.data);
    }
    assert_eq!(tracker.pending(), 0);
    let (seen, errno) = status.take();
    let context = b"base:allocation".to_vec();
    let expected = [
        (context.clone(), 5, vec![(1 << 40, 3), (9, 0)]),
        (context.clone(), 6, vec![]),
        (context, 7, vec![(512, 2), (7, 0)]),
    ];
    assert_eq!((seen.unwrap().0, errno), (expected.to_vec(), 22));
    assert_eq!(Arc::strong_count(&status), 1);
}
