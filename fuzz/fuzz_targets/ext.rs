//! Changes any bytes of the structures of ext2, ext3 and ext4. Owners, names and findings must not depend
//! on what is wanted, and look-ups must be what a plain search finds.

#![no_main]

mod disk;
#[path = "disk/file_system.rs"]
mod file_system;

use disk::{Disk, Disks};
use libfuzzer_sys::fuzz_target;

static DISKS: Disks = Disks::new(|| {
    let encoded: [&[u8]; 6] = [
        include_bytes!("../images/ext4.z"),
        include_bytes!("../images/ext4_features.z"),
        include_bytes!("../images/ext4_journal.z"),
        include_bytes!("../images/ext3.z"),
        include_bytes!("../images/ext2.z"),
        include_bytes!("../images/journal_device.z"),
    ];
    encoded.map(Disk::new).into()
});

fuzz_target!(|data: &[u8]| file_system::check(&DISKS, data));
