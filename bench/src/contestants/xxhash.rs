//! The C implementation of xxHash by its author, as built by Debian.

use blkhash::Algorithm;

use super::{Contestant, Entry};

pub fn contestants() -> Vec<Entry> {
    vec![
        Ok(Contestant::one(Algorithm::Xxh64, "libxxhash", || {
            |input: &[u8], out: &mut [u8]| {
                // SAFETY: the input has the given length.
                let value = unsafe { XXH64(input.as_ptr(), input.len(), 0) };
                out.copy_from_slice(&value.to_be_bytes());
            }
        })),
        Ok(Contestant::one(Algorithm::Xxh3, "libxxhash", || {
            |input: &[u8], out: &mut [u8]| {
                // SAFETY: as above.
                let value = unsafe { XXH3_64bits(input.as_ptr(), input.len()) };
                out.copy_from_slice(&value.to_be_bytes());
            }
        })),
        Ok(Contestant::one(Algorithm::Xxh128, "libxxhash", || {
            |input: &[u8], out: &mut [u8]| {
                // SAFETY: as above.
                let value = unsafe { XXH3_128bits(input.as_ptr(), input.len()) };
                out[..8].copy_from_slice(&value.high.to_be_bytes());
                out[8..].copy_from_slice(&value.low.to_be_bytes());
            }
        })),
    ]
}

#[repr(C)]
struct Hash128 {
    low: u64,
    high: u64,
}

unsafe extern "C" {
    fn XXH64(input: *const u8, length: usize, seed: u64) -> u64;
    fn XXH3_64bits(input: *const u8, length: usize) -> u64;
    fn XXH3_128bits(input: *const u8, length: usize) -> Hash128;
}
