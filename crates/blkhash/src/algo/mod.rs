//! Implementations of the digest algorithms, one module for each family.
//!
//! Blocks are independent of each other, so the interface takes many of them. [`Digester`] hashes
//! inputs of equal length side by side, each from the same [`State`]. The state may have taken any
//! number of bytes before, so that blocks longer than a chunk are hashed piece by piece.
//!
//! Each file uses only those before it: `simd`, `random`, `guess`, `tuner`, `kernels` and `hash`, the families, `state`,
//! `self_test`, `selection`, `digester`. Only tests of kernels go the other way.
//!
//! A family with kernels of its own is a folder: `mod.rs` has the state of a hash and the list of kernels, one row each, and each
//! kernel is a file. All have the same function, which processes a number of blocks at the start of each input into the state with the
//! same index. `soft.rs` is written for readers, and every other kernel is compared with it. A kernel takes a token that only
//! `cpu.rs` creates, after it has found the instructions on this CPU, so calling one is safe by its type. `selection` runs known answers on
//! every implementation before its first use in a process, and excludes those that fail. For each batch, `kernels` chooses the kernel
//! of the lowest cost, which is a guess until `tuner` has measured.

mod blake2b;
mod blake2s;
pub(crate) mod blake3;
pub(crate) mod crc;
mod digester;
mod guess;
mod hash;
#[cfg(test)]
mod kernel_tests;
mod kernels;
mod null;
mod random;
mod rustcrypto;
mod selection;
mod self_test;
mod sha256;
mod sha512;
mod simd;
mod siphash;
mod state;
mod tuner;
mod xxh3;
mod xxh64;

pub use self::digester::{Digester, Measurement};
pub(crate) use self::hash::Hash;
pub use self::selection::{Implementation, Status, implementations};
pub use self::state::State;
