//! `blkhash map import`: makes a map of an index of another program.

use std::ffi::OsString;
use std::fs::File;
use std::io::IsTerminal;
use std::path::Path;

use blkindex::{Index, Options};
use blkmap::{Error, Pipe, Writer};
use blksum::map::{Info, Made};

use super::args::Import;
use crate::blkhash::confine_to_open_files;
use crate::map::open;
use crate::map::output::{Content, Output};
use crate::outputs::{Named, mode_of};
use crate::problem::{Failure, Outcome, Problem, WithName as _};

/// Makes the map of the index on the command line.
pub fn run(args: &Import) -> Result<Outcome, Failure> {
    let name = output_name(args);
    if name == "-" && std::io::stdout().is_terminal() {
        return Err(Failure::usage("a map is not written to a terminal"));
    }
    let key = open::key(args.key_file.as_deref()).map_err(Failure::usage)?;
    // No empty map remains for an index that does not exist.
    let file = open::file(Path::new(&args.file)).map_err(|error| match error {
        Error::Magic => Problem::from("is not a regular file"),
        error => Problem::from(error),
    });
    let file = file.named(&args.file)?;
    let named = match args.output {
        Some(_) => Named::ByUser,
        None => Named::AfterImage(Path::new(&args.file)),
    };
    let output = Output::open(&name, named, mode_of([&*args.file]));
    confine_to_open_files();
    let output = output.named(&name)?;
    if output.is_file(&args.file) {
        return Err("is the index to import").named(&name);
    }
    let job = Job { args, file: &file };
    let imported = job.check(&output).and_then(|()| job.write(&output, key));
    open::note_left_out(&args.file, imported.named(&name)?);
    Ok(Outcome::Clean)
}

struct Job<'a> {
    args: &'a Import,
    file: &'a File,
}

impl Job<'_> {
    fn open(&self) -> Result<Index<'_>, Error> {
        let mut options = Options::default();
        options.algorithm = self.args.digest;
        options.block_size = self.args.block_size;
        options.image_size = self.args.size;
        let opened = Index::open(self.file, &self.args.file, self.args.from, &options);
        opened.map_err(|error| match error {
            Error::Magic => Error::Unsupported(UNKNOWN.into()),
            error => error,
        })
    }

    /// Fails if there is a map that is not to be overwritten, or an index that must not cost the map that is there.
    fn check(&self, output: &Output) -> Result<(), Problem> {
        let about = |error: Error| Problem::from(error).about(&self.args.file);
        let is_map = match output.content()? {
            Content::Empty => false,
            Content::Map(_) if self.args.force => true,
            Content::Map(map) => {
                let is_finished = map.commit().is_some_and(blkmap::Commit::is_final);
                let reason = if is_finished { "exists" } else { "is not finished" };
                return Err(Problem::new(reason).with_hint("--force overwrites it"));
            }
        };
        let index = self.open().map_err(about)?;
        if is_map {
            let header = index.header().map_err(about)?;
            let size = index.image_size();
            Writer::new(Pipe(std::io::sink()), header, size)
                .and_then(|writer| index.write(writer, "{}"))
                .map_err(about)?;
        }
        Ok(())
    }

    /// Returns the number of blocks of the index that the map does not know.
    fn write(&self, output: &Output, key: Option<blkmap::Key>) -> Result<u64, Problem> {
        let about = |error: Error| match error {
            Error::Io(_) => Problem::from(error),
            error => Problem::from(error).about(&self.args.file),
        };
        let index = self.open().map_err(about)?;
        let info = Info::new(Made::Import(index.format().name().to_owned())).to_string();
        let writer = output.begin(index.header().map_err(about)?, index.image_size())?;
        let mut writer = writer.sealed_with(key);
        if let Output::File { .. } = output {
            writer = writer.checkpoint_every(blkmap::CHECKPOINT, info.clone());
        }
        let (_, _, left_out) = index.write(writer, &info).map_err(about)?;
        Ok(left_out)
    }
}

/// Returns the name of the map.
fn output_name(args: &Import) -> OsString {
    args.output.clone().unwrap_or_else(|| {
        let mut name = args.file.clone();
        name.push(".blkmap");
        name
    })
}

const UNKNOWN: &str = "has no format that is recognised: name it with --from";
