//! Rules for inline content of files.

use std::io::Read;

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
        2 => lzo(stored, size, superblock.sector_size as usize),
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

/// Checks a length, followed by one segment: a length, and at most one sector compressed by LZO.
fn lzo(stored: &[u8], size: usize, sector_size: usize) -> Verdict {
    let length = |at| u32_at(stored, at).map(|length| length as usize);
    let segment = length(4).and_then(|length| stored.get(8..)?.get(..length));
    let (Some(all), Some(segment)) = (length(0), segment) else {
        return Err("is not compressed by LZO: it is cut off".into());
    };
    if all > stored.len() || size > sector_size {
        return Err(format!("{size} bytes in {all} are not compressed by LZO"));
    }
    match lzokay_native::decompress_all(segment, Some(sector_size)) {
        Ok(found) if found.len() >= size => Ok(()),
        Ok(found) => Err(format!("{} bytes are compressed, not {size}", found.len())),
        Err(error) => Err(format!("is not compressed by LZO: {error}")),
    }
}
