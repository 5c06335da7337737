//! Botan 2, through its C interface.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

use blkhash::Algorithm;

use super::{Absent, Contestant, Entry};

const ALGORITHMS: [(Algorithm, &CStr); 14] = [
    (Algorithm::Crc32, c"CRC32"),
    (Algorithm::Md5, c"MD5"),
    (Algorithm::Sha1, c"SHA-160"),
    (Algorithm::Sha224, c"SHA-224"),
    (Algorithm::Sha256, c"SHA-256"),
    (Algorithm::Sha384, c"SHA-384"),
    (Algorithm::Sha512, c"SHA-512"),
    (Algorithm::Sha512_256, c"SHA-512-256"),
    (Algorithm::Sha3_224, c"SHA-3(224)"),
    (Algorithm::Sha3_256, c"SHA-3(256)"),
    (Algorithm::Sha3_384, c"SHA-3(384)"),
    (Algorithm::Sha3_512, c"SHA-3(512)"),
    (Algorithm::Blake2b256, c"BLAKE2b(256)"),
    (Algorithm::Blake2b512, c"BLAKE2b(512)"),
];

pub fn contestants() -> impl Iterator<Item = Entry> {
    ALGORITHMS.into_iter().map(|(algorithm, name)| {
        if new_hash(name).is_none() {
            let name = format!("{algorithm} (Botan)");
            return Err(Absent { name, reason: "not in this build of Botan".to_owned() });
        }
        Ok(Contestant::one(algorithm, "Botan", move || {
            let hash = new_hash(name).expect("it was there before");
            move |input: &[u8], out: &mut [u8]| {
                // SAFETY: `hash` is a hash of this algorithm and is never freed. `out` is as long
                // as its digest. `final` resets the hash.
                let failed = unsafe {
                    botan_hash_update(hash, input.as_ptr(), input.len())
                        | botan_hash_final(hash, out.as_mut_ptr())
                };
                assert_eq!(failed, 0, "Botan failed");
            }
        }))
    })
}

fn new_hash(name: &CStr) -> Option<*mut c_void> {
    let mut hash = ptr::null_mut();
    // SAFETY: the name ends with NUL, and `hash` receives the new object.
    let failed = unsafe { botan_hash_init(&raw mut hash, name.as_ptr(), 0) };
    (failed == 0).then_some(hash)
}

unsafe extern "C" {
    fn botan_hash_init(hash: *mut *mut c_void, name: *const c_char, flags: u32) -> c_int;
    fn botan_hash_update(hash: *mut c_void, input: *const u8, length: usize) -> c_int;
    fn botan_hash_final(hash: *mut c_void, out: *mut u8) -> c_int;
}
