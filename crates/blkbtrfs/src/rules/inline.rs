//! Rules for inline content of files.

use std::io::Read;

use blkimage::lzo;
use flate2::read::ZlibDecoder;

use super::item::{Verdict, expect};
use crate::bytes::u32_at;
use crate::superblock::Superblock;

/// Fails if `stored` does not contain `size` bytes of content.
pub(super) fn check(
    compression: u8,
    stored: &[u8],
    size: usize,
    superblock: &Superblock,
) -> Verdict {
    match compression {
        0 => expect("size", &size, &stored.len()),
        1 => {
            // The stream may be longer. The kernel reads only `size` bytes.
            let mut content = vec![0; size];
            let read = ZlibDecoder::new(stored).read_exact(&mut content);
            read.map_err(|error| format!("is not compressed by zlib: {error}"))
        }
        2 => check_lzo(stored, size, superblock.sector_size as usize),
        _ => {
            let mut content = vec![0; size];
            let mut context = zstd_safe::DCtx::create();
            let mut input = zstd_safe::InBuffer::around(stored);
            let mut output = zstd_safe::OutBuffer::around(&mut content[..]);
            loop {
                let before = (input.pos, output.pos());
                let left = context.decompress_stream(&mut output, &mut input).map_err(|code| {
                    format!("is not compressed by zstd: {}", zstd_safe::get_error_name(code))
                })?;
                if output.pos() == size {
                    return Ok(());
                }
                if left == 0 || (input.pos, output.pos()) == before {
                    return Err(format!("{} bytes are compressed, not {size}", output.pos()));
                }
            }
        }
    }
}

/// Checks two lengths, of everything and of the stream after them, and a stream of at most one sector. As in the
/// kernel (4.18 and later), no other bytes may follow.
fn check_lzo(stored: &[u8], size: usize, sector_size: usize) -> Verdict {
    let length = |at| u32_at(stored, at).map(|length| length as usize);
    let (Some(all), Some(segment), Some(stream)) = (length(0), length(4), stored.get(8..)) else {
        return Err("is not compressed by LZO: it is cut off".into());
    };
    if (all, segment) != (stored.len(), stream.len()) {
        let stored = stored.len();
        return Err(format!("is not compressed by LZO: {stored} bytes claim {all} and {segment}"));
    }
    if size > sector_size {
        return Err(format!("is not compressed by LZO: it has {size} bytes of content"));
    }
    match lzo::decompress(stream, sector_size) {
        Ok(found) if found.len() >= size => Ok(()),
        Ok(found) => Err(format!("{} bytes are compressed, not {size}", found.len())),
        Err(defect) => Err(format!("is not compressed by LZO: {defect}")),
    }
}
