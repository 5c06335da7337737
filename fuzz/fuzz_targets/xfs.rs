//! Changes any bytes of the structures of XFS. Owners, names and findings must not depend
//! on what is wanted, and look-ups must be what a plain search finds.

#![no_main]

mod disk;
#[path = "disk/file_system.rs"]
mod file_system;

use disk::{Disk, Disks};
use libfuzzer_sys::fuzz_target;

static DISKS: Disks = Disks::new(|| {
    let encoded: [&[u8]; 2] =
        [include_bytes!("../images/xfs5.z"), include_bytes!("../images/xfs4.z")];
    encoded.map(Disk::new).into()
});

fuzz_target!(|data: &[u8]| file_system::check(&DISKS, data));
