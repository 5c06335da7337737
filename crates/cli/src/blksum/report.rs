//! The result of hashing an image.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use blkhash::{Digest, Parameters};
use blkimage::{Format, Image, Member, VpcSize, VpcSizes};
use blksum::expect::Shape;

use crate::messages;
use crate::problem::Problem;
use crate::records::checksum::{About, Implanted, Sums};

/// The checksums of an image, with its properties.
#[derive(Clone, Debug)]
pub struct Report {
    /// Checksums with their parameters.
    pub checksums: Vec<(Parameters, Digest)>,
    /// Digests of the bytes of the file, if they were asked for and are known.
    pub bytes: Vec<Digest>,
    /// Format of the image.
    pub format: Format,
    /// Whether the content is in several files.
    pub has_other_files: bool,
    /// Whether a vpc image is in the chain.
    pub has_vpc: bool,
    /// The two sizes of that image, if they differ.
    pub vpc_sizes: Option<VpcSizes>,
    /// Whether the image is a compressed file.
    pub is_decompressed: bool,
    /// The shape of the content, in a search.
    pub shape: Option<Shape>,
    /// Size of the guest's content in bytes.
    pub virtual_size: u64,
    /// Number of bytes that were read.
    pub bytes_read: u64,
    /// Time that opening and hashing took.
    pub elapsed: Duration,
    /// Description of the image, with `--verbose`.
    pub about: Option<About>,
    /// The MD5 that an image of ISO 9660 states of itself, if that was compared.
    pub implanted: Option<Implanted>,
    /// The CRC-32 that an Apple disk image states of its parts, if they were compared.
    pub sums: Option<Sums>,
    /// Why the map of the image was not written.
    pub map_problem: Option<Problem>,
}

impl Report {
    /// Creates the report of an image that was read. Its time is zero until it is set.
    pub fn new(parameters: &[Parameters], digests: Vec<Digest>, image: &Image) -> Self {
        Self {
            checksums: parameters.iter().copied().zip(digests).collect(),
            bytes: Vec::new(),
            format: image.format(),
            has_other_files: image.files().nth(1).is_some(),
            has_vpc: image.chain().iter().any(|member| member.format() == Format::Vpc),
            vpc_sizes: image.chain().iter().find_map(Member::vpc_sizes),
            is_decompressed: image.is_decompressed(),
            shape: None,
            virtual_size: image.virtual_size(),
            bytes_read: image.bytes_read(),
            elapsed: Duration::ZERO,
            about: None,
            implanted: None,
            sums: None,
            map_problem: None,
        }
    }

    /// Prints a note if a conversion of the image has another checksum, because QEMU rounds the size of
    /// raw images up to sectors. Returns whether the note was printed.
    pub fn note_odd_size(&self, name: &OsStr) -> bool {
        let is_odd = self.format == Format::Raw
            && !self.virtual_size.is_multiple_of(SECTOR)
            && self.checksums.iter().any(|(parameters, _)| parameters.construction().has_blocks());
        if is_odd {
            let note = "note: size is not a multiple of 512 bytes: its qcow2 conversion has another \
                        checksum";
            messages::remark_of(name.as_bytes(), note);
        }
        is_odd
    }

    /// Explains why a checksum of a vpc image may not match although nothing is damaged. `None` for other images, and if
    /// the size was chosen.
    pub fn other_vpc_size(&self, chosen: VpcSize) -> Option<String> {
        let sizes = self.vpc_sizes.filter(|_| chosen == VpcSize::Auto)?;
        let (read, other) = match sizes.read {
            VpcSize::Geometry => (VpcSize::Geometry, VpcSize::Current),
            _ => (VpcSize::Current, VpcSize::Geometry),
        };
        let bytes = |size| if size == VpcSize::Current { sizes.current } else { sizes.geometry };
        Some(format!(
            "{} bytes were read, its {read} size: if the checksum is of the {} bytes of its {other} size, as in other \
             versions of blksum and QEMU, --vpc-size={other} compares them",
            bytes(read),
            bytes(other)
        ))
    }
}

/// Converts an error of hashing the image `name`.
pub fn problem(error: &blksum::Error, name: &OsStr) -> Problem {
    let problem = Problem::of_pass(error, name);
    match error {
        blksum::Error::Hash(error) => Problem { hint: advice_on_hash(error), ..problem },
        _ => problem,
    }
}

/// Returns what to do about an error of blkhash.
fn advice_on_hash(error: &blkhash::Error) -> Option<Cow<'static, str>> {
    let blkhash::Error::UnsuitableLength { length, block_size } = *error else { return None };
    Some(match length - length % block_size {
        0 => "fs-verity takes any size".into(),
        whole => {
            format!("fs-verity takes any size, and --length {whole} leaves out the rest").into()
        }
    })
}

const SECTOR: u64 = 512;
