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

/// Whether the Linux kernel has an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linux {
    /// It does not.
    Absent,
    /// As a function that its own code calls.
    Library,
    /// By this name in its crypto API, as /proc/crypto lists it.
    Crypto(&'static str),
}

/// How the reference code may be used. All of these go together with GPL-2, so kernels and boot
/// loaders may have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Licence {
    /// A standard or specification that everybody may write down as code, and has.
    PublicDomain,
    /// The BSD licence of two clauses.
    Bsd2,
    /// Creative Commons' waiver of all rights.
    Cc0,
}

impl fmt::Display for Licence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::PublicDomain => "public domain",
            Self::Bsd2 => "BSD-2-Clause",
            Self::Cc0 => "CC0-1.0",
        })
    }
}

/// What is known of an [`Algorithm`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
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
    pub linux: Linux,
    /// How the reference code may be used.
    pub licence: Licence,
    /// Well-known users, file systems first.
    pub used_by: &'static [&'static str],
}

impl Properties {
    /// A row of the table, to be completed.
    const fn new(
        name: &'static str,
        aliases: &'static [&'static str],
        digest_size: usize,
        strength: Strength,
    ) -> Self {
        Self {
            name,
            aliases,
            digest_size,
            strength,
            fips: None,
            linux: Linux::Absent,
            licence: Licence::PublicDomain,
            used_by: &[],
        }
    }

    const fn fips(self, standard: &'static str) -> Self {
        Self { fips: Some(standard), ..self }
    }

    const fn linux(self, linux: Linux) -> Self {
        Self { linux, ..self }
    }

    const fn licence(self, licence: Licence) -> Self {
        Self { licence, ..self }
    }

    const fn used_by(self, users: &'static [&'static str]) -> Self {
        Self { used_by: users, ..self }
    }

    /// Whether a digest fits into what btrfs and other file systems leave for it: 32 bytes.
    pub const fn fits_32_bytes(&self) -> bool {
        self.digest_size <= 32
    }
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
        use Linux::{Crypto, Library};
        use Strength::{Broken, Cryptographic, ErrorDetection, Keyed};
        const fn row(
            name: &'static str,
            aliases: &'static [&'static str],
            digest_size: usize,
            strength: Strength,
        ) -> Properties {
            Properties::new(name, aliases, digest_size, strength)
        }
        const FIPS_180: &str = "FIPS 180-4";
        const FIPS_202: &str = "FIPS 202";
        match self {
            Self::Null => row("null", &[], 0, Strength::None),
            Self::Crc32 => row("crc32", &["crc-32"], 4, ErrorDetection)
                .linux(Crypto("crc32"))
                .used_by(&["F2FS", "GPT", "gzip", "PNG", "Ethernet"]),
            Self::Crc32c => row("crc32c", &["crc-32c"], 4, ErrorDetection)
                .linux(Crypto("crc32c"))
                .used_by(&["btrfs", "ext4", "XFS", "bcachefs", "iSCSI", "NVMe", "Ceph"]),
            Self::Crc64 => row("crc64", &["crc64-ecma", "crc-64"], 8, ErrorDetection)
                .linux(Library)
                .used_by(&["bcache", "bcachefs"]),
            Self::Crc64Nvme => row("crc64nvme", &["crc64-nvme"], 8, ErrorDetection)
                .linux(Library)
                .used_by(&["NVMe", "S3"]),
            Self::Xxh64 => row("xxh64", &["xxhash", "xxhash64"], 8, ErrorDetection)
                .linux(Crypto("xxhash64"))
                .licence(Licence::Bsd2)
                .used_by(&["btrfs", "bcachefs", "zstd"]),
            Self::Xxh3 => row("xxh3", &["xxh3-64"], 8, ErrorDetection)
                .licence(Licence::Bsd2)
                .used_by(&["RocksDB", "rsync"]),
            Self::Xxh128 => row("xxh128", &["xxh3-128"], 16, ErrorDetection)
                .licence(Licence::Bsd2)
                .used_by(&["rsync"]),
            Self::SipHash => row("siphash", &["siphash-2-4"], 8, Keyed)
                .linux(Library)
                .licence(Licence::Cc0)
                .used_by(&["hash tables of Linux"]),
            Self::Md5 => row("md5", &[], 16, Broken)
                .linux(Crypto("md5"))
                .used_by(&["S3 ETags", "Debian packages"]),
            Self::Sha1 => row("sha1", &["sha-1"], 20, Broken)
                .fips(FIPS_180)
                .linux(Crypto("sha1"))
                .used_by(&["git"]),
            Self::Sha224 => row("sha224", &["sha-224", "sha2-224"], 28, Cryptographic)
                .fips(FIPS_180)
                .linux(Crypto("sha224")),
            Self::Sha256 => row("sha256", &["sha-256", "sha2-256"], 32, Cryptographic)
                .fips(FIPS_180)
                .linux(Crypto("sha256"))
                .used_by(&["btrfs", "ZFS", "dm-verity", "fs-verity", "git", "OCI", "SHA256SUMS"]),
            Self::Sha384 => row("sha384", &["sha-384", "sha2-384"], 48, Cryptographic)
                .fips(FIPS_180)
                .linux(Crypto("sha384"))
                .used_by(&["IMA"]),
            Self::Sha512 => row("sha512", &["sha-512", "sha2-512"], 64, Cryptographic)
                .fips(FIPS_180)
                .linux(Crypto("sha512"))
                .used_by(&["dm-verity", "fs-verity", "OCI", "Glance"]),
            Self::Sha512_224 => {
                row("sha512-224", &["sha512/224"], 28, Cryptographic).fips(FIPS_180)
            }
            Self::Sha512_256 => row("sha512-256", &["sha512/256"], 32, Cryptographic)
                .fips(FIPS_180)
                .used_by(&["ZFS"]),
            Self::Sha3_224 => row("sha3-224", &[], 28, Cryptographic)
                .fips(FIPS_202)
                .linux(Crypto("sha3-224"))
                .licence(Licence::Cc0),
            Self::Sha3_256 => row("sha3-256", &[], 32, Cryptographic)
                .fips(FIPS_202)
                .linux(Crypto("sha3-256"))
                .licence(Licence::Cc0)
                .used_by(&["IMA"]),
            Self::Sha3_384 => row("sha3-384", &[], 48, Cryptographic)
                .fips(FIPS_202)
                .linux(Crypto("sha3-384"))
                .licence(Licence::Cc0)
                .used_by(&["IMA"]),
            Self::Sha3_512 => row("sha3-512", &[], 64, Cryptographic)
                .fips(FIPS_202)
                .linux(Crypto("sha3-512"))
                .licence(Licence::Cc0)
                .used_by(&["IMA"]),
            Self::Blake2b256 => row("blake2b256", &["blake2b-256"], 32, Cryptographic)
                .linux(Crypto("blake2b-256"))
                .licence(Licence::Cc0)
                .used_by(&["btrfs", "oVirt"]),
            Self::Blake2b512 => row("blake2b512", &["blake2b-512"], 64, Cryptographic)
                .linux(Crypto("blake2b-512"))
                .licence(Licence::Cc0)
                .used_by(&["b2sum", "Argon2 of LUKS2"]),
            Self::Blake2s256 => row("blake2s256", &["blake2s-256", "blake2s"], 32, Cryptographic)
                .linux(Library)
                .licence(Licence::Cc0)
                .used_by(&["WireGuard", "random numbers of Linux"]),
            Self::Blake3 => row("blake3", &["blake3-256"], 32, Cryptographic)
                .licence(Licence::Cc0)
                .used_by(&["ZFS", "Bazel"]),
        }
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
