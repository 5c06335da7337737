//! What tells the changes of an image: a bitmap, a list, an overlay, or an older image.

use std::ffi::OsStr;

use blkimage::{OpenOptions, Source};
use blksum::changes::Changes;
use blksum::map::{Info, Subject, check_bitmap, check_older, overlay_depth};

use super::args::Tracker;
use crate::blkhash::source::Data;
use crate::map::change_list::ChangeList;
use crate::problem::{Failure, Outcome, Problem};

/// A tracker of changes, opened before the process is confined.
pub enum Opened<'a> {
    Bitmap(&'a str),
    List(ChangeList<'a>),
    Overlay,
    Reflink(&'a OsStr),
}

/// The base that a tracker belongs to: a map with this info, and the image now.
pub struct Base<'a> {
    pub info: Option<&'a Info>,
    pub subject: Subject<'a>,
}

impl<'a> Opened<'a> {
    pub fn open(args: &'a Tracker) -> Result<Self, Failure> {
        if let Some(older) = &args.reflink {
            return Ok(Self::Reflink(older));
        }
        Ok(match (&args.bitmap, &args.changes) {
            (Some(name), _) => Self::Bitmap(name),
            (None, Some(name)) => Self::List(ChangeList::open(name, args.changes_format)?),
            (None, None) => Self::Overlay,
        })
    }

    /// Returns options for opening the image, with the bitmap that a server has of it.
    pub fn options(&self, mut options: OpenOptions) -> OpenOptions {
        if let Self::Bitmap(name) = self {
            options.nbd = options.nbd.bitmap((*name).to_owned());
        }
        options
    }

    /// Returns the name, for the info of a map.
    pub fn name(&self) -> String {
        match self {
            Self::Bitmap(name) => format!("bitmap {name}"),
            Self::List(_) => "list of changes".to_owned(),
            Self::Overlay => "overlay".to_owned(),
            Self::Reflink(_) => "reflink".to_owned(),
        }
    }

    /// Returns the extents of a list. No image has them for other trackers.
    pub fn list(self, size: u64) -> Result<Changes, Problem> {
        match self {
            Self::List(list) => list.read(size),
            _ => Err(Problem::new("is not in an image")),
        }
    }

    /// Returns the extents that changed, in the part of the image that is read. If `base` is given, they have to be all
    /// changes since. `open` opens another image in the same way.
    pub fn changes(
        self,
        data: &Data,
        base: Option<&Base<'_>>,
        open: &dyn Fn(&OsStr) -> Result<Data, Problem>,
    ) -> Result<Changes, Problem> {
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
            Self::Reflink(name) => {
                let older = open(name).map_err(|problem| problem.about(name))?;
                if let Some(base) = base {
                    let subject = Subject {
                        name,
                        image: older.image(),
                        source: older.source(),
                        ..base.subject
                    };
                    check_older(base.info, &subject).map_err(of_base)?;
                }
                // The part may have moved, so its content is compared.
                return Changes::since(older.source(), data.source())
                    .map_err(|error| data.failed(&error));
            }
            Self::List(list) => list.read(image.size())?,
        };
        Ok(changes.in_part(data.selected.offset(), data.size()))
    }
}
