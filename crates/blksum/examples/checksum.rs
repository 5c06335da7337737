//! Prints checksums of images with their progress in bytes, as `blksum` does: `cargo run --example checksum IMAGE...`.

use std::error::Error;
use std::path::Path;

use blkhash::Parameters;
use blkimage::OpenOptions;
use blksum::{Progress, Tuning, checksum};

fn main() -> Result<(), Box<dyn Error>> {
    for path in std::env::args_os().skip(1) {
        let path = Path::new(&path);
        let image = OpenOptions::new().open(path)?;
        let progress = Progress::new();
        let digest = checksum(&image, &Parameters::default(), &Tuning::default(), &progress)?;
        println!("{digest}  {}", path.display());
        eprintln!("{} of {} bytes are data", progress.data(), progress.done());
    }
    Ok(())
}
