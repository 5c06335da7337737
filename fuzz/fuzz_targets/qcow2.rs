//! Opens any bytes as a qcow2 image.

#![no_main]

mod guest_view;

use blkimage::Format;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| guest_view::check(data, Format::Qcow2));
