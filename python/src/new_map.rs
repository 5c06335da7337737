//! Makes a map for `blkhash.create_map()`.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

use blkhash::Leaf;
use blkimage::{Location, Source, split_member};
use blkmap::{Header, Key, Writer};
use blksum::{Progress, Tuning};
use pyo3::prelude::*;

use crate::arguments::{self, value_error};
use crate::errors::Failure;
use crate::input::Input;
use crate::job::Watch;
use crate::map;
use crate::open::Opened;

/// Writes the map of an image to a new file.
#[pyfunction(name = "_create_map")]
#[expect(clippy::too_many_arguments, reason = "are those of Python")]
pub fn create_map(
    py: Python<'_>,
    image: &Bound<'_, PyAny>,
    output: PathBuf,
    info: String,
    file_id: [u8; 16],
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
    let header = Header { file_id, algorithm, block_size, salt: arguments::salt(Some(salt))? };
    let key = key.map(map::key).transpose()?;
    let input = Input::new(image)?;
    // A run of zeros costs nothing.
    let tuning = arguments::tuning(threads, Some(u64::MAX))?;
    let watch = Watch { progress, cancel };
    watch.run(py, move |progress| {
        let job = Job { header, leaf: header.leaf(), info, tuning };
        input.with(|image| job.write(image, &output, key, progress))
    })
}

struct Job {
    header: Header,
    leaf: Leaf,
    info: String,
    tuning: Tuning,
}

impl Job {
    /// Writes the file, or removes it.
    fn write(
        &self,
        image: &Opened,
        output: &PathBuf,
        key: Option<Key>,
        progress: &Progress,
    ) -> Result<(), Failure> {
        let name = output.as_os_str().to_owned();
        let of_map = |error| Failure::Map(error, name.clone());
        let mut options = File::options();
        options.read(true).write(true).create_new(true).mode(mode_of(&image.name));
        let file = options.open(output);
        let file = file.map_err(|error| of_map(error.into()))?;
        let content = &image.content;
        let written = || -> Result<(), Failure> {
            let writer = Writer::new(file, self.header, content.size()).map_err(of_map)?;
            let mut writer = writer.sealed_with(key);
            writer.set_padded_last(map::padded_last(content, &self.leaf)?);
            blksum::block_digests(content, &self.leaf, &mut writer, &self.tuning, progress)
                .map_err(|error| Failure::Pass(error, name.clone()))?;
            writer.finish(&self.info).map_err(of_map)?;
            Ok(())
        };
        written().inspect_err(|_| {
            // It is not finished, and no command takes it for a map.
            let _ = fs::remove_file(output);
        })
    }
}

/// Returns the mode of the map: readable for the users that may read the file of the image. Devices and exports do not say
/// who that is.
fn mode_of(image: &OsStr) -> u32 {
    let file = match Location::new(image) {
        Location::Path(path) => split_member(path).map_or(path, |(appliance, _)| appliance),
        _ => return PRIVATE,
    };
    let metadata = fs::metadata(file).ok().filter(Metadata::is_file);
    metadata.map_or(PRIVATE, |it| it.mode() & 0o666 | PRIVATE)
}

/// Readable and writable for the owner.
const PRIVATE: u32 = 0o600;
