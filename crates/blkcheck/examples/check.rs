//! Verifies the checksums that an image holds of itself, as `blkhash check` does: `cargo run --example check IMAGE`.

use std::error::Error;
use std::ops::ControlFlow;
use std::sync::Arc;

use blkcheck::{Options, check};
use blkimage::{OpenOptions, Source};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: check IMAGE")?;
    let disk: Arc<dyn Source> = Arc::new(OpenOptions::new().open(&path)?);
    let report = check(&disk, &Options::default(), &|_| ControlFlow::Continue(()), &mut ())?;
    for row in &report.rows {
        println!("{}: {}, {:?}", row.place, row.kind, row.verdict());
    }
    Ok(())
}
