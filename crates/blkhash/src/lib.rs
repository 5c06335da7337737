//! Checksums of blocks and of whole images.
//!
//! The content is cut into blocks of one size, each block is hashed, and a [`Construction`] makes
//! one checksum of the digests. Blocks are independent, so they are hashed many at a time, on many
//! threads, and blocks of zeros are not hashed at all: none of that changes the value.
//!
//! [`Hasher`] takes content that is pushed into it. A program that pulls its content from several
//! places at once hashes blocks in a [`Batch`] and brings their digests into order with [`Ordered`],
//! which feeds any [`Sink`]: the [`Accumulator`] makes the checksum of them.

mod algo;
mod algorithm;
mod block;
mod construction;
mod cpu;
mod digest;
mod engine;
mod error;
mod hasher;
mod parameters;
mod segments;
mod sink;
mod zero;

pub use algo::{Digester, Implementation, State, Status, implementations};
pub use algorithm::{Algorithm, Licence, Linux, MAX_DIGEST_SIZE, Properties, Strength};
pub use block::{BlockDigests, BlockPieces, Leaf, Run};
pub use construction::{Construction, Streams};
pub use cpu::Feature;
pub use digest::Digest;
pub use engine::{Accumulator, Batch, Ordered, Reuse, Stopped, Turn};
pub use error::Error;
pub use hasher::Hasher;
pub use parameters::{DEFAULT_BLOCK_SIZE, MAX_BLOCK_SIZE, MIN_BLOCK_SIZE, Parameters};
pub use segments::{Join, SegmentHasher, Segments};
pub use sink::{Sink, SinkError};
pub use zero::is_zero;

/// Its examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
