//! The images of a chain as a user should see them: formats, files, sizes, and how each file is read.

use std::path::Path;
use std::sync::Arc;

use crate::options::VpcSize;
use crate::probe::Format;
use crate::storage::{HostFile, ReadMethod, ServedObject};

/// One image of a chain: the image that was opened, or a backing file.
#[derive(Clone)]
pub struct Member {
    pub(crate) format: Format,
    pub(crate) virtual_size: Option<u64>,
    pub(crate) is_served: bool,
    pub(crate) files: Vec<Arc<HostFile>>,
    pub(crate) vpc_sizes: Option<VpcSizes>,
}

/// The two sizes of a vpc image, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VpcSizes {
    /// The size that the footer states.
    pub current: u64,
    /// Cylinders x heads x sectors.
    pub geometry: u64,
    /// The one with which the image is read, never [`VpcSize::Auto`].
    pub read: VpcSize,
}

/// One file that an image is stored in.
#[derive(Clone, Copy)]
pub struct MemberFile<'a>(&'a HostFile);

impl Member {
    /// The format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Size of the guest content in bytes, `None` for backing files that a server reads.
    pub fn virtual_size(&self) -> Option<u64> {
        self.virtual_size
    }

    /// The two sizes of a vpc image, if they differ and [`OpenOptions::vpc_size`](crate::OpenOptions::vpc_size) decides
    /// which one it has. `None` for all other images.
    pub fn vpc_sizes(&self) -> Option<VpcSizes> {
        self.vpc_sizes
    }

    /// Whether another program reads it, `qemu-nbd`.
    pub fn is_served(&self) -> bool {
        self.is_served
    }

    /// The files that hold the image, the file of the image itself first.
    pub fn files(&self) -> impl Iterator<Item = MemberFile<'_>> {
        self.files.iter().map(|file| MemberFile(file))
    }
}

impl<'a> MemberFile<'a> {
    /// The name under which it was opened.
    pub fn name(self) -> &'a Path {
        self.0.name()
    }

    /// Size in bytes.
    pub fn size(self) -> u64 {
        self.0.size()
    }

    /// Bytes that the file takes on its file system, `None` if unknown.
    pub fn stored(self) -> Option<u64> {
        self.0.stored()
    }

    /// Returns what is known of the object on an HTTP or S3 server that it is. `None` for any other file.
    pub fn object(self) -> Option<ServedObject> {
        self.0.object()
    }

    /// Returns the method of reading it.
    pub fn read_method(self) -> ReadMethod {
        self.0.read_method()
    }
}
