//! Makes a map from another one for `blkhash.update_map()`.

use std::path::PathBuf;

use blkmap::Update;
use blksum::map::{Info, Made, Sample, Tracked};
use pyo3::prelude::*;

use crate::arguments::{self, value_error};
use crate::errors::Failure;
use crate::input::Input;
use crate::job::Watch;
use crate::map::{self, Map};
use crate::open_map;

/// Writes the next state of a map to a new file.
#[pyfunction(name = "_update_map")]
#[expect(clippy::too_many_arguments, reason = "as in Python")]
pub fn update_map(
    py: Python<'_>,
    base: &Bound<'_, Map>,
    image: &Bound<'_, PyAny>,
    output: PathBuf,
    changes: Vec<(u64, u64)>,
    sample: f64,
    key: Option<&Bound<'_, PyAny>>,
    threads: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
    cancel: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    if !(0.0..=100.0).contains(&sample) {
        return Err(value_error("sample is a percentage from 0 to 100".to_owned()));
    }
    let sample = Sample::parts_per_million((sample * 10_000.0).ceil() as u32);
    let shared = base.get().shared(py)?;
    let changes = arguments::changes(changes)?;
    let key = key.map(map::key).transpose()?;
    let input = Input::new(image)?;
    let tuning = arguments::tuning(threads, None)?;
    let watch = Watch { progress, cancel };
    watch.write(py, move |files, [progress]| {
        let base = shared.here()?;
        let checked = base.map.check_base(key.as_ref());
        checked.map_err(|error| Failure::Map(error, base.name.clone()))?;
        input.with_disk(|image| {
            let content = image.content();
            let info = Info::new(Made::Read).describe(&image.subject());
            let tracked = Tracked { changes: &changes, by: "list of changes", sample };
            let written = |file| {
                let update = Update::copy(&base.map, file, content.size(), key)?;
                let updated = blksum::map::update(
                    update, &base.map, content, &tracked, info, &tuning, progress,
                );
                updated.map(drop)
            };
            let file = open_map::create(&output, image.files().chain([&*base.name]), files)?;
            written(file).map_err(|error| Failure::Pass(error, output.as_os_str().to_owned()))
        })
    })
}
