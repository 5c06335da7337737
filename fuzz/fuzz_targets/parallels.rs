//! Changes any bytes of the structures of real parallels images.

#![no_main]

mod guest_view;

use blkimage::Format;
use guest_view::{Seeds, check_changed, seeds};
use libfuzzer_sys::fuzz_target;

static SEEDS: Seeds = Seeds::new(|| seeds("parallels", &["", "cluster_size=65536"]));

fuzz_target!(|data: &[u8]| check_changed(&SEEDS, data, Format::Parallels, |_| {}));
