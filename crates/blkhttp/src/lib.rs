//! Objects on HTTP and S3 servers: read by ranges, with many requests in flight, and checked for changes.
//!
//! An [`Object`] is opened by its [`Url`]. The first answer decides how it is read: by ranges, or from its start to its end if the
//! server has no ranges. It also pins the content: an answer with another validator or length ends all reads. A process that opens
//! no object has no thread and no socket of this crate.

mod answer;
mod blocks;
mod client;
mod error;
mod object;
mod options;
mod queue;
mod ranged;
mod rate;
mod retry;
mod s3;
mod sign;
mod source;
mod statistics;
mod streamed;
mod transfer;
mod url;
mod version;
mod window;

pub use client::prepare;
pub use error::{Error, ErrorKind, Result};
pub use object::Object;
pub use options::{HttpOptions, S3Options};
pub use s3::{ChecksumAlgorithm, ChecksumKind, StoredChecksum, StoredPart, s3_files, s3_ports};
pub use statistics::Statistics;
pub use url::Url;
pub use version::Validator;
