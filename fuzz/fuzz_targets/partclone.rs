//! Opens any bytes as an image of partclone, as they are or with the checksums of its header and of its bitmap repaired.

#![no_main]

mod guest_view;

use blkimage::Format;
use guest_view::check;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((repairs, data)) = data.split_first() else { return };
    let mut bytes = data.to_vec();
    if repairs & 1 != 0 {
        repair(&mut bytes);
    }
    check(&bytes, Format::Partclone);
});

/// Repairs the checksums of the header and of the bitmap.
fn repair(image: &mut [u8]) {
    seal(image, 0, HEADER - 4);
    let Some(blocks) = image.get(60..68) else { return };
    let blocks = u64::from_le_bytes(blocks.try_into().unwrap());
    if let Ok(length) = usize::try_from(blocks.div_ceil(8)) {
        seal(image, HEADER, length);
    }
}

/// Writes the CRC-32 of a range after it, without its last step.
fn seal(image: &mut [u8], start: usize, length: usize) {
    let Some(end) = start.checked_add(length) else { return };
    let Some(range) = end.checked_add(4).and_then(|end| image.get_mut(start..end)) else { return };
    let (data, sum) = range.split_at_mut(length);
    let mut register = u32::MAX;
    for byte in data.iter() {
        register ^= u32::from(*byte);
        for _ in 0..8 {
            register = register >> 1 ^ (0xedb8_8320 & 0_u32.wrapping_sub(register & 1));
        }
    }
    sum.copy_from_slice(&register.to_le_bytes());
}

const HEADER: usize = 110;
