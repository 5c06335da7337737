//! Changes any bytes of the structures of real vmdk images.

#![no_main]

mod guest_view;

use blkimage::Format;
use guest_view::{Seeds, check_changed, seeds};
use libfuzzer_sys::fuzz_target;

static SEEDS: Seeds =
    Seeds::new(|| seeds("vmdk", &["", "subformat=monolithicSparse,zeroed_grain=on"]));

fuzz_target!(|data: &[u8]| check_changed(&SEEDS, data, Format::Vmdk, |_| {}));
