//! Checksums of blocks and of whole images.
//!
//! The content is cut into blocks of one size, each block is hashed, and a [`Construction`] makes
//! one checksum from the digests. Blocks are independent, so many of them are hashed at a time, on
//! many threads. Zero blocks are not hashed at all. None of this changes the value.
//!
//! [`Hasher`] takes content that is pushed into it. The parts in [`engine`] are for a program that
//! pulls its content from several places at once.
//!
//! ```
//! use blkhash::{Hasher, Parameters};
//!
//! let mut hasher = Hasher::new(Parameters::default(), 1);
//! hasher.update(&[7; 100_000]);
//! println!("{}", hasher.finalize());
//! ```

#![deny(clippy::missing_errors_doc)]

#[cfg(not(target_pointer_width = "64"))]
compile_error!("blkhash needs a 64-bit target, because sizes of images must fit into usize");

mod algo;
mod algorithm;
mod block;
mod block_size;
mod borrowed;
mod construction;
mod cpu;
mod digest;
pub mod engine;
mod error;
mod hasher;
mod hex;
mod parameters;
mod salt;
mod segments;
mod sink;
mod sync;
mod table;
mod tree;
mod zero;

pub use algo::{Digester, Implementation, State, Status, implementations};
pub use algorithm::{Algorithm, BitOrder, MAX_DIGEST_SIZE, Properties, Strength};
pub use block::{BlockDigests, Comparison, Leaf, Run};
pub use block_size::{BlockSize, InvalidBlockSize};
pub use construction::{Construction, FsVerityDescriptor, Streams};
pub use cpu::Feature;
pub use digest::{Digest, ParseDigestError};
pub use error::Error;
pub use hasher::Hasher;
pub use parameters::Parameters;
pub use salt::{InvalidSalt, Salt};
pub use sink::{Sink, SinkError};
#[cfg(shuttle)]
pub use sync::check;
pub use tree::{Tree, TreeBlocks, TreeShape};
pub use zero::is_zero;

/// Runs the examples of README.md as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
