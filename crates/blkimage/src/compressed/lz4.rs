//! lz4: frames one after the other.
//!
//! Calls liblz4 itself: the decoders that wrap it read more than one frame, or take a frame that was cut off for a whole one.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io::{self, Read};

use lz4_sys::{
    LZ4F_VERSION, LZ4F_createDecompressionContext, LZ4F_decompress, LZ4F_freeDecompressionContext,
    LZ4F_getErrorName, LZ4F_isError, LZ4FDecompressionContext,
};

use super::input::{Input, damaged};
use super::unit::{Unit, Units};
use crate::storage::Storage;

/// Decodes frames.
pub(super) struct Lz4<R> {
    input: Input<R>,
    context: Context,
    /// Whether a frame is not complete.
    is_within: bool,
    has_begun: bool,
}

impl<R: Read> Lz4<R> {
    pub fn new(reader: R, start: u64) -> io::Result<Self> {
        let context = Context::new()?;
        Ok(Self { input: Input::new(reader, start), context, is_within: false, has_begun: false })
    }
}

impl<R: Read> Read for Lz4<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while !buf.is_empty() {
            let bytes = self.input.fill()?;
            let is_over = bytes.is_empty();
            if is_over && self.has_begun && !self.is_within {
                break;
            }
            if !self.is_within && bytes.starts_with(&LEGACY_MAGIC) {
                let reason = "is in the legacy format of lz4, which has no checksum: `lz4 -dc` in a pipe decompresses it";
                return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
            }
            let was_between = self.has_begun && !self.is_within;
            let (taken, count) = match self.context.decompress(bytes, buf) {
                Ok(Step { taken, count, is_within }) => {
                    self.is_within = is_within;
                    (taken, count)
                }
                Err(_) if was_between => return Err(self.input.trailing("lz4")),
                Err(name) => {
                    return Err(self.input.damaged(&format!("lz4 stream is damaged ({name})")));
                }
            };
            self.input.consume(taken);
            self.has_begun = true;
            if count > 0 {
                return Ok(count);
            }
            if is_over {
                return Err(self.input.truncated("lz4"));
            }
        }
        Ok(0)
    }
}

/// A context of liblz4.
struct Context(LZ4FDecompressionContext);

/// The result of a call.
struct Step {
    taken: usize,
    count: usize,
    /// Whether the frame continues.
    is_within: bool,
}

impl Context {
    fn new() -> io::Result<Self> {
        let mut context = LZ4FDecompressionContext(std::ptr::null_mut());
        // SAFETY: the pointer refers to a variable, which the function sets.
        let code = unsafe { LZ4F_createDecompressionContext(&mut context, LZ4F_VERSION) };
        error_of(code).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Self(context))
    }

    /// Decompresses some of `input` into `output`. The error is its name.
    fn decompress(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, String> {
        let (mut taken, mut count) = (input.len(), output.len());
        // SAFETY: the context is valid, and the pointers and lengths describe slices. The function keeps none of them.
        let code = unsafe {
            LZ4F_decompress(
                self.0,
                output.as_mut_ptr(),
                &mut count,
                input.as_ptr(),
                &mut taken,
                std::ptr::null(),
            )
        };
        let hint = error_of(code)?;
        Ok(Step { taken, count, is_within: hint != 0 })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context was created, and is not used again.
        unsafe { LZ4F_freeDecompressionContext(self.0) };
    }
}

/// Returns the result of a function, or the name of its error.
fn error_of(code: usize) -> Result<usize, String> {
    // SAFETY: the functions take any number, and the name is a static string.
    unsafe {
        match LZ4F_isError(code) {
            0 => Ok(code),
            _ => Err(CStr::from_ptr(LZ4F_getErrorName(code)).to_string_lossy().into_owned()),
        }
    }
}

/// Returns the frames of a file. `None` if one does not state the size of its content.
pub(super) fn units(storage: &dyn Storage, mut units: Units) -> io::Result<Option<Vec<Unit>>> {
    let (mut offset, size) = (0, storage.size());
    while offset < size {
        let mut header = [0; 15];
        let length = header.len().min((size - offset) as usize);
        storage.read_exact_at(&mut header[..length], offset)?;
        let magic = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
        let number = u64::from(u32::from_le_bytes([header[4], header[5], header[6], header[7]]));
        let (start, content) =
            (offset, u64::from_le_bytes(header[6..14].try_into().unwrap_or_default()));
        if magic & !0xf == SKIPPABLE && length >= 8 {
            offset += 8 + number;
            if offset > size {
                return Err(damaged("lz4 stream is truncated"));
            }
            units.push(offset - start, 0)?;
            continue;
        }
        let flags = header[4];
        // A size of 0 means none.
        if magic != MAGIC || flags & HAS_SIZE == 0 || length < header.len() || content == 0 {
            return Ok(None);
        }
        let dictionary = if flags & HAS_DICTIONARY == 0 { 0 } else { 4 };
        offset += 4 + 2 + 8 + dictionary + 1;
        loop {
            let mut block = [0; 4];
            if size.saturating_sub(offset) < 4 {
                return Err(damaged("lz4 stream is truncated"));
            }
            storage.read_exact_at(&mut block, offset)?;
            offset += 4;
            let block = u32::from_le_bytes(block);
            if block == 0 {
                break;
            }
            // The highest bit says that the block is stored as it is.
            offset += u64::from(block & !(1 << 31))
                + if flags & HAS_BLOCK_CHECKSUMS == 0 { 0 } else { 4 };
        }
        offset += if flags & HAS_CHECKSUM == 0 { 0 } else { 4 };
        if offset > size {
            return Err(damaged("lz4 stream is truncated"));
        }
        units.push(offset - start, content)?;
    }
    Ok(Some(units.finish()))
}

const MAGIC: u32 = 0x184d_2204;
const LEGACY_MAGIC: [u8; 4] = 0x184c_2102_u32.to_le_bytes();
const SKIPPABLE: u32 = 0x184d_2a50;
const HAS_DICTIONARY: u8 = 1;
const HAS_CHECKSUM: u8 = 1 << 2;
const HAS_SIZE: u8 = 1 << 3;
const HAS_BLOCK_CHECKSUMS: u8 = 1 << 4;
