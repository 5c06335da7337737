//! Opens the destination of a copy, unless something would be lost.

use std::fs::File;
use std::path::Path;

use blkcopy::{Destination, Existing, FileName, Found, Others, Place, Reading, Refused, Zeros};
use blkimage::{Identity, Image, Location, OpenOptions};

use crate::errors::Failure;
use crate::new_file::Unfinished;
use crate::open::Name;

/// Opens the destination for a copy of a source, which is `None` for a delta. A new file, or one that is empty, is recorded in
/// `file`. `others` are other files that are read or written, and what they are.
pub fn open(
    destination: &Name,
    existing: Existing,
    source: Option<(Reading<'_>, &Image)>,
    others: &[(&Path, &str)],
    zeros: Zeros,
    options: &OpenOptions,
    file: &Unfinished,
) -> Result<(Box<dyn Destination>, Found), Failure> {
    let name = destination.as_os_str();
    let refused = |refused| Failure::Refused(refused, name.to_owned());
    let (reading, image) = source.unzip();
    let files = others.iter().filter_map(|(path, what)| Some((Identity::of(path)?, *what)));
    let others = Others { source: reading, files: &files.collect::<Vec<_>>() };
    let (place, spare) = match destination.location() {
        Location::Path(path) => of_path(path, existing, &others, image, file).map_err(refused)?,
        _ => {
            let uri = name.to_str().ok_or_else(|| {
                Failure::Value(name.display().to_string(), "is a URI that is not UTF-8".into())
            })?;
            (Place::export(uri, existing, &others).map_err(refused)?, None)
        }
    };
    let found = place.found().clone();
    let destination = place.into_destination(image, zeros, options).map_err(refused)?;
    if let Some(spare) = spare {
        file.found_empty(spare).map_err(|error| refused(Refused::Open(error)))?;
    }
    Ok((destination, found))
}

/// Opens a file or a device. Returns also the file, if it was there and is empty.
fn of_path(
    path: &Path,
    existing: Existing,
    others: &Others<'_>,
    source: Option<&Image>,
    file: &Unfinished,
) -> Result<(Place, Option<File>), Refused> {
    let found = FileName::new(path, existing)?;
    if found.is_device() {
        return Ok((found.open_device(others)?, None));
    }
    let files = source.into_iter().flat_map(|image| image.files().map(Path::as_os_str));
    let files: Vec<_> = files.collect();
    let (file, is_new) = file.open_locked(path, &files)?;
    let spare = file.try_clone().map_err(Refused::Open)?;
    let place = found.with_file(file, is_new, others)?;
    // Nothing else writes to it from here on.
    let is_empty = spare.metadata().is_ok_and(|it| it.is_file() && it.len() == 0);
    Ok((place, Some(spare).filter(|_| is_empty && !is_new)))
}
