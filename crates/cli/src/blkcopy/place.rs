//! The destination on the command line.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use blkcopy::{Destination, Export, Local, Zeros, holds};
use blkimage::{Format, Image, Location, NbdOptions};
use rustix::fs::OFlags;

use super::apart;
use super::args::Args;
use crate::identity::Identity;
use crate::outputs::{self, Leftover, Named, mode_of};
use crate::problem::{Outcome, Problem};

/// The destination, before the process is restricted.
pub enum Place<'a> {
    Stdout,
    Uri(&'a OsStr),
    File {
        local: Local,
        identity: Identity,
        leftover: Leftover,
        is_device: bool,
        /// Whether a file would be overwritten unasked, unless a copy to it is resumed.
        holds_something: bool,
        /// Number of bytes of a file when it was opened.
        length: u64,
    },
}

/// What a file is before the copy.
pub struct Kept {
    /// Removes a new file.
    pub leftover: Leftover,
    /// Whether it would be overwritten unasked, unless a copy to it is resumed.
    pub holds_something: bool,
    /// Number of bytes of a file when it was opened.
    length: u64,
    /// Whether its content tells whether something would be lost.
    pub is_checked: bool,
}

impl Kept {
    /// Checks that the destination may be written from an offset on, where a map says that it was before.
    pub fn check(
        &self,
        args: &Args,
        destination: &dyn Destination,
        from: u64,
        size: u64,
    ) -> Result<(), Problem> {
        let is_new = self.leftover.is_new();
        // A copy gives its file the size of the source before it writes.
        let is_other = self.holds_something && self.length != size;
        match from {
            0 if self.holds_something => Err(Problem::new("exists, and the map has no checkpoint")
                .with_hint("--force overwrites it")),
            0 if self.is_checked && args.resume && !args.force => {
                refuse_content(destination, &args.destination)
            }
            1.. if is_other => {
                let reason =
                    format!("has {} bytes, so it is not the interrupted copy", self.length);
                Err(Problem::new(reason).with_outcome(Outcome::Useless))
            }
            1.. if is_new => {
                let reason = "is new, and the map has a checkpoint of a copy to something else";
                Err(Problem::new(reason)
                    .with_hint("remove the map to begin anew")
                    .with_outcome(Outcome::Useless))
            }
            _ => Ok(()),
        }
    }
}

impl<'a> Place<'a> {
    /// Opens a file or a device, and refuses a file that exists unless it is to be overwritten.
    pub fn open(args: &'a Args) -> Result<Self, Problem> {
        let name = &*args.destination;
        if name == "-" {
            return Ok(Self::Stdout);
        }
        let path = match Location::new(name) {
            Location::Path(path) => path,
            _ => return Ok(Self::Uri(name)),
        };
        refuse_other_format(path, args.force)?;
        let found = fs::metadata(path);
        let is_device = found.as_ref().is_ok_and(|it| it.file_type().is_block_device());
        if found.is_ok_and(|found| !is_device && !found.is_file()) {
            return Err("is neither a regular file nor a block device".into());
        }
        let (mode, flags) = (mode_of([&*args.source]), OFlags::RDWR | OFlags::NONBLOCK);
        let opened = if is_device {
            // Nobody else opens a device that is opened so, and it is not mounted.
            let opened = outputs::open(path, Named::ByUser, mode, flags | OFlags::EXCL);
            opened.map_err(|reason| match reason.contains("busy") {
                true => Problem::new(reason).with_hint("a device must not be mounted or in use"),
                false => Problem::new(reason),
            })?
        } else {
            outputs::open_locked(path, Named::ByUser, mode, flags)?
        };
        if opened.metadata.file_type().is_block_device() != is_device {
            return Err("became another file while it was opened".into());
        }
        apart::check(args, &opened.metadata)?;
        let is_kept = opened.metadata.len() > 0 && !args.force && !args.update;
        if is_kept && !args.resume {
            let hint = match args.map {
                Some(_) => "--resume goes on with an interrupted copy, --force overwrites it",
                None => "--update writes only what differs, --force overwrites it",
            };
            return Err(Problem::new("exists").with_hint(hint));
        }
        let identity = Identity::new(&opened.metadata);
        let local = Local::new(opened.file, path).map_err(|error| Problem::from(&error))?;
        Ok(Self::File {
            local,
            identity,
            leftover: opened.leftover,
            is_device,
            holds_something: is_kept,
            length: opened.metadata.len(),
        })
    }

    /// Returns what is known about a file.
    pub fn kept(&self) -> Kept {
        match self {
            Self::File { leftover, holds_something, is_device, length, .. } => Kept {
                leftover: *leftover,
                holds_something: *holds_something,
                length: *length,
                is_checked: *is_device,
            },
            _ => Kept {
                leftover: Leftover::NONE,
                holds_something: false,
                length: 0,
                is_checked: true,
            },
        }
    }

    /// Returns what tells whether the name still leads to the file that was opened.
    pub fn identity(&self) -> Option<Identity> {
        match self {
            Self::File { identity, .. } => Some(*identity),
            _ => None,
        }
    }

    /// Refuses a file of the source.
    pub fn check_apart(&self, image: &Image) -> Result<(), Problem> {
        match self {
            Self::File { identity, .. } if identity.is_in(image) => {
                Err("is a file of the source".into())
            }
            _ => Ok(()),
        }
    }

    /// Returns the destination, unless it holds something that would be lost. `None` for standard output.
    pub fn destination(
        self,
        args: &Args,
        options: &NbdOptions,
    ) -> Result<Option<Box<dyn Destination>>, Problem> {
        let name = &*args.destination;
        let (destination, is_checked): (Box<dyn Destination>, _) = match self {
            Self::Stdout => return Ok(None),
            Self::Uri(uri) => {
                let uri = uri.to_str().ok_or("is a URI that is not UTF-8")?;
                let export = Export::open(uri, options);
                let export = export.map_err(|error| Problem::of_image(&error, name))?;
                (Box::new(export), true)
            }
            Self::File { local, is_device, .. } => {
                // Fails if it is in use, before anything is written.
                let unused = local.check_unused();
                unused.map_err(|error| Problem::new(Problem::of_image(&error, name).reason))?;
                (Box::new(local), is_device)
            }
        };
        if args.zeros == Some(Zeros::Punch) && Location::new(name).is_uri() {
            let reason = "--zeros=punch: no server tells whether it deallocates";
            return Err(reason.into());
        }
        if is_checked && !args.force && !args.update && !args.resume {
            refuse_content(&*destination, name)?;
        }
        Ok(Some(destination))
    }
}

/// Refuses to overwrite what a device or an export holds.
fn refuse_content(destination: &dyn Destination, name: &OsStr) -> Result<(), Problem> {
    let found = destination.current().and_then(|image| holds(&image));
    match found.map_err(|error| Problem::of_image(&error, name))? {
        None => Ok(()),
        Some(what) => Err(Problem::new(format!("holds {what}"))
            .with_hint("--force overwrites it, --update writes only what differs")),
    }
}

/// Refuses the name of another format, which the copy would not have.
fn refuse_other_format(path: &Path, force: bool) -> Result<(), Problem> {
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    let format = extension.to_ascii_lowercase().parse::<Format>().ok();
    match format.filter(|format| *format != Format::Raw && !force) {
        Some(format) => Err(Problem::new(format!(
            "has the name of a {format} image, and the copy is raw: copy to a qemu-nbd that serves it, or add --force"
        ))),
        None => Ok(()),
    }
}
