//! The digest algorithms: one table of names, sizes and properties.

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// A digest algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// No hash at all: an empty digest. What is left of a run is the cost of reading.
    Null,
    /// CRC-32 of IEEE 802.3, as in gzip and zlib.
    Crc32,
    /// CRC-32C (Castagnoli), as in btrfs, ext4 and iSCSI.
    Crc32c,
    /// CRC-64/ECMA-182, the `crc64` of the Linux kernel.
    Crc64,
    /// CRC-64/NVME, as in NVMe and S3.
    Crc64Nvme,
    /// `XXH64` with seed 0.
    Xxh64,
    /// `XXH3`, 64 bits.
    Xxh3,
    /// `XXH3`, 128 bits.
    Xxh128,
    /// SipHash-2-4, 64 bits, with a key of zeros: for comparison only.
    SipHash,
    /// MD5.
    Md5,
    /// SHA-1.
    Sha1,
    /// SHA-224.
    Sha224,
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
    /// SHA-512/224.
    Sha512_224,
    /// SHA-512/256.
    Sha512_256,
    /// SHA3-224.
    Sha3_224,
    /// SHA3-256.
    Sha3_256,
    /// SHA3-384.
    Sha3_384,
    /// SHA3-512.
    Sha3_512,
    /// BLAKE2b with a digest of 256 bits, the `blake2b` of btrfs and oVirt.
    Blake2b256,
    /// BLAKE2b with a digest of 512 bits, the `b2sum` of coreutils.
    Blake2b512,
    /// BLAKE2s with a digest of 256 bits.
    Blake2s256,
    /// BLAKE3.
    Blake3,
}

/// What a digest protects against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strength {
    /// Nothing.
    None,
    /// Accidents only: anybody can make another content with the same digest.
    ErrorDetection,
    /// Once cryptographic; collisions are known.
    Broken,
    /// Accidents and attackers.
    Cryptographic,
    /// Attackers, as long as a secret key is: here the key is zeros.
    Keyed,
}

impl fmt::Display for Strength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::ErrorDetection => "error detection",
            Self::Broken => "broken",
            Self::Cryptographic => "cryptographic",
            Self::Keyed => "keyed",
        })
    }
}

/// What is known of an [`Algorithm`].
#[derive(Clone, Copy, Debug)]
pub struct Properties {
    /// The name, as OpenSSL and blkhash have it.
    pub name: &'static str,
    /// Other names it is found by.
    pub aliases: &'static [&'static str],
    /// Length of the digest in bytes.
    pub digest_size: usize,
    /// What the digest protects against.
    pub strength: Strength,
    /// The standard of NIST that defines it.
    pub fips: Option<&'static str>,
    /// Whether the Linux kernel has it.
    pub linux: bool,
}

