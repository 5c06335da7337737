//! Opens any bytes as a segment of an EWF image, as they are or with the checksums of its sections repaired.

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
    check(&bytes, Format::Ewf);
});

/// Repairs the checksums of descriptors, of the first part of each section, and of the entries of tables.
fn repair(image: &mut [u8]) {
    let mut offset = HEADER;
    for _ in 0..MAX_SECTIONS {
        seal(image, offset, DESCRIPTOR - 4);
        let Some(head) = image.get(offset..offset.saturating_add(DESCRIPTOR)) else { return };
        let kind = head[..16].split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
        let number = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap());
        let (next, size) = (number(16), number(24));
        let data = offset + DESCRIPTOR;
        match &*kind {
            b"volume" | b"disk" | b"data" if size < 1128 => seal(image, data, 90),
            b"volume" | b"disk" | b"data" => seal(image, data, 1048),
            b"hash" | b"session" => seal(image, data, 32),
            b"digest" => seal(image, data, 76),
            b"error2" => seal(image, data, 516),
            b"table" | b"table2" => {
                seal(image, data, 20);
                if let Some(count) = image.get(data..data + 4) {
                    let count = u32::from_le_bytes(count.try_into().unwrap()) as usize;
                    seal(image, data + 24, count.saturating_mul(4));
                }
            }
            _ => {}
        }
        match usize::try_from(next) {
            Ok(next) if next > offset => offset = next,
            _ => return,
        }
    }
}

/// Writes the Adler-32 of a range after it.
fn seal(image: &mut [u8], start: usize, length: usize) {
    let Some(end) = start.checked_add(length) else { return };
    let Some(range) = end.checked_add(4).and_then(|end| image.get_mut(start..end)) else { return };
    let (data, sum) = range.split_at_mut(length);
    let (mut low, mut high) = (1_u32, 0_u32);
    for byte in data.iter() {
        low = (low + u32::from(*byte)) % 65521;
        high = (high + low) % 65521;
    }
    sum.copy_from_slice(&(high << 16 | low).to_le_bytes());
}

const HEADER: usize = 13;
const DESCRIPTOR: usize = 76;
const MAX_SECTIONS: usize = 64;
