//! OpenSSL's EVP. Algorithms are fetched outside of the measured time.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;

use blkhash::Algorithm;

use super::{Absent, Contestant, Entry};

const ALGORITHMS: [(Algorithm, &CStr); 14] = [
    (Algorithm::Md5, c"MD5"),
    (Algorithm::Sha1, c"SHA1"),
    (Algorithm::Sha224, c"SHA2-224"),
    (Algorithm::Sha256, c"SHA2-256"),
    (Algorithm::Sha384, c"SHA2-384"),
    (Algorithm::Sha512, c"SHA2-512"),
    (Algorithm::Sha512_224, c"SHA2-512/224"),
    (Algorithm::Sha512_256, c"SHA2-512/256"),
    (Algorithm::Sha3_224, c"SHA3-224"),
    (Algorithm::Sha3_256, c"SHA3-256"),
    (Algorithm::Sha3_384, c"SHA3-384"),
    (Algorithm::Sha3_512, c"SHA3-512"),
    (Algorithm::Blake2b512, c"BLAKE2B-512"),
    (Algorithm::Blake2s256, c"BLAKE2S-256"),
];

pub fn contestants() -> impl Iterator<Item = Entry> {
    ALGORITHMS.into_iter().map(|(algorithm, name)| {
        Evp::new(name).ok_or_else(|| Absent {
            name: format!("{algorithm} (OpenSSL)"),
            reason: "not in this build of OpenSSL".to_owned(),
        })?;
        Ok(Contestant::one(algorithm, "OpenSSL", move || {
            let evp = Evp::new(name).expect("it was there before");
            move |input: &[u8], out: &mut [u8]| evp.hash(input, out)
        }))
    })
}

/// A fetched algorithm and a context for it.
struct Evp {
    algorithm: *mut c_void,
    context: *mut c_void,
}

impl Evp {
    fn new(name: &CStr) -> Option<Self> {
        // SAFETY: the strings end with NUL. Null selects the default library and properties.
        let algorithm = unsafe { EVP_MD_fetch(ptr::null_mut(), name.as_ptr(), ptr::null()) };
        // SAFETY: it takes no arguments.
        let context = unsafe { EVP_MD_CTX_new() };
        (!algorithm.is_null() && !context.is_null()).then_some(Self { algorithm, context })
    }

    fn hash(&self, input: &[u8], out: &mut [u8]) {
        let mut digest = [0; 64];
        // SAFETY: both pointers came from OpenSSL and live as long as `self`. The input has the
        // given length, and no digest is longer than 64 bytes (EVP_MAX_MD_SIZE).
        let ok = unsafe {
            EVP_DigestInit_ex(self.context, self.algorithm, ptr::null_mut())
                & EVP_DigestUpdate(self.context, input.as_ptr().cast(), input.len())
                & EVP_DigestFinal_ex(self.context, digest.as_mut_ptr(), ptr::null_mut())
        };
        assert_eq!(ok, 1, "OpenSSL failed");
        out.copy_from_slice(&digest[..out.len()]);
    }
}

unsafe extern "C" {
    fn EVP_MD_fetch(
        library: *mut c_void,
        name: *const c_char,
        properties: *const c_char,
    ) -> *mut c_void;
    fn EVP_MD_CTX_new() -> *mut c_void;
    fn EVP_DigestInit_ex(context: *mut c_void, md: *const c_void, engine: *mut c_void) -> c_int;
    fn EVP_DigestUpdate(context: *mut c_void, data: *const c_void, length: usize) -> c_int;
    fn EVP_DigestFinal_ex(context: *mut c_void, md: *mut u8, size: *mut c_uint) -> c_int;
}
