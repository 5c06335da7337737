//! The digests through the crate sha2.

#![cfg(not(target_arch = "aarch64"))]

use crate::algo::kernels::{Entry, Policy};
use crate::algo::rustcrypto::RustCrypto;

pub type Sha384 = RustCrypto<sha2::Sha384>;
pub type Sha512 = RustCrypto<sha2::Sha512>;
pub type Sha512_224 = RustCrypto<sha2::Sha512_224>;
pub type Sha512_256 = RustCrypto<sha2::Sha512_256>;

/// The implementations.
pub const ENTRIES: &[Entry] = &[Entry::library("sha2")];

/// The name of the family of kernels.
pub const FAMILY: &str = "";

/// Creates an empty hash. There is nothing to choose.
pub fn sha384(_accept: &dyn Fn(&Entry) -> bool, _policy: Policy) -> Sha384 {
    Sha384::new()
}

/// Creates an empty hash. There is nothing to choose.
pub fn sha512(_accept: &dyn Fn(&Entry) -> bool, _policy: Policy) -> Sha512 {
    Sha512::new()
}

/// Creates an empty hash. There is nothing to choose.
pub fn sha512_224(_accept: &dyn Fn(&Entry) -> bool, _policy: Policy) -> Sha512_224 {
    Sha512_224::new()
}

/// Creates an empty hash. There is nothing to choose.
pub fn sha512_256(_accept: &dyn Fn(&Entry) -> bool, _policy: Policy) -> Sha512_256 {
    Sha512_256::new()
}
