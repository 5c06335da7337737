//! The content of blobs, which may be compressed.

use std::sync::Arc;

use super::detect::compression;
use super::files::Files;
use crate::Format;
use crate::compressed;
use crate::compression::Compression;
use crate::container::forward::Forward;
use crate::error::Result;
use crate::options::OpenOptions;
use crate::storage::{self, Storage};

/// Returns the tar archive in a layer, of `known` bytes if it was read before.
pub(super) fn of_layer(
    options: &OpenOptions,
    files: &Files,
    storage: Arc<dyn Storage>,
    known: Option<u64>,
) -> Result<Arc<dyn Storage>> {
    let Some(found) = compression(&*storage, files.name())? else { return Ok(storage) };
    let options = OpenOptions { format: Some(Format::Raw), ..options.clone() };
    let name = files.name();
    Ok(compressed::content_of_size(&options, found, storage, name, known)?.into())
}

/// Returns the image in a blob with this compression, of `known` bytes if they are stated.
pub(super) fn of_disk(
    options: &OpenOptions,
    files: &Files,
    storage: Arc<dyn Storage>,
    stated: Option<Compression>,
    known: Option<u64>,
) -> Result<Arc<dyn Storage>> {
    let Some(stated) = stated else { return Ok(storage) };
    let name = files.name();
    let head = compressed::head_of(&*storage);
    let head = head.map_err(|error| storage::read_error(name, error, Some(0)))?;
    if !stated.begins(&head) {
        return Err(files.corrupt(format!("has a blob that is not {stated}, as its type says")));
    }
    Ok(compressed::content_of_size(options, stated, storage, name, known)?.into())
}

/// The tar archive in a layer, read once from start to end.
pub(super) struct Scan {
    pub tar: Arc<dyn Storage>,
    /// The same, if its size is found by reading to its end.
    forward: Option<Arc<Forward>>,
}

impl Scan {
    pub fn new(options: &OpenOptions, files: &Files, storage: Arc<dyn Storage>) -> Result<Self> {
        let options = OpenOptions { format: Some(Format::Raw), ..options.clone() };
        if let Some(found) = compression(&*storage, files.name())?
            && let Some(stream) =
                compressed::stream(&options, found, storage.clone(), files.name())?
        {
            let forward = Forward::new(Box::new(stream), 0);
            return Ok(Self { tar: forward.clone(), forward: Some(forward) });
        }
        let tar = of_layer(&options, files, storage, None)?;
        Ok(Self { tar, forward: None })
    }

    /// Reads to the end. Returns the size if only that tells it.
    pub fn finish(self, files: &Files) -> Result<Option<u64>> {
        let Some(forward) = self.forward else { return Ok(None) };
        let size = forward.finish();
        size.map(Some).map_err(|error| storage::read_error(files.name(), error, None))
    }
}
