//! Lists the extents of the content of an image, like `qemu-img map`: `cargo run --example extents IMAGE`.

use std::error::Error;

use blkimage::{ExtentKind, OpenOptions, Source};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: extents IMAGE")?;
    let image = OpenOptions::new().open(&path)?;
    println!("{} bytes, {}", image.size(), image.format());
    let mut offset = 0;
    while offset < image.size() {
        let extent = image.extent(offset, image.size() - offset)?;
        let kind = if extent.kind == ExtentKind::Zero { "zero" } else { "data" };
        println!("{offset:>15} {:>15}  {kind}", extent.length);
        offset += extent.length;
    }
    Ok(())
}
