//! Verifies all checksums of a btrfs file system on one or more devices or images: `cargo run --example verify IMAGE...`.

use std::error::Error;
use std::ops::ControlFlow;
use std::sync::Arc;

use blkbtrfs::{Device, FileSystem, Options, verify};
use blkimage::OpenOptions;

fn main() -> Result<(), Box<dyn Error>> {
    let mut devices = Vec::new();
    for name in std::env::args().skip(1) {
        let image = OpenOptions::new().open(&name)?;
        devices.push(Device { name, source: Arc::new(image) });
    }
    let file_system = FileSystem::open(devices)?;
    let watch = |_| ControlFlow::Continue(());
    let summary = verify(&file_system, &Options::default(), &watch, &|finding| {
        println!("{:?}: {} bytes", finding.subject, finding.length);
    })?;
    match summary.is_clean() && summary.is_complete() {
        true => Ok(()),
        false => Err("not all checksums match, or not all could be compared".into()),
    }
}
