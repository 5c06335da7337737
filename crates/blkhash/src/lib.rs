//! Checksums of blocks and of whole images.
//!
//! The content is cut into blocks of one size, each block is hashed, and a [`Construction`] makes
//! one checksum of the digests. Blocks are independent, so they are hashed many at a time, on many
//! threads, and blocks of zeros are not hashed at all: none of that changes the value.
//!
//! [`Hasher`] takes content that is pushed into it. A program that pulls its content from several
//! places at once hashes blocks with [`BlockHasher`] and brings them into order with [`Ordered`].

mod algo;
mod algorithm;
mod block_size;
mod construction;
mod cpu;
mod digest;
mod engine;
mod error;
mod hasher;
mod parameters;
mod table;
mod zero;

pub use algo::{Digester, Implementation, State, Status, implementations};
pub use algorithm::{Algorithm, BitOrder, MAX_DIGEST_SIZE, Properties, Strength};
pub use block_size::{BlockSize, InvalidBlockSize};
pub use construction::{Accumulator, Construction, Fold, Streams};
pub use cpu::Feature;
pub use digest::{Digest, ParseDigestError};
pub use engine::{
    Abandoned, Batch, BlockDigests, BlockHasher, BlockPieces, Ordered, SegmentHasher,
};
pub use error::Error;
pub use hasher::Hasher;
pub use parameters::Parameters;
pub use zero::is_zero;
