//! Copies an image of any format to a new raw file, and verifies the copy: `cargo run --example copy IMAGE NEW-FILE`.

use std::error::Error;
use std::fs::File;

use blkcopy::{Job, Local, What};
use blkhash::Parameters;
use blkimage::OpenOptions;
use blksum::{Progress, Tuning};

fn main() -> Result<(), Box<dyn Error>> {
    let mut paths = std::env::args_os().skip(1);
    let (source, copy) = paths.next().zip(paths.next()).ok_or("usage: copy IMAGE NEW-FILE")?;
    let image = OpenOptions::new().open(&source)?;
    let file = File::options().read(true).write(true).create_new(true).open(&copy)?;
    let destination = Box::new(Local::new(file, copy.as_ref())?);
    let (writing, reading) = (Progress::new(), Progress::new());
    let parameters = [Parameters::default()];
    let job = Job::new(What::All, &parameters);
    let copied = job.run(&image, destination, &Tuning::default(), &writing, &reading)?;
    println!("{}  {}", copied.digests[0], copy.display());
    Ok(())
}
