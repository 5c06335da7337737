//! What tells the changes of an image: a bitmap, a list, or an overlay.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};

use blkimage::Source;
use blksum::changes::Changes;
use blksum::map::{Info, Subject, check_bitmap, overlay_depth};

use super::args::Tracker;
use crate::blkhash::source::{Data, shown};
use crate::problem::{Failure, Outcome, Problem};
use crate::{messages, quote};

/// A tracker of changes, opened before the process is confined.
pub enum Opened<'a> {
    Bitmap(&'a str),
    List(&'a OsString, Box<dyn Read>),
    Overlay,
}

/// The base that a tracker belongs to: a map with this info, and the image now.
pub struct Base<'a> {
    pub info: Option<&'a Info>,
    pub subject: Subject<'a>,
}

impl<'a> Opened<'a> {
    pub fn open(args: &'a Tracker) -> Result<Self, Failure> {
        Ok(match (&args.bitmap, &args.changes) {
            (Some(name), _) => Self::Bitmap(name),
            (None, Some(name)) if name == "-" => Self::List(name, Box::new(io::stdin())),
            (None, Some(name)) => {
                let file = File::open(name).map_err(|error| {
                    let reason = messages::reason(&error);
                    Failure::usage(format!("--changes: {}: {reason}", shown(name)))
                })?;
                Self::List(name, Box::new(file))
            }
            (None, None) => Self::Overlay,
        })
    }

    /// Returns the name, for the info of a map.
    pub fn name(&self) -> String {
        match self {
            Self::Bitmap(name) => format!("bitmap {name}"),
            Self::List(..) => "list of changes".to_owned(),
            Self::Overlay => "overlay".to_owned(),
        }
    }

    /// Returns the extents of a list. No image has them for other trackers.
    pub fn list(self) -> Result<Changes, Problem> {
        match self {
            Self::List(name, text) => read(text).map_err(|problem| problem.about(name)),
            Self::Bitmap(_) | Self::Overlay => Err(Problem::new("is not in an image")),
        }
    }

    /// Returns the extents that changed, in the part of the image that is read. If `base` is given, they have to be all
    /// changes since.
    pub fn changes(self, data: &Data, base: Option<&Base<'_>>) -> Result<Changes, Problem> {
        let image = data.image();
        let of_image =
            |error: blkimage::Error| Problem::of_image(&error, &data.name).about(&data.name);
        let of_base = |error: blksum::map::OtherBase| {
            let problem = Problem::new(error.to_string()).with_outcome(Outcome::Useless);
            problem.with_hint("--trust updates it although changes may be missing")
        };
        let changes = match self {
            Self::Bitmap(name) => {
                if let Some(base) = base {
                    check_bitmap(base.info, &base.subject, name).map_err(of_base)?;
                }
                Changes::of_bitmap(image, name.as_bytes()).map_err(of_image)?
            }
            Self::Overlay if image.chain().len() < 2 => {
                return Err(Problem::new("has no backing file").about(&data.name));
            }
            Self::Overlay => {
                let depth = match base {
                    Some(base) => overlay_depth(base.info, image).map_err(of_base)?,
                    None => 1,
                };
                Changes::of_overlay(image, depth).map_err(of_image)?
            }
            Self::List(name, _) => {
                let changes = self.list()?;
                // A tracker may round its last extent up, but not begin one there.
                match changes.extents().last() {
                    Some(last) if last.start >= image.size() => {
                        let reason = format!(
                            "an extent begins at {}, past the end of the image",
                            last.start
                        );
                        return Err(Problem::new(reason).about(name));
                    }
                    _ => changes,
                }
            }
        };
        Ok(changes.in_part(data.selected.offset(), data.size()))
    }
}

/// Reads a list of changes: offset and length in bytes on each line.
fn read(mut text: Box<dyn Read>) -> Result<Changes, Problem> {
    let mut bytes = Vec::new();
    text.read_to_end(&mut bytes).map_err(|error| Problem::from(&error))?;
    let text = String::from_utf8(bytes).map_err(|_| "is not a list of changes")?;
    let extents = text.lines().enumerate().map(|(number, line)| {
        let numbers: Option<Vec<u64>> = line.split_whitespace().map(|it| it.parse().ok()).collect();
        match numbers.as_deref() {
            Some([offset, length]) => Ok(*offset..offset.saturating_add(*length)),
            _ => Err(format!("line {}: {}", number + 1, quote::printable(line))),
        }
    });
    Ok(extents.collect::<Result<Changes, String>>()?)
}
