//! The description of an image for `--verbose`: its chain, and how it is read and hashed.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use blkhash::engine::Measurement;
use blkhash::{Algorithm, Parameters};
use blkimage::{Image, Member, MemberFile, ReadMethod, VpcSize, VpcSizes};
use blksum::Tuning;

use crate::records::chain::ChainImage;
use crate::records::checksum::{About, Measured};
use crate::size::Bytes;
use crate::{messages, quote};

/// Describes an image. `connections` is the number of connections to its server, if any.
pub fn about(
    image: &Image,
    parameters: &[Parameters],
    tuning: &Tuning,
    connections: usize,
) -> About {
    let methods = || image.chain().iter().flat_map(Member::files).map(MemberFile::read_method);
    let has_server = methods().any(|method| method == ReadMethod::Nbd);
    About {
        chain: ChainImage::all(image),
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
pub fn print(about: &About, image: &Image, name: &OsStr) {
    for (depth, image) in image.chain().iter().enumerate() {
        let role = if depth == 0 { "" } else { "backing file: " };
        messages::remark_of(name.as_bytes(), &format!("{role}{}", describe(image, name)));
    }
    let mut run = format!("hashing: {}", about.implementations.join(", "));
    let plural = if about.threads == 1 { "" } else { "s" };
    let _ = write!(run, "; {} thread{plural}", about.threads);
    if let Some(connections) = about.connections {
        let _ = write!(run, "; {connections} connections");
    }
    messages::remark_of(name.as_bytes(), &run);
}

/// Prints a line for each object on a server, with what reading it took.
pub fn print_requests(image: &Image, name: &OsStr) {
    for file in image.chain().iter().flat_map(Member::files) {
        let Some(object) = file.object() else { continue };
        let plural = if object.requests == 1 { "" } else { "s" };
        let text = format!(
            "{}: {} request{plural}, {} of them again, {} received; changes told by {}",
            quote::name(object.url.as_bytes()),
            object.requests,
            object.retries,
            Bytes(object.bytes),
            object.validator
        );
        messages::remark_of(name.as_bytes(), &text);
    }
}

/// Adds what this process has measured of the implementations, and prints a line for each algorithm that was measured.
pub fn finish(about: &mut About, parameters: &[Parameters], tuning: &Tuning, name: &OsStr) {
    let mut algorithms: Vec<Algorithm> = Vec::new();
    for algorithm in parameters.iter().map(Parameters::algorithm) {
        if !algorithms.contains(&algorithm) {
            algorithms.push(algorithm);
        }
    }
    for algorithm in algorithms {
        let Ok(digester) = tuning.digester(algorithm) else { continue };
        let measured: Vec<Measured> = digester.measurements().iter().map(measured).collect();
        if !measured.is_empty() {
            let texts: Vec<String> = measured.iter().map(describe_measured).collect();
            let text = format!("measured: {}", texts.join(", "));
            messages::remark_of(name.as_bytes(), &text);
        }
        about.measured.extend(measured);
    }
}

fn measured(measurement: &Measurement) -> Measured {
    Measured {
        implementation: measurement.implementation.name(),
        blocks: measurement.blocks,
        block_size: measurement.block_size,
        nanoseconds_per_byte: measurement.nanoseconds_per_byte,
        used: measurement.is_used,
    }
}

/// Describes it as in `sha256-x86_sha-x2 2400 MiB/s (16 blocks of 64.0 KiB, used)`.
fn describe_measured(measured: &Measured) -> String {
    let speed = 1e9 / measured.nanoseconds_per_byte / (1 << 20) as f64;
    let used = if measured.used { ", used" } else { "" };
    let plural = if measured.blocks == 1 { "" } else { "s" };
    format!(
        "{} {speed:.0} MiB/s ({} block{plural} of {}{used})",
        measured.implementation,
        measured.blocks,
        Bytes(measured.block_size as u64)
    )
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

fn describe(image: &Member, own_name: &OsStr) -> String {
    let mut text = image.format().name().to_owned();
    if let Some(size) = image.virtual_size() {
        let _ = write!(text, ", virtual size {}", exact(size));
    }
    if let Some(sizes) = image.vpc_sizes() {
        let _ = write!(text, ", or {}", other_size(&sizes));
    }
    if image.is_served() {
        text.push_str(", by qemu-nbd");
    }
    for file in image.files() {
        text.push_str("; ");
        if file.name() != Path::new(own_name) {
            let _ = write!(text, "{}: ", quote::name(file.name().as_os_str().as_bytes()));
        }
        let _ = write!(text, "file of {}", Bytes(file.size()));
        if let Some(stored) = file.stored().filter(|_| file.object().is_none()) {
            let _ = write!(text, ", {} stored", Bytes(stored));
        }
        let _ = write!(text, ", read {}", file.read_method());
    }
    text
}

/// Describes the size of a vpc image that is not read.
pub fn other_size(sizes: &VpcSizes) -> String {
    let (name, size) = match sizes.read {
        VpcSize::Current => (VpcSize::Geometry, sizes.geometry),
        _ => (VpcSize::Current, sizes.current),
    };
    format!("{} with --vpc-size={name}", exact(size))
}

/// Formats a size as in `1.00 GiB (1073741824 bytes)`.
fn exact(bytes: u64) -> String {
    format!("{} ({bytes} bytes)", Bytes(bytes))
}
