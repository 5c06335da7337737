//! Verifies every checksum that a disk image holds of itself, layer by layer.
//!
//! [`check`] finds what is on a disk: a partition table, encrypted and logical volumes, hash trees and file systems. It
//! verifies each layer, and passes what does not match to a [`Sink`] in the order of the layers. The [`Report`] has a [`Row`]
//! for each layer. Nothing is written, no field on the disk is trusted, and memory is bounded.
//!
//! [`check_image`] verifies the structure of the image itself, such as the reference counts of qcow2.
//!
//! 1. `find` lists the layers by their magic bytes. Layers of logical volumes are found in turn.
//! 2. `pair` finds the data of hash trees, and the devices of one btrfs.
//! 3. `layers` has a file for each kind, which verifies a layer and fills its row.

#![deny(clippy::missing_errors_doc)]

mod check;
mod coverage;
mod error;
mod find;
mod finding;
mod found;
mod image;
mod layers;
mod options;
mod pair;
mod place;
mod report;
mod selected;
mod sink;
mod tally;
mod window;

pub use check::check;
pub use error::{Error, Result, is_damage};
pub use finding::{Finding, FindingKind};
pub use image::{check_image, damaged_image};
pub use options::{Options, Progress, Watch};
pub use place::{Place, Step};
pub use report::{Report, Row, Verdict, Verified};
pub use selected::{check_selected, check_unopened};
pub use sink::Sink;

/// Runs the README's examples as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
