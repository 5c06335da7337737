//! Values of digests: their names, those that are expected, and what is said about them. All commands share it.

pub mod digest;
pub mod expected;
pub mod stored;
pub mod verdict;
