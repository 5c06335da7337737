//! Header extensions, all of bounded size.

use std::collections::BTreeMap;

use super::bitmaps::Directory;
use crate::error::{Result, excerpt};
use crate::formats::fields::array;
use crate::storage::HostFile;

/// The content of the extensions that is used.
#[derive(Debug, Default)]
pub(super) struct Extensions {
    pub backing_format: Option<Vec<u8>>,
    pub data_file: Option<Vec<u8>>,
    pub bitmaps: Option<Directory>,
    pub encryption: Option<Found>,
    /// Names of incompatible feature bits, escaped for display.
    pub incompatible_features: BTreeMap<u8, String>,
}

/// A place in the file that an extension names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// Offset of the extension.
    pub stated_at: u64,
    pub offset: u64,
    pub length: u64,
}

/// Reads the extensions from `offset` up to their end mark or `end`.
pub(super) fn read(
    file: &HostFile,
    mut offset: u64,
    end: u64,
    extensions: &mut Extensions,
) -> Result<()> {
    for _ in 0..MAX_EXTENSIONS {
        if offset >= end {
            return Ok(());
        }
        // An image without an end mark may be shorter than its first cluster.
        let mut head = [0; 8];
        let available = file.size().saturating_sub(offset).min(8);
        file.read_exact_at(&mut head[..available as usize], offset)?;
        let kind = u32::from_be_bytes(array(&head, 0));
        let length = u64::from(u32::from_be_bytes(array(&head, 4)));
        if end - offset < 8 || length > end - offset - 8 {
            return Err(file.corrupt("header extension does not end in the header").at(offset));
        }
        if kind == END {
            return Ok(());
        }
        if length > file.size().saturating_sub(offset + 8) {
            return Err(file.corrupt("header is cut off").at(offset));
        }
        let data = |limit| read_data(file, offset, length, limit);
        match kind {
            BACKING_FORMAT => extensions.backing_format = Some(data(MAX_FORMAT_NAME)?),
            DATA_FILE => extensions.data_file = Some(data(MAX_DATA_FILE_NAME)?),
            BITMAPS => {
                let data = data(BITMAPS_SIZE)?;
                extensions.bitmaps = Some(Directory::parse(&data, offset).ok_or_else(|| {
                    file.corrupt("header extension of bitmaps is too short").at(offset)
                })?);
            }
            ENCRYPTION => {
                let data = data(ENCRYPTION_SIZE)?;
                let data: &[u8; ENCRYPTION_SIZE as usize] =
                    data.as_slice().try_into().map_err(|_| {
                        file.corrupt("header extension of encryption is too short").at(offset)
                    })?;
                extensions.encryption = Some(Found {
                    stated_at: offset,
                    offset: u64::from_be_bytes(array(data, 0)),
                    length: u64::from_be_bytes(array(data, 8)),
                });
            }
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

/// Reads names of features. Each entry is a type (0: incompatible), a bit, and a name of 46 bytes
/// padded with zeros.
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
const BITMAPS: u32 = 0x2385_2875;
const ENCRYPTION: u32 = 0x0537_be77;
const FEATURE_NAMES: u32 = 0x6803_f857;
const DATA_FILE: u32 = 0x4441_5441;

/// Maximum number of header extensions. There are six kinds of extensions, and room for a quarter
/// of a million empty ones.
/// Limit in extensions.
const MAX_EXTENSIONS: usize = 1024;

/// Maximum length of the name of a backing format, as in QEMU.
/// Limit in bytes.
const MAX_FORMAT_NAME: u64 = 15;

/// Size of the description of the bitmap directory.
const BITMAPS_SIZE: u64 = 24;

/// Size of the description of the header of encryption.
const ENCRYPTION_SIZE: u64 = 16;

/// Maximum length of the name of a data file: as of a path in Linux. Limit in bytes.
const MAX_DATA_FILE_NAME: u64 = 4096;

/// Maximum size of the names of features: three types of 64 features.
/// Limit in bytes.
const MAX_FEATURE_TABLE: u64 = 3 * 64 * 48;
