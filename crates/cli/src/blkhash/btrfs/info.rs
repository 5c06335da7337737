//! `blkhash btrfs info`: describes the checksums of a file system, their size and their implementation.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use blkbtrfs::FileSystem;
use blkhash::Digester;
use blkimage::{Image, OpenOptions};
use blkrecord::Name;

use super::args;
use super::mounted::{self, Mounted};
use super::open::{self, Group, Names};
use crate::blkhash::{print, warn};
use crate::problem::{Failure, Outcome, Problem};
use crate::records::btrfs::{self as records, Kernel};
use crate::size::Bytes;
use crate::{json, quote};

/// Shows every file system on the command line.
pub fn run(args: &args::Info) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::Clean;
    let mut asked: Vec<(Vec<OsString>, Option<Mounted>)> = Vec::new();
    let mut images = Vec::new();
    for name in &args.names {
        match mounted::find(Path::new(name)) {
            None => images.push(name.clone()),
            Some(Ok(mounted)) => {
                let devices = mounted.devices.iter().map(|device| device.clone().into());
                asked.push((devices.collect(), Some(mounted)));
            }
            Some(Err(reason)) => {
                Problem::from(reason).report(name);
                outcome = Outcome::Unknown;
            }
        }
    }
    if !images.is_empty() {
        asked.push((images, None));
    }
    let names = asked.iter().flat_map(|(names, _)| names);
    let options = args.images.opening.confine(names)?;
    for (names, mounted) in &asked {
        outcome = outcome.and(show_all(args, &options, names, mounted.as_ref())?);
    }
    Ok(outcome)
}

fn show_all(
    args: &args::Info,
    options: &OpenOptions,
    names: &[OsString],
    mounted: Option<&Mounted>,
) -> Result<Outcome, Failure> {
    // This command gives no verdict, so devices in use may be read.
    let has_devices = names.iter().any(|name| crate::image::open::is_device(Path::new(name)));
    let force_share = options.force_share || has_devices;
    let options = options.clone().force_share(force_share);
    let (groups, has_failed) = open::open(names, &options, &args.images, Image::check_digests);
    let mut outcome = if has_failed { Outcome::Unknown } else { Outcome::Clean };
    if groups.is_empty()
        && let Some(mounted) = mounted
    {
        // Only root may read the devices, but every user may read sysfs.
        print(&if args.json {
            json::line(&Kernel { kernel: &mounted.checksum })
        } else {
            format!("kernel: {}\n", mounted.checksum)
        })?;
    }
    for Group { found, name, names } in groups {
        let filesystem = match FileSystem::open(found.devices) {
            Ok(filesystem) => filesystem,
            Err(error) => {
                Problem::of_btrfs(&error, &name).report(&name);
                outcome = Outcome::Unknown;
                continue;
            }
        };
        warn([filesystem.superblock().checksum_type.algorithm()]);
        print(&if args.json {
            json::line(&record(&filesystem, &names, mounted))
        } else {
            text(&quote::name(name.as_encoded_bytes()), &filesystem, mounted)
        })?;
    }
    Ok(outcome)
}

fn text(name: &str, filesystem: &FileSystem, mounted: Option<&Mounted>) -> String {
    let superblock = filesystem.superblock();
    let bytes = |count: u64| Bytes(count).to_string();
    let mut text = format!("{name}: btrfs {}", superblock.fsid);
    if !superblock.label.is_empty() {
        text += &format!(", {}", quote::name(&superblock.label));
    }
    text.push('\n');
    let mut line = |head: &str, value: String| {
        let _ = writeln!(text, "  {head:<13} {value}");
    };
    let kind = superblock.checksum_type;
    let properties = kind.algorithm().properties();
    line("checksum", format!("{kind}, {} bytes, {}", kind.size(), properties.strength));
    let sector = u64::from(superblock.sector_size);
    let in_a_gibibyte = (1 << 30) / sector * kind.size() as u64;
    line(
        "takes",
        format!("{} bytes for {sector} of data, {} for 1 GiB", kind.size(), bytes(in_a_gibibyte)),
    );
    line("verified by", verified_by(filesystem));
    if let Some(mounted) = mounted {
        line("kernel", mounted.checksum.clone());
        if let Some(advice) = mounted::advice(&mounted.checksum) {
            line("", advice);
        }
    }
    line("tree blocks", format!("{} bytes", superblock.node_size));
    line("generation", superblock.generation.to_string());
    line("used", format!("{} of {}", bytes(superblock.bytes_used), bytes(superblock.total_bytes)));
    for it in filesystem.allocations() {
        let used = it.used.map_or(String::new(), |used| format!(", {} used", bytes(used)));
        line(&it.kind, format!("{}, {}{used}", it.profile, bytes(it.size)));
    }
    for (id, device) in filesystem.devices() {
        line(&format!("device {id}"), format!("{}, {}", device.name, bytes(device.source.size())));
    }
    let missing = filesystem.missing_devices();
    for device in missing.iter().take(MAX_MISSING) {
        let size = bytes(device.total_bytes);
        line(&format!("device {}", device.id), format!("missing, {size}, {}", device.uuid));
    }
    if missing.len() > MAX_MISSING {
        line("missing", format!("{} more devices", missing.len() - MAX_MISSING));
    }
    line("features", superblock.features().join(" "));
    text
}

fn record<'a>(
    filesystem: &'a FileSystem,
    names: &'a Names,
    mounted: Option<&'a Mounted>,
) -> records::FileSystem<'a> {
    let superblock = filesystem.superblock();
    let kind = superblock.checksum_type;
    let devices = filesystem.devices().iter().map(|(id, device)| records::Device {
        id: *id,
        name: Name::new(names.get(&device.name).map_or(OsStr::new(&device.name), |it| it)),
        size: device.source.size(),
    });
    let missing = filesystem.missing_devices().iter().take(MAX_MISSING);
    let missing = missing.map(|device| records::MissingDevice {
        id: device.id,
        uuid: device.uuid.to_string(),
        size: device.total_bytes,
    });
    let allocations = filesystem.allocations().into_iter().map(|it| records::Allocation {
        kind: it.kind,
        profile: it.profile.name(),
        size: it.size,
        used: it.used,
        mirrors: it.mirrors,
    });
    records::FileSystem {
        fsid: superblock.fsid.to_string(),
        label: Name::new(OsStr::from_bytes(&superblock.label)),
        generation: superblock.generation,
        checksum: kind.name(),
        checksum_size: kind.size(),
        sector_size: superblock.sector_size,
        node_size: superblock.node_size,
        total_bytes: superblock.total_bytes,
        bytes_used: superblock.bytes_used,
        implementation: verified_by(filesystem),
        kernel: mounted.map(|it| it.checksum.as_str()),
        kernel_advice: mounted.and_then(|it| mounted::advice(&it.checksum)),
        allocations: allocations.collect(),
        devices: devices.collect(),
        missing_devices: missing.collect(),
        missing_device_count: filesystem.missing_devices().len(),
        features: superblock.features(),
    }
}

/// Returns the name of the implementation that hashes many sectors at a time.
fn verified_by(filesystem: &FileSystem) -> String {
    let algorithm = filesystem.superblock().checksum_type.algorithm();
    Digester::new(algorithm).implementation_for(MANY).name()
}

/// A number of blocks that fills the lanes of any implementation.
const MANY: usize = 1024;

/// Maximum number of missing devices of a file system that are listed.
/// Limit in devices.
const MAX_MISSING: usize = 256;