impl Algorithm {
    /// Every algorithm, from no hash to the strongest.
    pub const ALL: &'static [Self] = &[
        Self::Null,
        Self::Crc32,
        Self::Crc32c,
        Self::Crc64,
        Self::Crc64Nvme,
        Self::Xxh64,
        Self::Xxh3,
        Self::Xxh128,
        Self::SipHash,
        Self::Md5,
        Self::Sha1,
        Self::Sha224,
        Self::Sha256,
        Self::Sha384,
        Self::Sha512,
        Self::Sha512_224,
        Self::Sha512_256,
        Self::Sha3_224,
        Self::Sha3_256,
        Self::Sha3_384,
        Self::Sha3_512,
        Self::Blake2b256,
        Self::Blake2b512,
        Self::Blake2s256,
        Self::Blake3,
    ];

    /// Its row of the table.
    pub const fn properties(self) -> Properties {
        use Strength::{Broken, Cryptographic, ErrorDetection, Keyed, None as Nothing};
        const FIPS_180: Option<&str> = Some("FIPS 180-4");
        const FIPS_202: Option<&str> = Some("FIPS 202");
        let (name, aliases, digest_size, strength, fips, linux): (_, &[_], _, _, _, _) = match self
        {
            Self::Null => ("null", &[], 0, Nothing, None, true),
            Self::Crc32 => ("crc32", &["crc-32"], 4, ErrorDetection, None, true),
            Self::Crc32c => ("crc32c", &["crc-32c"], 4, ErrorDetection, None, true),
            Self::Crc64 => ("crc64", &["crc64-ecma", "crc-64"], 8, ErrorDetection, None, true),
            Self::Crc64Nvme => ("crc64nvme", &["crc64-nvme"], 8, ErrorDetection, None, true),
            Self::Xxh64 => ("xxh64", &["xxhash", "xxhash64"], 8, ErrorDetection, None, true),
            Self::Xxh3 => ("xxh3", &["xxh3-64"], 8, ErrorDetection, None, false),
            Self::Xxh128 => ("xxh128", &["xxh3-128"], 16, ErrorDetection, None, false),
            Self::SipHash => ("siphash", &["siphash-2-4"], 8, Keyed, None, true),
            Self::Md5 => ("md5", &[], 16, Broken, None, true),
            Self::Sha1 => ("sha1", &["sha-1"], 20, Broken, FIPS_180, true),
            Self::Sha224 => ("sha224", &["sha-224", "sha2-224"], 28, Cryptographic, FIPS_180, true),
            Self::Sha256 => ("sha256", &["sha-256", "sha2-256"], 32, Cryptographic, FIPS_180, true),
            Self::Sha384 => ("sha384", &["sha-384", "sha2-384"], 48, Cryptographic, FIPS_180, true),
            Self::Sha512 => ("sha512", &["sha-512", "sha2-512"], 64, Cryptographic, FIPS_180, true),
            Self::Sha512_224 => ("sha512-224", &["sha512/224"], 28, Cryptographic, FIPS_180, false),
            Self::Sha512_256 => ("sha512-256", &["sha512/256"], 32, Cryptographic, FIPS_180, false),
            Self::Sha3_224 => ("sha3-224", &[], 28, Cryptographic, FIPS_202, true),
            Self::Sha3_256 => ("sha3-256", &[], 32, Cryptographic, FIPS_202, true),
            Self::Sha3_384 => ("sha3-384", &[], 48, Cryptographic, FIPS_202, true),
            Self::Sha3_512 => ("sha3-512", &[], 64, Cryptographic, FIPS_202, true),
            Self::Blake2b256 => ("blake2b256", &["blake2b-256"], 32, Cryptographic, None, true),
            Self::Blake2b512 => ("blake2b512", &["blake2b-512"], 64, Cryptographic, None, true),
            Self::Blake2s256 => {
                ("blake2s256", &["blake2s-256", "blake2s"], 32, Cryptographic, None, true)
            }
            Self::Blake3 => ("blake3", &["blake3-256"], 32, Cryptographic, None, false),
        };
        Properties { name, aliases, digest_size, strength, fips, linux }
    }

    /// The name, as OpenSSL and blkhash have it.
    pub const fn name(self) -> &'static str {
        self.properties().name
    }

    /// Length of the digest in bytes, at most [`MAX_DIGEST_SIZE`].
    pub const fn digest_size(self) -> usize {
        self.properties().digest_size
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = Error;

    /// Finds an algorithm by name or alias, in any case, with `_` for `-` as Python has it.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wanted = text.to_ascii_lowercase().replace('_', "-");
        if wanted == "blake2b" {
            return Err(Error::AmbiguousAlgorithm);
        }
        Self::ALL
            .iter()
            .copied()
            .find(|algorithm| {
                let known = algorithm.properties();
                known.name == wanted || known.aliases.contains(&wanted.as_str())
            })
            .ok_or_else(|| Error::UnknownAlgorithm(text.to_owned()))
    }
}

/// The length of the longest digest in bytes.
pub const MAX_DIGEST_SIZE: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_and_alias_finds_its_algorithm_and_no_other() {
        let mut seen = std::collections::HashSet::new();
        for &algorithm in Algorithm::ALL {
            let known = algorithm.properties();
            for name in known.aliases.iter().chain([&known.name]) {
                assert!(seen.insert(*name), "{name} names two algorithms");
                assert_eq!(name.parse::<Algorithm>().unwrap(), algorithm);
                assert_eq!(name.to_uppercase().parse::<Algorithm>().unwrap(), algorithm);
            }
            assert!(known.digest_size <= MAX_DIGEST_SIZE);
        }
        assert_eq!("sha3_256".parse::<Algorithm>().unwrap(), Algorithm::Sha3_256);
    }

    #[test]
    fn bare_blake2b_is_refused_naming_both() {
        let message = "blake2b".parse::<Algorithm>().unwrap_err().to_string();
        assert!(message.contains("blake2b512") && message.contains("blake2b256"), "{message}");
    }
}
