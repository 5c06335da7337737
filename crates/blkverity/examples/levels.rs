//! Prints where the hash tree of dm-verity has its levels for data of a size: `cargo run --example levels BYTES`.

use std::error::Error;

use blkverity::{StoredTree, Superblock};

fn main() -> Result<(), Box<dyn Error>> {
    let bytes: u64 = std::env::args().nth(1).ok_or("usage: levels BYTES")?.parse()?;
    let tree = StoredTree::dm(&Superblock::new(bytes.div_ceil(4096)), 0)?;
    for (level, blocks) in tree.layout().levels().iter().enumerate() {
        println!("level {level}: {blocks} blocks");
    }
    println!("hash file: {} bytes", tree.layout().end());
    Ok(())
}
