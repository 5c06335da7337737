//! Changes any bytes of the structures of real vhdx images, and repairs the checksums: of the
//! headers, region tables and entries of the log.

#![no_main]

mod guest_view;

use blkhash::{Algorithm, Digester};
use blkimage::Format;
use guest_view::{Seeds, check_changed, seeds};
use libfuzzer_sys::fuzz_target;

static SEEDS: Seeds = Seeds::new(|| seeds("vhdx", &["", "block_size=1M,log_size=1M"]));

fuzz_target!(|data: &[u8]| check_changed(&SEEDS, data, Format::Vhdx, repair));

fn repair(image: &mut [u8]) {
    for start in (0..image.len() / KIB * KIB).step_by(4 * KIB) {
        let length = match &image[start..start + 4] {
            b"head" => 4 * KIB,
            b"regi" => 64 * KIB,
            b"loge" => {
                let length = image[start + 8..start + 12].try_into().map(u32::from_le_bytes);
                length.unwrap() as usize
            }
            _ => continue,
        };
        if length < 8 || start + length > image.len() || length > MAX_ENTRY {
            continue;
        }
        image[start + 4..start + 8].fill(0);
        let digest = Digester::new(Algorithm::Crc32c).digest(&image[start..start + length]);
        let mut sum = <[u8; 4]>::try_from(digest.as_bytes()).unwrap();
        sum.reverse();
        image[start + 4..start + 8].copy_from_slice(&sum);
    }
}

const KIB: usize = 1 << 10;
const MAX_ENTRY: usize = 1 << 20;
