//! Header extensions: the names that an image gives, bounded and never trusted.

use std::collections::BTreeMap;

use super::header::array;
use crate::error::{Result, excerpt};
use crate::storage::HostFile;

/// What the extensions say that we need.
#[derive(Debug, Default)]
pub(super) struct Extensions {
    pub backing_format: Option<Vec<u8>>,
    pub data_file: Option<Vec<u8>>,
    /// Names of incompatible feature bits, fit to be shown.
    pub incompatible_features: BTreeMap<u8, String>,
}

/// Reads the extensions from `offset` up to their end mark or `end`.
pub(super) fn read(
    file: &HostFile,
    mut offset: u64,
    end: u64,
    extensions: &mut Extensions,
) -> Result<()> {
    // An image without an end mark may be shorter than its first cluster.
    let end = end.min(file.size());
    for _ in 0..MAX_EXTENSIONS {
        if offset.saturating_add(8) > end {
            return Ok(());
        }
        let mut head = [0; 8];
        file.read_exact_at(&mut head, offset)?;
        let kind = u32::from_be_bytes(array(&head, 0));
        let length = u64::from(u32::from_be_bytes(array(&head, 4)));
        if kind == END {
            return Ok(());
        }
        if length > end - offset - 8 {
            return Err(file.corrupt("header extension does not end in the header").at(offset));
        }
        let data = |limit| read_data(file, offset, length, limit);
        match kind {
            BACKING_FORMAT => extensions.backing_format = Some(data(MAX_FORMAT_NAME)?),
            DATA_FILE => extensions.data_file = Some(data(MAX_DATA_FILE_NAME)?),
            FEATURE_NAMES => name_features(&data(MAX_FEATURE_TABLE)?, extensions),
            _ => {}
        }
        offset += 8 + length.next_multiple_of(8);
    }
    Err(file.corrupt("too many header extensions").at(offset))
}

fn read_data(file: &HostFile, offset: u64, length: u64, limit: u64) -> Result<Vec<u8>> {
    if length > limit {
        return Err(file.corrupt("header extension is too long").at(offset));
    }
    let mut data = vec![0; length as usize];
    file.read_exact_at(&mut data, offset + 8)?;
    Ok(data)
}

/// Each entry is a type (0: incompatible), a bit and a name of 46 bytes that is padded with zeros.
fn name_features(table: &[u8], extensions: &mut Extensions) {
    for entry in table.chunks_exact(48) {
        if let [0, bit, name @ ..] = entry {
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            extensions.incompatible_features.insert(*bit, excerpt(name));
        }
    }
}

const END: u32 = 0;
const BACKING_FORMAT: u32 = 0xe279_2aca;
const FEATURE_NAMES: u32 = 0x6803_f857;
const DATA_FILE: u32 = 0x4441_5441;

/// There are six kinds, and room for a quarter of a million empty ones.
const MAX_EXTENSIONS: usize = 1024;
/// QEMU's limit is 15.
const MAX_FORMAT_NAME: u64 = 64;
/// The longest path that the system takes.
const MAX_DATA_FILE_NAME: u64 = 4096;
/// Three types of 64 features.
const MAX_FEATURE_TABLE: u64 = 3 * 64 * 48;
