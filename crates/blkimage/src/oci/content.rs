//! The content of layers, which may be compressed.

use std::fmt;
use std::sync::Arc;

use super::files::Files;
use super::role::Method;
use crate::error::{ErrorKind, Result};
use crate::storage::Storage;

impl Method {
    /// Detects the compression of a layer from its first bytes, as container runtimes do.
    pub fn of(storage: &dyn Storage) -> Option<Self> {
        let mut head = [0; 6];
        storage.read_exact_at(&mut head, 0).ok()?;
        let starts = |magic: &[u8]| head.starts_with(magic);
        match () {
            () if starts(b"\x1f\x8b\x08") => Some(Self::Gzip),
            () if starts(b"\x28\xb5\x2f\xfd") => Some(Self::Zstd),
            () if starts(b"\xfd7zXZ\0") => Some(Self::Xz),
            () if starts(b"BZh") => Some(Self::Bzip2),
            () if starts(b"\x04\x22\x4d\x18") => Some(Self::Lz4),
            () => None,
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
            Self::Bzip2 => "bzip2",
            Self::Lz4 => "lz4",
        })
    }
}

/// Returns the tar archive in a layer.
pub(super) fn of_layer(files: &Files, storage: Arc<dyn Storage>) -> Result<Arc<dyn Storage>> {
    let method = Method::of(&*storage);
    decompressed(files, storage, method)
}

/// Returns the image in a blob that is compressed as stated.
pub(super) fn of_disk(
    files: &Files,
    storage: Arc<dyn Storage>,
    method: Option<Method>,
) -> Result<Arc<dyn Storage>> {
    decompressed(files, storage, method)
}

fn decompressed(
    files: &Files,
    storage: Arc<dyn Storage>,
    method: Option<Method>,
) -> Result<Arc<dyn Storage>> {
    match method {
        None => Ok(storage),
        Some(method) => {
            let reason = format!("has a layer that is compressed ({method}), which is not read");
            Err(files.error(ErrorKind::Unsupported, reason))
        }
    }
}
