//! Opens any bytes as a qcow2 image. The result must be a one-line error, or content that does not
//! depend on the size of the reads and is zero where the extents say so.

#![no_main]

use blkimage::{ExtentKind, Format, Memory, OpenOptions, Source};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let options = OpenOptions::new().format(Format::Qcow2);
    let image = match options.open_storage(Box::new(Memory(data.to_vec())), "fuzz") {
        Ok(image) => image,
        Err(error) => return assert_one_line(&error),
    };
    let size = image.size();
    let mut offset = 0;
    for _ in 0..MAX_EXTENTS {
        if offset == size {
            break;
        }
        let extent = match image.extent(offset, size - offset) {
            Ok(extent) => extent,
            Err(error) => return assert_one_line(&error),
        };
        assert!(extent.offset == offset && extent.length > 0 && extent.end() <= size);
        let length = extent.length.min(MAX_READ);
        let whole = read(&image, offset, length, length);
        for piece in [511, 512, 4096, 70_001] {
            let pieces = read(&image, offset, length, piece);
            match (&whole, &pieces) {
                (Some(whole), Some(pieces)) => assert!(whole == pieces),
                // If both fail, the bytes read before the error depend on the size of the reads.
                (None, None) => {}
                _ => panic!("read in pieces of {piece} bytes and as a whole, only one works"),
            }
        }
        if let (ExtentKind::Zero, Some(bytes)) = (extent.kind, &whole) {
            assert!(blkhash::is_zero(bytes));
        }
        offset = extent.end();
    }
});

fn read(image: &impl Source, offset: u64, length: u64, piece: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0xee; length as usize];
    let mut position = offset;
    for part in bytes.chunks_mut(piece as usize) {
        if let Err(error) = image.read_exact_at(part, position) {
            assert_one_line(&error);
            return None;
        }
        position += part.len() as u64;
    }
    Some(bytes)
}

fn assert_one_line(error: &blkimage::Error) {
    let message = error.to_string();
    assert!(message.starts_with("fuzz: ") && !message.chars().any(char::is_control), "{message}");
}

/// Maximum number of extents to check. Empty tables can describe a very large image.
const MAX_EXTENTS: usize = 64;

/// Maximum number of bytes to read from each extent.
const MAX_READ: u64 = 256 << 10;
