//! A disk, and where it is.

use std::sync::Arc;

use super::layers::Member;
use super::manifest::Blob;
use crate::Format;
use crate::compression::Compression;

/// A disk of an image.
pub(super) struct Disk {
    pub name: Vec<u8>,
    pub place: Place,
}

/// Where the bytes of a disk are.
pub(super) enum Place {
    /// The blob is the disk.
    Blob {
        blob: Blob,
        format: Option<Format>,
        compression: Option<Compression>,
        /// Number of bytes that the manifest states for a raw disk.
        size: Option<u64>,
    },
    /// A file in the tar archive of one of the layers, on all of which it depends.
    Layer { layers: Arc<[Blob]>, member: Member },
}
