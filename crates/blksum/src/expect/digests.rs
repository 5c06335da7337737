//! The digests that a value can be of, by its length.

use blkhash::{Algorithm, Strength};

/// Returns the digests of a length in bytes, the most common ones first. A checksum that anyone can forge is none of
/// them where a cryptographic digest has that length: it would take less to match it.
pub fn digests_of_size(size: usize) -> Vec<Algorithm> {
    let mut found = all_of_size(size);
    if found.iter().any(is_hard) {
        found.retain(is_hard);
    }
    found.sort_by_key(|it| COMMON.iter().position(|common| common == it).unwrap_or(COMMON.len()));
    found
}

/// Returns the digests of a length in bytes that [`digests_of_size`] leaves out.
pub fn untried_of_size(size: usize) -> Vec<Algorithm> {
    let tried = digests_of_size(size);
    all_of_size(size).into_iter().filter(|it| !tried.contains(it)).collect()
}

/// Returns all digests without a key of a length in bytes.
fn all_of_size(size: usize) -> Vec<Algorithm> {
    let is_usable = |it: &Algorithm| {
        it.digest_size() == size && size > 0 && it.properties().strength != Strength::Keyed
    };
    Algorithm::ALL.iter().copied().filter(is_usable).collect()
}

fn is_hard(algorithm: &Algorithm) -> bool {
    !matches!(algorithm.properties().strength, Strength::None | Strength::ErrorDetection)
}

/// The most common digests in check files.
const COMMON: [Algorithm; 9] = [
    Algorithm::Md5,
    Algorithm::Sha1,
    Algorithm::Crc32,
    Algorithm::Sha256,
    Algorithm::Sha384,
    Algorithm::Sha512,
    Algorithm::Blake2b512,
    Algorithm::Blake3,
    Algorithm::Blake2b256,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_of_a_length() {
        let names = |size| digests_of_size(size).iter().map(|it| it.name()).collect::<Vec<_>>();
        assert_eq!(names(16), ["md5"], "xxh128 can be forged");
        assert_eq!(names(20), ["sha1"]);
        assert_eq!(names(32)[..3], ["sha256", "blake3", "blake2b256"]);
        assert_eq!(names(64)[..2], ["sha512", "blake2b512"]);
        assert!(names(4).contains(&"crc32c") && names(8).contains(&"crc64nvme"));
        assert!(names(0).is_empty() && names(33).is_empty());
        assert_eq!(untried_of_size(16), [Algorithm::Xxh128]);
        assert!([0, 4, 8, 20, 32, 64].iter().all(|size| untried_of_size(*size).is_empty()));
    }
}
