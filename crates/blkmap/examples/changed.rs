//! Lists the blocks in which two maps differ, as `blkhash map diff` does: `cargo run --example changed OLD NEW`.

use std::error::Error;
use std::fs::File;

use blkhash::Comparison;
use blkmap::{Map, Report, diff};

fn main() -> Result<(), Box<dyn Error>> {
    let mut paths = std::env::args_os().skip(1);
    let (old, new) = paths.next().zip(paths.next()).ok_or("usage: changed OLD NEW")?;
    let (old, new) = (Map::open(File::open(old)?)?, Map::open(File::open(new)?)?);
    let block_size = u64::from(old.header().block_size);
    let mut print = |first, count, comparison| {
        if !matches!(comparison, Comparison::Equal | Comparison::Zeros) {
            println!("{:>15} {:>15}  {comparison:?}", first * block_size, count * block_size);
        }
    };
    diff(&old, &new, Report::new(&mut print))?;
    Ok(())
}
