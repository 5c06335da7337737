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
use crate::open::Opened;
use crate::open_map;
use crate::unfinished::Unfinished;

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
    watch.write(py, move |files, [progress]| {
        let header = Header::new(algorithm, block_size, salt)
            .map_err(|error| Failure::Other(error.to_string()))?;
        input.with_disk(|image| write(image, &output, files, header, key, &tuning, progress))
    })
}

/// Writes the file. The caller removes it if that fails.
fn write(
    image: &Opened,
    output: &Path,
    files: &Unfinished,
    header: Header,
    key: Option<Key>,
    tuning: &Tuning,
    progress: &Progress,
) -> Result<(), Failure> {
    let info = Info::new(Made::Read).describe(&image.subject());
    let content = image.content();
    let file = open_map::create(output, image.files(), files)?;
    let failed = |error| Failure::Pass(error, output.as_os_str().to_owned());
    let writer = Writer::new(file, header, content.size()).map_err(|error| failed(error.into()))?;
    blksum::map::write(writer.sealed_with(key), content, .., &info, tuning, progress)
        .map(drop)
        .map_err(failed)
}
