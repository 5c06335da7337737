//! Prints the checksum of standard input, as `blksum -` does: `cargo run --example hash < FILE`.

use std::io::{self, Read};

use blkhash::{Hasher, Parameters};

fn main() -> io::Result<()> {
    let mut hasher = Hasher::new(Parameters::default(), 2);
    let mut buffer = vec![0; 1 << 20];
    let mut stdin = io::stdin().lock();
    loop {
        match stdin.read(&mut buffer)? {
            0 => break,
            count => hasher.update(&buffer[..count]),
        }
    }
    println!("{}", hasher.finalize());
    Ok(())
}
