//! Objects of Amazon S3 and of servers with the same interface: `s3://BUCKET/KEY`.
//!
//! A [`Store`] knows where an object is (`place`), with which credentials its requests are signed (`credentials`, `sigv4`), and what
//! the errors of its server mean (`refusal`). All else is HTTP. Credentials are sent to no host but the bucket's, and
//! to the service that issues them. Nothing here prints them.

mod attributes;
mod credentials;
mod encode;
mod environment;
mod open;
mod place;
mod problem;
mod profile;
mod refusal;
mod sigv4;
mod store;
mod stored;
mod time;
mod xml;

pub(crate) use attributes::Asked;
pub(crate) use open::open;
pub use open::{files as s3_files, ports as s3_ports};
pub use stored::{ChecksumAlgorithm, ChecksumKind, StoredChecksum, StoredPart};
