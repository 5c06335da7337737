//! Facts about algorithms that do not affect any checksum. An algorithm without a row shows dashes,
//! and no support in Linux.

use blkhash::Algorithm;

/// Facts about an algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Trivia {
    /// Licence of the reference code, if known. All of these are compatible with GPL-2, so kernels and boot loaders may
    /// use the code.
    pub licence: Option<&'static str>,
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

impl Trivia {
    /// Returns the row of an algorithm.
    pub fn of(algorithm: Algorithm) -> Self {
        use Linux::{Absent, Crypto, Library};
        let (licence, linux, used_by): (_, _, &[_]) = match algorithm {
            Algorithm::Null | Algorithm::Sha512_224 => (FREE, Absent, &[]),
            Algorithm::Crc32 => {
                (FREE, Crypto("crc32"), &["F2FS", "GPT", "gzip", "PNG", "Ethernet"])
            }
            Algorithm::Crc32c => (
                FREE,
                Crypto("crc32c"),
                &["btrfs", "ext4", "XFS", "bcachefs", "iSCSI", "NVMe", "Ceph"],
            ),
            Algorithm::Crc64 => (FREE, Library, &["bcache", "bcachefs"]),
            Algorithm::Crc64Nvme => (FREE, Library, &["NVMe", "S3"]),
            Algorithm::Xxh64 => (BSD, Crypto("xxhash64"), &["btrfs", "bcachefs", "zstd"]),
            Algorithm::Xxh3 => (BSD, Absent, &["RocksDB", "rsync"]),
            Algorithm::Xxh128 => (BSD, Absent, &["rsync"]),
            Algorithm::SipHash => (CC0, Library, &["hash tables of Linux"]),
            Algorithm::Md5 => (FREE, Crypto("md5"), &["S3 ETags", "Debian packages"]),
            Algorithm::Sha1 => (FREE, Crypto("sha1"), &["git"]),
            Algorithm::Sha224 => (FREE, Crypto("sha224"), &[]),
            Algorithm::Sha256 => (
                FREE,
                Crypto("sha256"),
                &["btrfs", "ZFS", "dm-verity", "fs-verity", "git", "OCI", "SHA256SUMS"],
            ),
            Algorithm::Sha384 => (FREE, Crypto("sha384"), &["IMA"]),
            Algorithm::Sha512 => {
                (FREE, Crypto("sha512"), &["dm-verity", "fs-verity", "OCI", "Glance"])
            }
            Algorithm::Sha512_256 => (FREE, Absent, &["ZFS"]),
            Algorithm::Sha3_224 => (CC0, Crypto("sha3-224"), &[]),
            Algorithm::Sha3_256 => (CC0, Crypto("sha3-256"), &["IMA"]),
            Algorithm::Sha3_384 => (CC0, Crypto("sha3-384"), &["IMA"]),
            Algorithm::Sha3_512 => (CC0, Crypto("sha3-512"), &["IMA"]),
            Algorithm::Blake2b256 => (CC0, Crypto("blake2b-256"), &["btrfs", "oVirt"]),
            Algorithm::Blake2b512 => (CC0, Crypto("blake2b-512"), &["b2sum", "Argon2 of LUKS2"]),
            Algorithm::Blake2s256 => (CC0, Library, &["WireGuard", "random numbers of Linux"]),
            Algorithm::Blake3 => (CC0, Absent, &["ZFS", "Bazel"]),
            _ => return Self { licence: None, linux: Absent, used_by: &[] },
        };
        Self { licence: Some(licence), linux, used_by }
    }
}

/// A standard or specification that is free to implement.
const FREE: &str = "public domain";

const BSD: &str = "BSD-2-Clause";

const CC0: &str = "CC0-1.0";
