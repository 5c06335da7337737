//! Opens the destination of a copy, unless something would be lost.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

use blkcopy::{
    Destination, Error, Existing, FileName, Found, Others, Place, Reading, Refused, Syncer,
    Zeroing, Zeros,
};
use blkimage::{Identity, Image, Location, OpenOptions};

use crate::errors::Failure;
use crate::open::Name;
use crate::unfinished::Unfinished;

/// Opens the destination for a copy of a source, which is `None` for a delta. A new file, or one that is empty, is recorded in
/// `unfinished`, and nothing is changed after that is abandoned. `others` are other files that are read or written, and what they
/// are.
pub fn open(
    destination: &Name,
    existing: Existing,
    source: Option<(Reading<'_>, &Image)>,
    others: &[(&Path, &str)],
    zeros: Zeros,
    options: &OpenOptions,
    unfinished: &Arc<Unfinished>,
) -> Result<(Box<dyn Destination>, Found), Failure> {
    let name = destination.as_os_str();
    let refused = |refused| Failure::Refused(refused, name.to_owned());
    let (reading, image) = source.unzip();
    let files = others.iter().filter_map(|(path, what)| Some((Identity::of(path)?, *what)));
    let others = Others { source: reading, files: &files.collect::<Vec<_>>() };
    let (place, spare) = match destination.location() {
        Location::Path(path) => {
            of_path(path, existing, &others, image, unfinished).map_err(refused)?
        }
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
        unfinished.found_empty(spare).map_err(|error| refused(Refused::Open(error)))?;
    }
    Ok((Box::new(Revocable { destination, unfinished: Arc::clone(unfinished) }), found))
}

/// A destination that is not changed after the copy was abandoned, while the thread that makes it may still wait for its source.
struct Revocable {
    destination: Box<dyn Destination>,
    unfinished: Arc<Unfinished>,
}

impl Destination for Revocable {
    fn begin(&mut self, size: Option<u64>, keeps: bool) -> Result<bool, Error> {
        let change = self.unfinished.change();
        let _change =
            change.map_err(|source| Error::Destination { what: "cannot be changed", source })?;
        self.destination.begin(size, keeps)
    }

    fn can_resize(&self) -> bool {
        self.destination.can_resize()
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let _change = self.unfinished.change()?;
        self.destination.write_all_at(bytes, offset)
    }

    fn zero(&self, offset: u64, length: u64, how: Zeroing) -> io::Result<bool> {
        let _change = self.unfinished.change()?;
        self.destination.zero(offset, length, how)
    }

    fn share(&self, file: BorrowedFd<'_>) -> bool {
        self.unfinished.change().is_ok_and(|_change| self.destination.share(file))
    }

    fn end(&self, size: u64) -> io::Result<()> {
        let _change = self.unfinished.change()?;
        self.destination.end(size)
    }

    fn syncer(&self) -> io::Result<Syncer> {
        self.destination.syncer()
    }

    fn current(&self) -> blkimage::Result<Image> {
        self.destination.current()
    }

    fn read_back(&self) -> blkimage::Result<Image> {
        self.destination.read_back()
    }
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
