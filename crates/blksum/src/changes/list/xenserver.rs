//! The bitmap of `VDI.list_changed_blocks` of XenServer and XCP-ng, in base64: a bit for each 64 KiB, the most significant one
//! of a byte first. It covers the disk, up to the end of its last byte.

use std::io::{BufRead, Read};

use data_encoding::BASE64;

use super::ListError;
use super::extents::Extents;
use super::text::Text;

/// Bytes of the disk for each bit.
const BLOCK: u64 = 64 << 10;

/// Number of characters that are decoded at a time, in groups of four.
const CHUNK: usize = 1 << 16;

/// Reads the bitmap into `extents`. Returns how many bytes of the disk it covers.
pub(super) fn read<R: Read>(text: &mut Text<R>, extents: &mut Extents) -> Result<u64, ListError> {
    let mut covered = 0;
    let mut characters = Vec::with_capacity(CHUNK);
    let mut is_padded = false;
    while fill(text, &mut characters)? {
        // The decoder takes several texts, one after another.
        let digits = characters.iter().take_while(|byte| **byte != b'=').count();
        if is_padded || characters[digits..].iter().any(|byte| *byte != b'=') {
            return Err(ListError::of_list("the base64 continues after its padding"));
        }
        is_padded = digits < characters.len();
        let bytes = BASE64.decode(&characters);
        let bytes = bytes.map_err(|error| ListError::of_list(&format!("no base64: {error}")))?;
        for byte in bytes {
            for bit in (0..8).filter(|bit| byte & (0x80 >> bit) != 0) {
                let added = extents.add(covered + bit * BLOCK, BLOCK);
                added.map_err(|problem| ListError::of_list(&problem))?;
            }
            covered += 8 * BLOCK;
        }
    }
    Ok(covered)
}

/// Fills the buffer with the next characters other than white space. Returns false at the end of the text.
fn fill<R: Read>(text: &mut Text<R>, buffer: &mut Vec<u8>) -> Result<bool, ListError> {
    buffer.clear();
    while buffer.len() < CHUNK {
        let bytes = text.fill_buf().map_err(ListError::of_io)?;
        if bytes.is_empty() {
            break;
        }
        let taken = bytes.len().min(CHUNK - buffer.len());
        buffer.extend(bytes[..taken].iter().filter(|byte| !byte.is_ascii_whitespace()));
        text.consume(taken);
    }
    Ok(!buffer.is_empty())
}
