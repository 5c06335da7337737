//! Detects how a layer, or an archive, is compressed.

use std::path::Path;

use crate::compression::Compression;
use crate::error::{Error, ErrorKind, Result};
use crate::storage::{self, Storage};
use crate::tar;

/// Detects the compression of a layer from its first bytes, as container runtimes do. Fails where some of them find another
/// content than others: if it begins like a compression that only some know, or if it is a tar archive as well.
pub(super) fn compression(storage: &dyn Storage, name: &Path) -> Result<Option<Compression>> {
    let mut head = vec![0; storage.size().min(tar::BLOCK) as usize];
    let read = storage.read_exact_at(&mut head, 0);
    read.map_err(|error| storage::read_error(name, error, Some(0)))?;
    let is_tar = tar::is_tar(&head);
    let found = Compression::of_head(&head);
    let known = match found {
        Some(Compression::Lz4 | Compression::Lzop) => false,
        Some(Compression::Zstd) => head.starts_with(ZSTD),
        Some(_) => true,
        // A shorter beginning of bzip2 is enough for some.
        None => !head.starts_with(b"BZh"),
    };
    if known && (found.is_none() || !is_tar) {
        return Ok(found);
    }
    let found = found.unwrap_or(Compression::Bzip2);
    let reason = match is_tar {
        true => {
            format!("is a tar archive that begins like {found}, which programs read differently")
        }
        false => format!("begins in a way of {found} that only some programs know"),
    };
    let reason = format!("has a layer, or is an archive, that {reason}");
    Err(Error::new(ErrorKind::Unsupported, name, reason))
}

/// Beginning of a frame of zstd with content.
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
