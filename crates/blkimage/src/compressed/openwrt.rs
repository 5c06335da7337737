//! The metadata that the tool `fwtool` of OpenWrt appends to an image: a description, a signature, or both.
//!
//! Each has a trailer of 16 bytes with its length. `zcat` and the upgrade of OpenWrt ignore them.

/// Returns whether `bytes` are such metadata, and nothing else.
pub(super) fn is_metadata(mut bytes: &[u8]) -> bool {
    let mut count = 0;
    while let Some((rest, trailer)) = bytes.split_last_chunk::<TRAILER>() {
        let length = u32::from_be_bytes([trailer[12], trailer[13], trailer[14], trailer[15]]);
        // The length includes the trailer.
        let start = (rest.len() + TRAILER).checked_sub(length as usize);
        let Some(start) = start.filter(|start| *start <= rest.len()) else { return false };
        if trailer[..4] != MAGIC || trailer[8] > MAX_TYPE || trailer[9..12] != [0; 3] {
            return false;
        }
        (bytes, count) = (&rest[..start], count + 1);
    }
    bytes.is_empty() && count > 0
}

/// Maximum length of all metadata after the members of an image of OpenWrt. The tool allows 30 KiB for a description
/// and 1 KiB for a signature.
/// Limit in bytes.
pub(super) const MAX_LENGTH: u64 = 64 << 10;

const TRAILER: usize = 16;
const MAGIC: [u8; 4] = *b"FWx0";
/// A signature is 0, a description 1.
const MAX_TYPE: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn part(kind: u8, content: &[u8]) -> Vec<u8> {
        let length = (content.len() + TRAILER) as u32;
        let mut part = content.to_vec();
        part.extend(MAGIC);
        part.extend([7, 7, 7, 7, kind, 0, 0, 0]);
        part.extend(length.to_be_bytes());
        part
    }

    #[test]
    fn metadata() {
        let description = part(1, b"\0\0\0\0\0\0\0\0{\"version\": 1}");
        let signature = part(0, b"untrusted comment: x\n");
        let both = [&description[..], &signature].concat();
        assert!([&description, &signature, &both].into_iter().all(|it| is_metadata(it)));
        assert!(!is_metadata(b""));
        assert!(!is_metadata(&[b"x", &both[..]].concat()), "something is before it");
        assert!(!is_metadata(&both[1..]), "a part is cut off");
        assert!(!is_metadata(&part(2, b"")));
        for at in 0..16 {
            let mut changed = part(0, b"");
            changed[at] ^= 1;
            // The checksum covers the file, whose content has its own.
            assert_eq!(is_metadata(&changed), (4..9).contains(&at), "byte {at}");
        }
    }
}
