//! Opens images, and finds the btrfs file systems in them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use blkbtrfs::{Device, Error, Found, Part, Unverified};
use blkimage::{Image, OpenOptions};

use super::args;
use crate::image;
use crate::problem::Problem;
use crate::{messages, quote};

/// The devices of one file system.
pub struct Group {
    pub found: blkbtrfs::Group,
    /// Name of the first image.
    pub name: OsString,
    /// Names of its devices and of others.
    pub names: Names,
}

/// The names of devices by those in messages, which quote the name of the image.
pub type Names = BTreeMap<String, OsString>;

/// Opens all images and groups their devices. Reports problems on standard error, and returns whether
/// there were any. An image that `check` rejects is one.
pub fn open(
    names: &[OsString],
    options: &OpenOptions,
    args: &args::Images,
    check: impl Fn(&Image) -> blkimage::Result<()>,
) -> (Vec<Group>, bool) {
    let part = args.offset.map(Part::From).or(args.partition.map(Part::Partition));
    let (mut images, mut full_names) = (Names::new(), Names::new());
    let mut candidates = Vec::new();
    let mut has_failed = false;
    for name in names {
        let opened = image::open::open(name, options).and_then(|image| match check(&image) {
            Ok(()) => Ok(image),
            Err(error) => Err(Problem::of_image(&error, name)),
        });
        let image = match opened {
            Ok(image) => image,
            Err(problem) => {
                problem.report(name);
                has_failed = true;
                continue;
            }
        };
        let disk = Device { name: quote::name(name.as_encoded_bytes()), source: image };
        let found = blkbtrfs::find(&disk, part);
        has_failed |= !found.problems.is_empty();
        report(&found, name);
        for candidate in &found.candidates {
            let (shown, part) = (candidate.device.name.clone(), candidate.part.to_string());
            let full_name = [name.as_os_str(), part.as_ref()].into_iter().collect();
            full_names.insert(shown.clone(), full_name);
            images.insert(shown, name.clone());
        }
        candidates.extend(found.candidates);
    }
    let named = |found: blkbtrfs::Group| {
        let first = found.devices.first().and_then(|device| images.get(&device.name));
        Group { name: first.cloned().unwrap_or_default(), names: full_names.clone(), found }
    };
    (blkbtrfs::group(candidates).into_iter().map(named).collect(), has_failed)
}

/// Reports what cannot be verified in the image `name`.
fn report(found: &Found, name: &OsStr) {
    for other in &found.others {
        messages::message(&format!("{other}: no btrfs file system, not verified"));
    }
    for Unverified { name: part, error } in &found.problems {
        messages::message(&match error {
            Error::Image(error) => format!("{part}: {}", Problem::of_image(error, name).text()),
            error => error.to_string(),
        });
    }
}
