//! Writes a map or an index of another program in another format: `cargo run --example convert INDEX FORMAT > FILE`.

use std::error::Error;
use std::fs::File;
use std::io::{self, Write};

use blkindex::Format;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1);
    let (name, format) = args.next().zip(args.next()).ok_or("usage: convert INDEX FORMAT")?;
    let named = |it: &&Format| format == it.name();
    let format = *Format::ALL.iter().find(named).ok_or("no such format")?;
    let opened = blkindex::open(File::open(&name)?, &name)?;
    let mut stdout = io::stdout().lock();
    blkindex::export(&opened.map, format, &mut stdout)?;
    stdout.flush()?;
    Ok(())
}
