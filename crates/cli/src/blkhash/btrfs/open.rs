//! From names to file systems: images are opened, partitions looked for, and devices brought
//! together by the file system that they belong to.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;

use blkbtrfs::partition::{self, Window};
use blkbtrfs::{Device, Superblock, Uuid};
use blkimage::{Image, OpenOptions, Source};

use super::super::{PROGRAM, refuse};
use super::args;
use crate::sandbox::Sandbox;
use crate::usage::Refusal;
use crate::{messages, quote};

/// The devices of one file system.
pub struct Group {
    /// Names the file system.
    pub fsid: Uuid,
    /// In the order of the command line.
    pub devices: Vec<Device>,
    /// The name of the first one.
    pub name: OsString,
}

/// How images are opened: from here on, none but those of these names.
pub fn confine<'a>(
    names: impl IntoIterator<Item = &'a OsString>,
    args: &args::Images,
) -> Result<OpenOptions, Refusal> {
    let options = args.options().map_err(refuse)?;
    if !args.no_sandbox {
        let mut sandbox = Sandbox::for_images(&options);
        for name in names {
            sandbox.allow_name(name);
        }
        sandbox.enforce();
    }
    Ok(options)
}

/// Opens everything and groups what belongs together. What cannot be opened is told on standard
/// error; the flag says whether there was any.
pub fn open(names: &[OsString], options: &OpenOptions, args: &args::Images) -> (Vec<Group>, bool) {
    let mut groups: Vec<Group> = Vec::new();
    let mut has_failed = false;
    for name in names {
        let found = open_image(name, options).and_then(|image| devices(name, &image, args));
        let devices = found.unwrap_or_else(|reason| {
            messages::message(PROGRAM, &reason);
            has_failed = true;
            Vec::new()
        });
        for (fsid, device) in devices {
            match groups.iter_mut().find(|group| group.fsid == fsid) {
                Some(group) => group.devices.push(device),
                None => groups.push(Group { fsid, devices: vec![device], name: name.clone() }),
            }
        }
    }
    (groups, has_failed)
}

fn open_image(name: &OsStr, options: &OpenOptions) -> Result<Arc<Image>, String> {
    let image = crate::open::open(Path::new(name), options).map_err(|error| explain(&error))?;
    for warning in image.warnings() {
        messages::message(PROGRAM, &format!("warning: {warning}"));
    }
    Ok(Arc::new(image))
}

/// The btrfs file systems in an image.
fn devices(
    name: &OsStr,
    image: &Arc<Image>,
    args: &args::Images,
) -> Result<Vec<(Uuid, Device)>, String> {
    let shown = quote::name(name.as_encoded_bytes());
    let whole: Arc<dyn Source> = image.clone();
    if let Some(offset) = args.offset {
        let size = whole.size();
        let Some(window) = Window::new(whole, offset, size.saturating_sub(offset)) else {
            return Err(format!("{shown}: --offset {offset} is past its end at {size}"));
        };
        return device(format!("{shown} at {offset}"), Arc::new(window)).map(|it| vec![it]);
    }
    let table = partition::table(&*whole).map_err(|error| format!("{shown}: {error}"));
    if let Some(wanted) = args.partition {
        let table = table?;
        let Some(found) = table.iter().find(|it| it.number == wanted) else {
            let numbers: Vec<_> = table.iter().map(|it| it.number.to_string()).collect();
            let there_are = match &numbers[..] {
                [] => "it has no partitions".to_owned(),
                _ => format!("it has {}", numbers.join(", ")),
            };
            return Err(format!("{shown}: no partition {wanted}: {there_are}"));
        };
        return partition_device(&shown, &whole, found).map(|it| vec![it]);
    }
    let mut devices = Vec::new();
    if let Ok(table) = &table {
        for found in table {
            let window = Window::new(whole.clone(), found.offset, found.length);
            let Some(window) = window else { continue };
            if blkbtrfs::has_magic(&window).map_err(|error| explain(&error))? {
                devices.push(partition_device(&shown, &whole, found)?);
            }
        }
    }
    if devices.is_empty() {
        if !blkbtrfs::has_magic(&*whole).map_err(|error| explain(&error))? {
            // What is wrong with the table may be why.
            let partitions = table?.len();
            let where_else = if partitions > 0 { ", in none of its partitions either" } else { "" };
            return Err(format!("{shown}: no btrfs file system{where_else}"));
        }
        devices.push(device(shown, whole)?);
    }
    Ok(devices)
}

fn partition_device(
    image: &str,
    whole: &Arc<dyn Source>,
    found: &partition::Partition,
) -> Result<(Uuid, Device), String> {
    let name = format!("{image} partition {}", found.number);
    match Window::new(whole.clone(), found.offset, found.length) {
        Some(window) => device(name, Arc::new(window)),
        None => Err(format!("{name}: lies past the end of the image, at {}", found.offset)),
    }
}

fn device(name: String, source: Arc<dyn Source>) -> Result<(Uuid, Device), String> {
    let superblock = Superblock::read(&*source, &name).map_err(|error| error.to_string())?;
    Ok((superblock.fsid, Device { name, source }))
}

/// An image's error with what the system says of it.
pub fn explain(error: &blkimage::Error) -> String {
    match error.io_error() {
        Some(source) => format!("{error}: {}", messages::reason(source)),
        None => error.to_string(),
    }
}
