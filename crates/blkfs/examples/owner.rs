//! Names the files in which bytes of a file system are: `cargo run --example owner FILE-SYSTEM OFFSET LENGTH`.

use std::error::Error;
use std::sync::Arc;

use blkfs::{FileSystem, Names, Owner, Owners};
use blkimage::OpenOptions;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [path, offset, length] = &args[..] else {
        return Err("usage: owner FILE-SYSTEM OFFSET LENGTH".into());
    };
    let image = OpenOptions::new().open(path)?;
    let file_system = FileSystem::open(Arc::new(image))?.ok_or("holds no known file system")?;
    let owners = Owners::read(&file_system)?;
    let names = Names::read(&file_system)?;
    for extent in owners.find(offset.parse()?, length.parse()?, 16).extents {
        match extent.owner {
            Owner::File { object, offset } => {
                println!("{:?} from byte {offset} on", names.paths(object, 1));
            }
            other => println!("{other:?}"),
        }
    }
    Ok(())
}
