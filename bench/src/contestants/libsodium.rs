//! libsodium.

use std::ffi::{c_int, c_ulonglong};
use std::ptr;

use blkhash::Algorithm;

use super::{Absent, Contestant, Entry};

pub fn contestants() -> Vec<Entry> {
    // SAFETY: it takes no arguments, and may be called more than once.
    if unsafe { sodium_init() } < 0 {
        let name = "libsodium".to_owned();
        return vec![Err(Absent { name, reason: "sodium_init failed".to_owned() })];
    }
    let blake2b = |algorithm| {
        Contestant::one(algorithm, "libsodium", || {
            |input: &[u8], out: &mut [u8]| {
                // SAFETY: both buffers have the given lengths, and there is no key.
                unsafe {
                    crypto_generichash_blake2b(
                        out.as_mut_ptr(),
                        out.len(),
                        input.as_ptr(),
                        input.len() as c_ulonglong,
                        ptr::null(),
                        0,
                    );
                }
            }
        })
    };
    vec![
        Ok(Contestant::one(Algorithm::Sha256, "libsodium", || {
            |input: &[u8], out: &mut [u8]| {
                // SAFETY: the digest is 32 bytes long.
                unsafe {
                    crypto_hash_sha256(out.as_mut_ptr(), input.as_ptr(), input.len() as c_ulonglong)
                };
            }
        })),
        Ok(Contestant::one(Algorithm::Sha512, "libsodium", || {
            |input: &[u8], out: &mut [u8]| {
                // SAFETY: the digest is 64 bytes long.
                unsafe {
                    crypto_hash_sha512(out.as_mut_ptr(), input.as_ptr(), input.len() as c_ulonglong)
                };
            }
        })),
        Ok(blake2b(Algorithm::Blake2b256)),
        Ok(blake2b(Algorithm::Blake2b512)),
        Ok(Contestant::one(Algorithm::SipHash, "libsodium", || {
            |input: &[u8], out: &mut [u8]| {
                let key = [0; 16];
                // SAFETY: the digest is 8 bytes long, and the key 16.
                unsafe {
                    crypto_shorthash(
                        out.as_mut_ptr(),
                        input.as_ptr(),
                        input.len() as c_ulonglong,
                        key.as_ptr(),
                    );
                }
            }
        })),
    ]
}

unsafe extern "C" {
    fn sodium_init() -> c_int;
    fn crypto_hash_sha256(out: *mut u8, input: *const u8, length: c_ulonglong) -> c_int;
    fn crypto_hash_sha512(out: *mut u8, input: *const u8, length: c_ulonglong) -> c_int;
    fn crypto_shorthash(
        out: *mut u8,
        input: *const u8,
        length: c_ulonglong,
        key: *const u8,
    ) -> c_int;
    fn crypto_generichash_blake2b(
        out: *mut u8,
        out_length: usize,
        input: *const u8,
        length: c_ulonglong,
        key: *const u8,
        key_length: usize,
    ) -> c_int;
}
