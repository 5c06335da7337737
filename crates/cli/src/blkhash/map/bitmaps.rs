//! `blkhash map bitmaps`: lists the bitmaps of changed blocks in images.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;

use blkimage::{Bitmap, Image};
use blkrecord::Name;

use super::args::Bitmaps;
use crate::image;
use crate::image::input::is_export;
use crate::json;
use crate::problem::{Failure, Outcome, Problem};
use crate::quote;
use crate::records;
use crate::size::Bytes;
use crate::stdio::Stdout;

/// Lists the bitmaps in every image on the command line.
pub fn run(args: &Bitmaps) -> Result<Outcome, Failure> {
    let options = args.opening.confine(&args.images)?;
    let mut outcome = Outcome::Clean;
    for name in &args.images {
        let opened = image::open::open(name, &options);
        let text = opened.and_then(|image| describe(args, name, &image));
        match text {
            Ok(text) => Stdout.write_all(text.as_bytes())?,
            Err(problem) => outcome = outcome.and(problem.report(name)),
        }
    }
    Ok(outcome)
}

fn describe(args: &Bitmaps, name: &OsString, image: &Image) -> Result<String, Problem> {
    let bitmaps = image.bitmaps().map_err(|error| Problem::of_image(&error, name))?;
    let bitmaps = bitmaps.ok_or_else(|| match is_export(name) {
        true => Problem::new("is an export, whose bitmaps have no list here").with_hint(
            "'nbdinfo --list URI' names them, and --bitmap NAME reads qemu:dirty-bitmap:NAME",
        ),
        false => Problem::new("has a format without bitmaps that can be read"),
    })?;
    image.check_digests().map_err(|error| Problem::of_image(&error, name))?;
    let mut text = String::new();
    if !args.json {
        let none = if bitmaps.is_empty() { "  no bitmaps\n" } else { "" };
        let _ = write!(text, "{}\n{none}", quote::name(name.as_bytes()));
    }
    for bitmap in &bitmaps {
        let dirty = match bitmap.is_in_use {
            true => None,
            false => {
                let extents = image.dirty_extents(&bitmap.name);
                let extents = extents.map_err(|error| Problem::of_image(&error, name))?;
                Some(extents.iter().map(|it| it.end - it.start).sum::<u64>())
            }
        };
        text += &match args.json {
            true => json::line(&records::map::Bitmap {
                r#type: "bitmap",
                image: Name::new(name),
                name: Name::new(OsStr::from_bytes(&bitmap.name)),
                granularity: bitmap.granularity,
                state: state(bitmap),
                dirty,
            }),
            false => row(bitmap, dirty),
        };
    }
    Ok(text)
}

fn row(bitmap: &Bitmap, dirty: Option<u64>) -> String {
    let dirty = dirty.map_or("unknown".to_owned(), |dirty| Bytes(dirty).to_string());
    let name = quote::name(&bitmap.name);
    let granularity = Bytes(bitmap.granularity).to_string();
    format!("  {name:<24}  {:<10}  blocks of {granularity:<11}  {dirty} changed\n", state(bitmap))
}

fn state(bitmap: &Bitmap) -> &'static str {
    match bitmap {
        Bitmap { is_in_use: true, .. } => "in use",
        Bitmap { is_enabled: true, .. } => "enabled",
        _ => "disabled",
    }
}
