//! Changes any bytes of the structures of real vpc images.

#![no_main]

mod guest_view;

use blkimage::Format;
use guest_view::{Seeds, check_changed, seeds};
use libfuzzer_sys::fuzz_target;

static SEEDS: Seeds = Seeds::new(|| seeds("vpc", &["", "subformat=fixed", "force_size=on"]));

fuzz_target!(|data: &[u8]| check_changed(&SEEDS, data, Format::Vpc, |_| {}));
