//! The file of `--picture=FILE`.

use std::ffi::OsString;
use std::path::Path;

use blkimage::{Identity, Image};

use super::args::Report;
use crate::blkhash::output::Output;
use crate::blkhash::source::shown;
use crate::map::open;
use crate::outputs::mode_of;

/// A file that is emptied only when the picture is written.
pub struct PictureFile(Option<Output>);

impl PictureFile {
    /// Opens the file, which is none of the sides of the comparison.
    pub fn open(print: &Report, sides: &[&OsString]) -> Result<Self, String> {
        let name = print.picture.as_ref().filter(|name| !name.is_empty());
        let mode = mode_of(sides.iter().map(|side| side.as_os_str()));
        let Some(output) = Output::open("--picture", name.map(Path::new), mode)? else {
            return Ok(Self(None));
        };
        for side in sides {
            let names = [Some((*side).clone()), open::base_of_state(side)];
            let files = names.into_iter().flatten().filter_map(|name| std::fs::metadata(name).ok());
            if files.map(|file| Some(Identity::new(&file))).any(|it| it == output.identity()) {
                return Err(format!("--picture: {}: is compared", shown(side)));
            }
        }
        Ok(Self(Some(output)))
    }

    /// Refuses a file of the image.
    pub fn check_apart(&self, image: &Image) -> Result<(), String> {
        self.0.as_ref().map_or(Ok(()), |output| output.check_apart(image, None))
    }

    /// Writes the picture.
    pub fn write(&self, svg: &str) -> Result<(), String> {
        self.0.as_ref().map_or(Ok(()), |output| output.write(svg.as_bytes()))
    }
}
