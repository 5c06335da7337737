//! liblzo2, and a comparison of the decoder with it. The library comes with btrfs-progs.

use std::ffi::{c_int, c_ulong, c_void};
use std::sync::LazyLock;

use blkimage::lzo::{Defect, decompress};
use libloading::{Library, Symbol};

/// A stream of the fast compressor, which the kernel uses, or of the thorough one.
pub fn compress(content: &[u8], is_thorough: bool) -> Vec<u8> {
    let name = if is_thorough { "lzo1x_999_compress" } else { "lzo1x_1_compress" };
    let (status, stream) = call(name, content, content.len() + content.len() / 16 + 67);
    assert_eq!(status, OK, "{name}");
    stream
}

/// Asserts that the decoder and liblzo2 give the same content or both refuse the stream. Returns
/// whether they gave content.
pub fn check(stream: &[u8], limit: usize) -> bool {
    let (status, expected) = call("lzo1x_decompress_safe", stream, limit);
    let found = decompress(stream, limit);
    match found {
        Ok(content) => {
            assert_eq!(status, OK, "{}", stream.escape_ascii());
            assert!(content == expected, "{}", stream.escape_ascii());
            return true;
        }
        Err(Defect::EndMarker(_)) => {
            assert!([OK, INPUT_NOT_CONSUMED].contains(&status), "{}", stream.escape_ascii());
        }
        Err(defect) => assert_ne!(status, OK, "{defect}: {}", stream.escape_ascii()),
    }
    false
}

/// Calls a function of liblzo2. Returns its status, and at most `limit` bytes of output.
fn call(name: &str, input: &[u8], limit: usize) -> (c_int, Vec<u8>) {
    // One byte more than liblzo2 may use, since an empty vector has no memory.
    let (mut output, mut length) = (vec![0xaa_u8; limit + 1], limit as c_ulong);
    let mut memory = vec![0_u64; MEMORY / 8];
    // SAFETY: all functions used here have this signature. `length` is less than the length of `output`, and
    // no function needs more than `MEMORY`.
    let status = unsafe {
        let function: Symbol<'_, Function> = LIBRARY.get(name.as_bytes()).expect(name);
        function(
            input.as_ptr(),
            input.len() as c_ulong,
            output.as_mut_ptr(),
            &mut length,
            memory.as_mut_ptr().cast(),
        )
    };
    assert_eq!(output[limit], 0xaa, "liblzo2 wrote past its limit");
    output.truncate((length as usize).min(limit));
    (status, output)
}

type Function =
    unsafe extern "C" fn(*const u8, c_ulong, *mut u8, *mut c_ulong, *mut c_void) -> c_int;

static LIBRARY: LazyLock<Library> = LazyLock::new(|| {
    // SAFETY: liblzo2 runs no code when it is loaded.
    unsafe { Library::new("liblzo2.so.2") }.expect("liblzo2.so.2, which btrfs-progs needs")
});

const OK: c_int = 0;
const INPUT_NOT_CONSUMED: c_int = -8;

/// Memory of the thorough compressor, which needs the most: 14 * 16384 * sizeof(short).
const MEMORY: usize = 14 * 16384 * 2;
