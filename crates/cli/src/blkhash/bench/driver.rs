//! The drivers of the running kernel for the checksums of btrfs, and the implementations here that resemble them.
//!
//! btrfs uses the driver with the highest priority in /proc/crypto, one block at a time. Its speed cannot be measured
//! from here. Code of the same kind, which computes one block at a time as well, is about as fast.

use blkbtrfs::ChecksumType;
use blkhash::{Implementation, Status, implementations};

use crate::blkhash::kernel::Driver;

/// Code that resembles a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Like {
    /// An implementation of this program.
    Implementation(&'static Implementation),
    /// A table of CRC-32C.
    Table,
}

/// Returns the driver that a mount would use, if its module is loaded.
pub fn used(drivers: &[Driver], kind: ChecksumType) -> Option<&str> {
    // The list begins with the highest priority.
    let driver = drivers.iter().find(|driver| driver.name == kernel_name(kind))?;
    Some(&driver.driver)
}

/// Returns what resembles a driver, or `None` if nothing here does.
pub fn like(driver: &str, kind: ChecksumType) -> Option<Like> {
    let is_generic = driver.ends_with("-generic");
    let all = implementations(kind.algorithm());
    let portable = || all.iter().find(|known| known.feature.is_none());
    let with_instructions = || {
        all.iter().find(|known| {
            known.lanes == 1 && known.feature.is_some() && known.status == Status::Ready
        })
    };
    let found = match kind {
        ChecksumType::Crc32c if is_generic => return Some(Like::Table),
        // The kernel has these in plain C only.
        ChecksumType::Crc32c | ChecksumType::Xxhash | ChecksumType::Blake2b => portable(),
        ChecksumType::Sha256 if is_generic => portable(),
        // Streams of SSSE3 or AVX2, which are not written here.
        ChecksumType::Sha256 if VECTORS.iter().any(|end| driver.ends_with(end)) => None,
        ChecksumType::Sha256 => with_instructions(),
    };
    found.map(Like::Implementation)
}

/// Returns the name of a checksum in the crypto API of the kernel.
fn kernel_name(kind: ChecksumType) -> &'static str {
    match kind {
        ChecksumType::Xxhash => "xxhash64",
        ChecksumType::Blake2b => "blake2b-256",
        kind => kind.name(),
    }
}

/// Ends of the names of drivers that use vectors for a single stream.
const VECTORS: [&str; 4] = ["-ssse3", "-avx", "-avx2", "-neon"];

#[cfg(test)]
mod tests {
    use super::*;

    fn driver(name: &str, driver: &str) -> Driver {
        Driver { name: name.into(), driver: driver.into(), ..Driver::default() }
    }

    #[test]
    fn drivers_of_a_kernel() {
        let drivers = [
            driver("sha256", "sha256-ni"),
            driver("sha256", "sha256-generic"),
            driver("xxhash64", "xxhash64-generic"),
        ];
        assert_eq!(used(&drivers, ChecksumType::Sha256), Some("sha256-ni"));
        assert_eq!(used(&drivers, ChecksumType::Xxhash), Some("xxhash64-generic"));
        assert_eq!(used(&drivers, ChecksumType::Blake2b), None);
    }

    #[test]
    fn code_of_the_same_kind() {
        let variant = |driver, kind| match like(driver, kind)? {
            Like::Implementation(known) => Some(known.variant),
            Like::Table => Some("table"),
        };
        assert_eq!(variant("crc32c-generic", ChecksumType::Crc32c), Some("table"));
        assert_eq!(variant("crc32c-intel", ChecksumType::Crc32c), Some("crc_fast"));
        assert_eq!(variant("crc32c-lib", ChecksumType::Crc32c), Some("crc_fast"));
        assert_eq!(variant("xxhash64-generic", ChecksumType::Xxhash), Some("soft"));
        assert_eq!(variant("blake2b-256-generic", ChecksumType::Blake2b), Some("soft"));
        assert_eq!(variant("sha256-generic", ChecksumType::Sha256), Some("soft"));
        assert_eq!(variant("sha256-avx2", ChecksumType::Sha256), None);
        for name in ["sha256-ni", "sha256-lib", "sha256-ce"] {
            let found = like(name, ChecksumType::Sha256);
            let is_single = |it| match it {
                Like::Implementation(known) => known.lanes == 1 && known.feature.is_some(),
                Like::Table => false,
            };
            assert!(found.is_none_or(is_single), "{found:?}");
        }
    }
}
