//! The description of an image for `--verbose`: its chain, and how it is read and hashed.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use blkhash::engine::Measurement;
use blkhash::{Algorithm, Parameters};
use blkimage::{Image, Member, MemberFile, ReadMethod, VpcSize};
use blksum::Tuning;
use serde::{Serialize, Serializer};

use crate::json::Name;
use crate::size::Bytes;
use crate::{messages, quote};

/// Description of an image and of the run.
#[derive(Clone, Debug, Serialize)]
pub struct About {
    chain: Vec<ChainImage>,
    implementations: Vec<String>,
    /// Times that the run measured. They are added at its end.
    measured: Vec<Measured>,
    threads: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    connections: Option<usize>,
}

/// Describes the images of a chain, the image itself first.
pub fn chain(image: &Image) -> Vec<ChainImage> {
    image.chain().iter().map(ChainImage::new).collect()
}

/// The time that an implementation took for batches of the run.
#[derive(Clone, Debug, Serialize)]
struct Measured {
    implementation: String,
    blocks: usize,
    block_size: usize,
    nanoseconds_per_byte: f64,
    used: bool,
}

/// An image of a chain.
#[derive(Clone, Debug, Serialize)]
pub struct ChainImage {
    format: &'static str,
    virtual_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vpc_sizes: Option<VpcSizes>,
    reader: &'static str,
    files: Vec<ChainFile>,
}

/// The two sizes of a vpc image, if they differ.
#[derive(Clone, Debug, Serialize)]
pub struct VpcSizes {
    current: u64,
    geometry: u64,
    read: &'static str,
}

impl VpcSizes {
    /// Describes the sizes.
    pub fn new(sizes: blkimage::VpcSizes) -> Self {
        let blkimage::VpcSizes { current, geometry, read, .. } = sizes;
        Self { current, geometry, read: read.name() }
    }

    /// Describes the one that is not read.
    pub fn describe(&self) -> String {
        let other = if self.read == VpcSize::Current.name() { self.geometry } else { self.current };
        let name =
            if self.read == VpcSize::Current.name() { VpcSize::Geometry } else { VpcSize::Current };
        format!("{} with --vpc-size={name}", exact(other))
    }
}

#[derive(Clone, Debug, Serialize)]
struct ChainFile {
    #[serde(flatten, serialize_with = "as_name")]
    name: PathBuf,
    size: u64,
    stored: Option<u64>,
    read: &'static str,
    #[serde(skip)]
    read_method: ReadMethod,
}

impl About {
    /// Describes an image. `connections` is the number of connections to its server, if any.
    pub fn new(
        image: &Image,
        parameters: &[Parameters],
        tuning: &Tuning,
        connections: usize,
    ) -> Self {
        let methods = || image.chain().iter().flat_map(Member::files).map(MemberFile::read_method);
        let has_server = methods().any(|method| method == ReadMethod::Nbd);
        Self {
            chain: chain(image),
            implementations: parameters
                .iter()
                .filter_map(|parameters| implementation(parameters, tuning))
                .collect(),
            measured: Vec::new(),
            threads: tuning.threads,
            connections: has_server.then_some(connections),
        }
    }

    /// Prints a line for each image of the chain and one for the run.
    pub fn print(&self, name: &OsStr) {
        for (depth, image) in self.chain.iter().enumerate() {
            let role = if depth == 0 { "" } else { "backing file: " };
            messages::remark_of(name.as_bytes(), &format!("{role}{}", image.describe(name)));
        }
        let mut run = format!("hashing: {}", self.implementations.join(", "));
        let plural = if self.threads == 1 { "" } else { "s" };
        let _ = write!(run, "; {} thread{plural}", self.threads);
        if let Some(connections) = self.connections {
            let _ = write!(run, "; {connections} connections");
        }
        messages::remark_of(name.as_bytes(), &run);
    }

