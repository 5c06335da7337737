//! SHA-512 and the digests that are cut from it. AArch64 has instructions for it, and kernels here
//! that use them. Elsewhere it is the crate sha2.

mod arm_sha;
mod constants;
mod library;
mod message;
mod rustcrypto;
mod soft;

#[cfg(not(target_arch = "aarch64"))]
pub(super) use self::library::*;
#[cfg(target_arch = "aarch64")]
pub(super) use self::message::*;
