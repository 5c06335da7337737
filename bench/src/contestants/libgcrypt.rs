//! libgcrypt, through gcry_md_hash_buffer.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;

use blkhash::Algorithm;

use super::{Contestant, Entry};

/// The algorithm numbers of gcrypt.h.
const ALGORITHMS: [(Algorithm, c_int); 16] = [
    (Algorithm::Crc32, 302),
    (Algorithm::Md5, 1),
    (Algorithm::Sha1, 2),
    (Algorithm::Sha224, 11),
    (Algorithm::Sha256, 8),
    (Algorithm::Sha384, 9),
    (Algorithm::Sha512, 10),
    (Algorithm::Sha512_224, 328),
    (Algorithm::Sha512_256, 327),
    (Algorithm::Sha3_224, 312),
    (Algorithm::Sha3_256, 313),
    (Algorithm::Sha3_384, 314),
    (Algorithm::Sha3_512, 315),
    (Algorithm::Blake2b256, 320),
    (Algorithm::Blake2b512, 318),
    (Algorithm::Blake2s256, 322),
];

pub fn contestants() -> impl Iterator<Item = Entry> {
    // SAFETY: null requests no particular version, and the two commands read no further argument.
    unsafe {
        gcry_check_version(ptr::null());
        gcry_control(DISABLE_SECMEM, 0 as c_int);
        gcry_control(INITIALIZATION_FINISHED, 0 as c_int);
    }
    ALGORITHMS.into_iter().map(|(algorithm, number)| {
        Ok(Contestant::one(algorithm, "libgcrypt", move || {
            move |input: &[u8], out: &mut [u8]| {
                // SAFETY: `out` is as long as the digest of this algorithm.
                unsafe {
                    gcry_md_hash_buffer(
                        number,
                        out.as_mut_ptr().cast(),
                        input.as_ptr().cast(),
                        input.len(),
                    );
                }
            }
        }))
    })
}

const DISABLE_SECMEM: c_uint = 37;
const INITIALIZATION_FINISHED: c_uint = 38;

unsafe extern "C" {
    fn gcry_check_version(wanted: *const c_char) -> *const c_char;
    fn gcry_control(command: c_uint, ...) -> c_uint;
    fn gcry_md_hash_buffer(algo: c_int, digest: *mut c_void, buffer: *const c_void, length: usize);
}
