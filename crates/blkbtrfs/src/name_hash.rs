//! Computes another name with the same checksum.
//!
//! Folders of btrfs find names by their CRC-32C, which is linear. For any first bytes of a name,
//! exactly one choice of the last four bytes gives the wanted checksum. For one in some hundred
//! choices of the first bytes, these four are printable.

use blkhash::{Algorithm, Digester};

/// Reason why there is no other name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoObscureName {
    /// Names of up to four bytes have unique checksums.
    #[error("names of fewer than 5 bytes have checksums of their own")]
    TooShort,
    /// File systems do not support names of this length.
    #[error("a name has 255 bytes at most")]
    TooLong,
    /// All candidates were tried.
    #[error("no other printable name of this length has its checksum")]
    None,
}

/// Returns the hash by which a folder of btrfs finds `name`. It is a CRC-32C with the start value
/// 0xfffffffe and without inversion.
pub fn name_hash(name: &[u8]) -> u32 {
    crc32c(!1, name)
}

/// Returns the CRC-32C with the start value `start` and without inversion.
pub(crate) fn crc32c(start: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(start, |crc, byte| step(crc, *byte))
}

/// Returns another name with the length and the CRC-32C of `name`, and so with the same
/// [`name_hash`]. The name is printable ASCII without slashes, and only letters and digits if such
/// a name is found. The result is the same for each call.
///
/// # Errors
///
/// Fails if there is none. Names of five bytes may have no other name. Longer names have one.
pub fn obscure_name(name: &[u8]) -> Result<Vec<u8>, NoObscureName> {
    match name.len() {
        0..5 => return Err(NoObscureName::TooShort),
        5..=MAX_NAME => {}
        _ => return Err(NoObscureName::TooLong),
    }
    let printable: Vec<u8> = (b'!'..=b'~').filter(|byte| *byte != b'/').collect();
    let alphanumeric: Vec<u8> = (b'0'..=b'z').filter(u8::is_ascii_alphanumeric).collect();
    let found = search(name, &alphanumeric).or_else(|| search(name, &printable));
    found.ok_or(NoObscureName::None)
}

/// Tries first parts made of `alphabet` until the last part is made of it, too.
fn search(name: &[u8], alphabet: &[u8]) -> Option<Vec<u8>> {
    let digest = Digester::new(Algorithm::Crc32c).digest(name);
    // Undoes the final inversion, which is the same for all names.
    let wanted = !u32::from_be_bytes(*digest.as_bytes().first_chunk()?);
    let head = name.len() - TAIL;
    let base = alphabet.len() as u64;
    let all = (0..head).try_fold(1u64, |all, _| all.checked_mul(base)).unwrap_or(u64::MAX);
    let mut candidate = name.to_vec();
    for number in 0..all.min(MAX_TRIES) {
        // Multiplying by a prime visits each first part once, in pseudo-random order.
        let seed = u128::from(number) * u128::from(MIX) + u128::from(wanted);
        let mut mixed = (seed % u128::from(all)) as u64;
        for byte in &mut candidate[..head] {
            *byte = alphabet[(mixed % base) as usize];
            mixed /= base;
            if all == u64::MAX {
                // There are more first parts than numbers.
                mixed = mixed.wrapping_add(number).wrapping_mul(MIX);
            }
        }
        let crc = candidate[..head].iter().fold(!0, |crc, byte| step(crc, *byte));
        candidate[head..].copy_from_slice(&tail(crc, wanted));
        if candidate != name && candidate[head..].iter().all(|byte| alphabet.contains(byte)) {
            return Some(candidate);
        }
    }
    None
}

/// Returns the four bytes that change the checksum from `from` to `to`.
fn tail(from: u32, to: u32) -> [u8; TAIL] {
    // Goes backwards. The high byte of each value shows which entry of the table was used.
    let mut value = to;
    for _ in 0..TAIL {
        let index = (0..=u8::MAX).find(|index| TABLE[usize::from(*index)] >> 24 == value >> 24);
        let index = index.expect("high bytes of the table are all different");
        value = (value ^ TABLE[usize::from(index)]) << 8 | u32::from(index);
    }
    // After four bytes, the register depends on their xor with its old value.
    (value ^ from).to_le_bytes()
}

fn step(crc: u32, byte: u8) -> u32 {
    crc >> 8 ^ TABLE[usize::from(crc as u8 ^ byte)]
}

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < table.len() {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ CASTAGNOLI } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

/// Polynomial of CRC-32C, reflected.
const CASTAGNOLI: u32 = 0x82f6_3b78;

/// Number of bytes that a checksum of 32 bits determines.
const TAIL: usize = 4;

const MAX_NAME: usize = 255;

/// One in 56 first parts has a printable last part, and one in 290 has one of letters and digits.
/// That many failures in a row do not occur.
const MAX_TRIES: u64 = 1 << 20;

/// A prime.
const MIX: u64 = 0xd6e8_feb8_6659_fd93;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn obscure_name_has_the_same_checksum() {
        let digester = Digester::new(Algorithm::Crc32c);
        let long = [b'x'; 255];
        let names: [&[u8]; 7] = [
            b"secret",
            b"passwd",
            b"a file.txt",
            b"aaaaaa",
            "größe".as_bytes(),
            b"id_rsa.pub",
            &long,
        ];
        for name in names {
            let other = obscure_name(name).unwrap();
            assert_eq!(other.len(), name.len());
            assert_ne!(other, name);
            assert!(other.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'/'));
            assert_eq!(digester.digest(&other), digester.digest(name));
            assert_eq!(name_hash(&other), name_hash(name));
            assert_eq!(obscure_name(name).unwrap(), other);
        }
    }

    #[test]
    fn names_of_six_bytes_have_an_obscure_name() {
        for number in 0..300u32 {
            let name = format!("{:06}", number.wrapping_mul(2_654_435_761) % 1_000_000);
            assert!(obscure_name(name.as_bytes()).is_ok(), "{name}");
        }
    }

    #[test]
    fn short_and_long_names_are_refused() {
        assert_eq!(obscure_name(b"name"), Err(NoObscureName::TooShort));
        assert_eq!(obscure_name(b""), Err(NoObscureName::TooShort));
        assert_eq!(obscure_name(&[b'x'; 256]), Err(NoObscureName::TooLong));
        let fives = (0..100).map(|number| obscure_name(format!("n{number:04}").as_bytes()));
        let (found, none): (Vec<_>, Vec<_>) = fives.partition(Result::is_ok);
        // About one in six has none, because each of 93 first parts has a chance of 1 in 56.
        assert!(found.len() > 50 && none.iter().all(|it| *it == Err(NoObscureName::None)));
    }

    #[test]
    fn name_hash_matches_that_of_folders() {
        // As in btrfs inspect-internal dump-tree, for the root tree's folder item "default".
        assert_eq!(name_hash(b"default"), 2_378_154_706);
    }
}
