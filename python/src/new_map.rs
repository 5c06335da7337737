//! Makes a map for `blkhash.create_map()`.

use std::path::{Path, PathBuf};

use blkmap::{Header, Key, Writer};
use blksum::map::{Info, Made};
use blksum::{Progress, Tuning};
use pyo3::prelude::*;

use crate::arguments::{self, value_error};
use crate::errors::Failure;
use crate::input::Input;
use crate::job::Watch;
use crate::map;
use crate::new_file::to_new_file;
use crate::open::Opened;

/// Writes the map of an image to a new file.
#[pyfunction(name = "_create_map")]
#[expect(clippy::too_many_arguments, reason = "as in Python")]
pub fn create_map(
    py: Python<'_>,
    image: &Bound<'_, PyAny>,
    output: PathBuf,
    digest: &str,
    block_size: u64,
    salt: &Bound<'_, PyAny>,
    key: Option<&Bound<'_, PyAny>>,
    threads: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
    cancel: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let algorithm = arguments::algorithm(digest)?;
    if !Header::accepts(algorithm) {
        return Err(value_error(format!("there are no maps with digest '{digest}'")));
    }
    let block_size = arguments::block_size(block_size)?;
    let salt = arguments::salt(Some(salt))?;
    let key = key.map(map::key).transpose()?;
    let input = Input::new(image)?;
    let tuning = arguments::tuning(threads, None)?;
    let watch = Watch { progress, cancel };
    watch.run(py, move |progress| {
        let header = Header::new(algorithm, block_size, salt)
            .map_err(|error| Failure::Other(error.to_string()))?;
        input.with_disk(|image| write(image, &output, header, key, &tuning, progress))
    })
}

/// Writes the file, or removes it.
fn write(
    image: &Opened,
    output: &Path,
    header: Header,
    key: Option<Key>,
    tuning: &Tuning,
    progress: &Progress,
) -> Result<(), Failure> {
    let info = Info::new(Made::Read).describe(&image.subject());
    let content = image.content();
    let written = |file| {
        let writer = Writer::new(file, header, content.size())?.sealed_with(key);
        blksum::map::write(writer, content, .., &info, tuning, progress).map(drop)
    };
    to_new_file(output, image.files(), |file| {
        written(file).map_err(|error| Failure::Pass(error, output.as_os_str().to_owned()))
    })
}
