//! Generates the manual pages and shell completions in the repository, and what other files in it say of options and
//! limits. Run it in the root folder with `cargo run -p blkhash-cli --example generate -- man completions`.

mod pages;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs, io};

fn main() -> ExitCode {
    let folders: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let [man, completions] = &folders[..] else {
        eprintln!("usage: generate MAN-FOLDER COMPLETIONS-FOLDER");
        return ExitCode::from(2);
    };
    let root = Path::new(".");
    let write = |page: pages::Page| {
        let folder = match page.kind {
            pages::Kind::Man => man.as_path(),
            pages::Kind::Completion => completions.as_path(),
            pages::Kind::Source => root,
        };
        fs::create_dir_all(folder)?;
        fs::write(folder.join(page.file_name), page.content)
    };
    let written: io::Result<()> =
        pages::pages(root).and_then(|pages| pages.into_iter().try_for_each(write));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("generate: {error}");
            ExitCode::FAILURE
        }
    }
}
