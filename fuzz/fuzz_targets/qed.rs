//! Changes any bytes of the structures of real qed images.

#![no_main]

mod guest_view;

use blkimage::Format;
use guest_view::{Seeds, check_changed, seeds};
use libfuzzer_sys::fuzz_target;

static SEEDS: Seeds = Seeds::new(|| seeds("qed", &["", "cluster_size=4096,table_size=2"]));

fuzz_target!(|data: &[u8]| check_changed(&SEEDS, data, Format::Qed, |_| {}));