    /// Adds what this process has measured of the implementations, and prints a line for each
    /// algorithm that was measured.
    pub fn finish(&mut self, parameters: &[Parameters], tuning: &Tuning, name: &OsStr) {
        let mut algorithms: Vec<Algorithm> = Vec::new();
        for algorithm in parameters.iter().map(Parameters::algorithm) {
            if !algorithms.contains(&algorithm) {
                algorithms.push(algorithm);
            }
        }
        for algorithm in algorithms {
            let Ok(digester) = tuning.digester(algorithm) else { continue };
            let measured: Vec<Measured> =
                digester.measurements().iter().map(Measured::new).collect();
            if !measured.is_empty() {
                let texts: Vec<String> = measured.iter().map(Measured::describe).collect();
                let text = format!("measured: {}", texts.join(", "));
                messages::remark_of(name.as_bytes(), &text);
            }
            self.measured.extend(measured);
        }
    }
}

impl Measured {
    fn new(measurement: &Measurement) -> Self {
        Self {
            implementation: measurement.implementation.name(),
            blocks: measurement.blocks,
            block_size: measurement.block_size,
            nanoseconds_per_byte: measurement.nanoseconds_per_byte,
            used: measurement.is_used,
        }
    }

    /// Describes it as in `sha256-x86_sha-x2 2400 MiB/s (16 blocks of 64.0 KiB, used)`.
    fn describe(&self) -> String {
        let speed = 1e9 / self.nanoseconds_per_byte / (1 << 20) as f64;
        let used = if self.used { ", used" } else { "" };
        let plural = if self.blocks == 1 { "" } else { "s" };
        format!(
            "{} {speed:.0} MiB/s ({} block{plural} of {}{used})",
            self.implementation,
            self.blocks,
            Bytes(self.block_size as u64)
        )
    }
}

/// Returns the name of the implementation that hashes the blocks of one read, or all of the content if
/// the construction has no blocks.
fn implementation(parameters: &Parameters, tuning: &Tuning) -> Option<String> {
    let digester = tuning.digester(parameters.algorithm()).ok()?;
    let count = match parameters.construction().has_blocks() {
        true => (tuning.read_size / parameters.block_size().get()).max(1),
        false => 1,
    };
    if digester.is_random() {
        return Some(format!("{}-random", parameters.algorithm()));
    }
    Some(digester.implementation_for(count).name())
}

impl ChainImage {
    fn new(image: &Member) -> Self {
        let files = image.files().map(|file| ChainFile {
            name: file.name().to_owned(),
            size: file.size(),
            stored: file.stored(),
            read: file.read_method().name(),
            read_method: file.read_method(),
        });
        Self {
            format: image.format().name(),
            virtual_size: image.virtual_size(),
            vpc_sizes: image.vpc_sizes().map(VpcSizes::new),
            reader: if image.is_served() { SERVER } else { "built-in" },
            files: files.collect(),
        }
    }

    fn describe(&self, own_name: &OsStr) -> String {
        let mut text = self.format.to_owned();
        if let Some(size) = self.virtual_size {
            let _ = write!(text, ", virtual size {}", exact(size));
        }
        if let Some(sizes) = &self.vpc_sizes {
            let _ = write!(text, ", or {}", sizes.describe());
        }
        if self.reader == SERVER {
            let _ = write!(text, ", by {SERVER}");
        }
        for file in &self.files {
            text.push_str("; ");
            if file.name != Path::new(own_name) {
                let _ = write!(text, "{}: ", quote::name(file.name.as_os_str().as_bytes()));
            }
            let _ = write!(text, "file of {}", Bytes(file.size));
            if let Some(stored) = file.stored {
                let _ = write!(text, ", {} stored", Bytes(stored));
            }
            let _ = write!(text, ", read {}", file.read_method);
        }
        text
    }
}

fn as_name<S: Serializer>(name: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    Name::new(name.as_os_str()).serialize(serializer)
}

/// The reader of images of formats that are not read natively.
const SERVER: &str = "qemu-nbd";

/// Formats a size as in `1.00 GiB (1073741824 bytes)`.
fn exact(bytes: u64) -> String {
    format!("{} ({bytes} bytes)", Bytes(bytes))
}
