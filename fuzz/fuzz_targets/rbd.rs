//! Opens any bytes as an export of Ceph RBD.

#![no_main]

mod guest_view;

use blkimage::Format;
use guest_view::check;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| check(data, Format::Rbd));
