//! Indexes of other programs, for `blkhash.import_map()`.

use std::path::{Path, PathBuf};

use blkindex::{Format, Index, Options};
use blkmap::{Error, Key, Writer};
use blksum::map::{Info, Made};
use pyo3::prelude::*;

use crate::arguments::{self, value_error};
use crate::errors::Failure;
use crate::job::Watch;
use crate::map;
use crate::open_map::{self, regular_file};
use crate::unfinished::Unfinished;

/// Writes the map of an index to a new file.
#[pyfunction(name = "_import_map")]
#[expect(clippy::too_many_arguments, reason = "as in Python")]
pub fn import_map(
    py: Python<'_>,
    index: PathBuf,
    output: PathBuf,
    format: Option<&str>,
    digest: Option<&str>,
    block_size: Option<u64>,
    image_size: Option<u64>,
    key: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let mut options = Options::default();
    let format = format.map(str::parse).transpose().map_err(value_error)?;
    options.algorithm = digest.map(arguments::algorithm).transpose()?;
    options.block_size = block_size.map(arguments::block_size).transpose()?;
    options.image_size = image_size;
    let key = key.map(map::key).transpose()?;
    Watch::NONE.write(py, move |files, [_]| import(&index, &output, files, format, &options, key))
}

fn import(
    name: &Path,
    output: &Path,
    files: &Unfinished,
    format: Option<Format>,
    options: &Options,
    key: Option<Key>,
) -> Result<(), Failure> {
    let failed = |error| match error {
        Error::Magic => Error::Unsupported("has no format that is recognised".into()),
        error => error,
    };
    let of_index = |error| Failure::Map(failed(error), name.as_os_str().to_owned());
    let of_map = |error| match error {
        error @ Error::Io(_) => Failure::Map(error, output.as_os_str().to_owned()),
        error => of_index(error),
    };
    let file = regular_file(name).map_err(of_index)?;
    let index = Index::open(&file, name.as_os_str(), format, options).map_err(of_index)?;
    let info = Info::new(Made::Import(index.format().name().to_owned())).to_string();
    let header = index.header().map_err(of_index)?;
    let file = open_map::create(output, [name.as_os_str()], files)?;
    let writer = Writer::new(file, header, index.image_size()).map_err(of_map)?;
    index.write(writer.sealed_with(key), &info).map(drop).map_err(of_map)
}
