//! Facts about algorithms that do not affect any checksum. An algorithm without a row shows dashes,
//! and no support in Linux.

use std::fmt;

use blkhash::Algorithm;

/// Facts about an algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Trivia {
    /// Licence of the reference code, if known.
    pub licence: Option<Licence>,
    /// Support in the Linux kernel.
    pub linux: Linux,
    /// Well-known users, file systems first.
    pub used_by: &'static [&'static str],
}

/// Support of an algorithm in the Linux kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linux {
    /// The kernel does not have it.
    Absent,
    /// A function that other kernel code calls.
    Library,
    /// An algorithm of the crypto API, with its name in /proc/crypto.
    Crypto(&'static str),
}

/// Licence of the reference code. All of these are compatible with GPL-2, so kernels and boot loaders
/// may use the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Licence {
    /// A standard or specification that is free to implement.
    PublicDomain,
    /// The two-clause BSD licence.
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

impl Trivia {
    /// Returns the row of an algorithm.
    pub fn of(algorithm: Algorithm) -> Self {
        use Licence::{Bsd2, Cc0, PublicDomain};
        use Linux::{Absent, Crypto, Library};
        let (licence, linux, used_by): (_, _, &[_]) = match algorithm {
            Algorithm::Null | Algorithm::Sha512_224 => (PublicDomain, Absent, &[]),
            Algorithm::Crc32 => {
                (PublicDomain, Crypto("crc32"), &["F2FS", "GPT", "gzip", "PNG", "Ethernet"])
            }
            Algorithm::Crc32c => (
                PublicDomain,
                Crypto("crc32c"),
                &["btrfs", "ext4", "XFS", "bcachefs", "iSCSI", "NVMe", "Ceph"],
            ),
            Algorithm::Crc64 => (PublicDomain, Library, &["bcache", "bcachefs"]),
            Algorithm::Crc64Nvme => (PublicDomain, Library, &["NVMe", "S3"]),
            Algorithm::Xxh64 => (Bsd2, Crypto("xxhash64"), &["btrfs", "bcachefs", "zstd"]),
            Algorithm::Xxh3 => (Bsd2, Absent, &["RocksDB", "rsync"]),
            Algorithm::Xxh128 => (Bsd2, Absent, &["rsync"]),
            Algorithm::SipHash => (Cc0, Library, &["hash tables of Linux"]),
            Algorithm::Md5 => (PublicDomain, Crypto("md5"), &["S3 ETags", "Debian packages"]),
            Algorithm::Sha1 => (PublicDomain, Crypto("sha1"), &["git"]),
            Algorithm::Sha224 => (PublicDomain, Crypto("sha224"), &[]),
            Algorithm::Sha256 => (
                PublicDomain,
                Crypto("sha256"),
                &["btrfs", "ZFS", "dm-verity", "fs-verity", "git", "OCI", "SHA256SUMS"],
            ),
            Algorithm::Sha384 => (PublicDomain, Crypto("sha384"), &["IMA"]),
            Algorithm::Sha512 => {
                (PublicDomain, Crypto("sha512"), &["dm-verity", "fs-verity", "OCI", "Glance"])
            }
            Algorithm::Sha512_256 => (PublicDomain, Absent, &["ZFS"]),
            Algorithm::Sha3_224 => (Cc0, Crypto("sha3-224"), &[]),
            Algorithm::Sha3_256 => (Cc0, Crypto("sha3-256"), &["IMA"]),
            Algorithm::Sha3_384 => (Cc0, Crypto("sha3-384"), &["IMA"]),
            Algorithm::Sha3_512 => (Cc0, Crypto("sha3-512"), &["IMA"]),
            Algorithm::Blake2b256 => (Cc0, Crypto("blake2b-256"), &["btrfs", "oVirt"]),
            Algorithm::Blake2b512 => (Cc0, Crypto("blake2b-512"), &["b2sum", "Argon2 of LUKS2"]),
            Algorithm::Blake2s256 => (Cc0, Library, &["WireGuard", "random numbers of Linux"]),
            Algorithm::Blake3 => (Cc0, Absent, &["ZFS", "Bazel"]),
            _ => return Self { licence: None, linux: Absent, used_by: &[] },
        };
        Self { licence: Some(licence), linux, used_by }
    }
}
