//! The checksums of coreutils that are not digests (`sum`, `sum -s`, `cksum`), as plain loops.

use super::{Contestant, Entry};

pub fn contestants() -> Vec<Entry> {
    vec![
        Ok(Contestant::foreign("sum, BSD (coreutils, plain loop)", 2, |input, out| {
            out.copy_from_slice(&bsd(input).to_be_bytes());
        })),
        Ok(Contestant::foreign("sum -s, System V (coreutils, plain loop)", 2, |input, out| {
            out.copy_from_slice(&system_v(input).to_be_bytes());
        })),
        Ok(Contestant::foreign("cksum, POSIX CRC (coreutils, table)", 4, |input, out| {
            out.copy_from_slice(&cksum(input).to_be_bytes());
        })),
    ]
}

fn bsd(input: &[u8]) -> u16 {
    input.iter().fold(0, |sum: u16, &byte| sum.rotate_right(1).wrapping_add(byte.into()))
}

fn system_v(input: &[u8]) -> u16 {
    let sum = input.iter().fold(0, |sum: u32, &byte| sum.wrapping_add(byte.into()));
    let folded = (sum & 0xffff) + (sum >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}

fn cksum(input: &[u8]) -> u32 {
    let length = (input.len() as u64).to_le_bytes();
    let length = &length[..8 - (input.len() as u64).leading_zeros() as usize / 8];
    let step = |crc: u32, &byte: &u8| (crc << 8) ^ TABLE[(crc >> 24) as usize ^ usize::from(byte)];
    !input.iter().chain(length).fold(0, step)
}

static TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc << 1) ^ if crc >> 31 == 1 { 0x04c1_1db7 } else { 0 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the output of `printf 123456789 | sum`, `sum -s` and `cksum`.
    #[test]
    fn values_of_coreutils() {
        assert_eq!(bsd(b"123456789"), 53_615);
        assert_eq!(system_v(b"123456789"), 477);
        assert_eq!(cksum(b"123456789"), 930_766_865);
        assert_eq!(cksum(b""), 4_294_967_295);
    }
}
