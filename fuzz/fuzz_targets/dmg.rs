//! Opens any bytes as an Apple disk image.

#![no_main]

mod guest_view;

use blkimage::Format;
use guest_view::check;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| check(data, Format::Dmg));
