//! Checks images of ISO 9660 against the MD5 that they state of themselves.

use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::Instant;

use blkhash::Algorithm;
use blkimage::{Implanted, Source};
use blksum::{ImplantedDifference, Progress, Tag, check_implanted};

use super::report::{self, Report};
use super::settings::Settings;
use crate::image::notes::Notes;
use crate::image::open;
use crate::messages;
use crate::problem::Problem;
use crate::progress::{Amount, Counts, Reporter};
use crate::records::checksum;

/// Compares the image with the MD5 that it states. Returns where it differs, if it does.
pub fn check(
    name: &OsStr,
    settings: &Settings,
    notes: Notes,
    reporter: &Reporter,
) -> Result<(Report, Option<String>), Problem> {
    let started = Instant::now();
    reporter.begin(name);
    let image = open::open(name, &settings.open.clone().format(None))?;
    let stated = image.stated_checksums().map_err(|error| Problem::of_image(&error, name))?;
    let implanted = stated.and_then(|stated| stated.implanted);
    let implanted = implanted.ok_or_else(|| Problem::new(CHANGED))?;
    let progress = Arc::new(Progress::new());
    let amount = Amount { total: implanted.length, stored: None };
    let watch = reporter.watch(Some(amount), {
        let (progress, image) = (progress.clone(), image.clone());
        move || Counts { read: image.bytes_read(), ..super::hash::counts(&progress) }
    });
    let found = check_implanted(&*image, &implanted, &settings.tuning, &progress);
    drop(watch);
    let found = found.map_err(|error| report::problem(&error, name))?;
    if notes == Notes::Printed && found.difference.is_none() {
        note_uncovered(name, &implanted, image.size());
    }
    let difference = found.difference.as_ref();
    let record = record(&implanted, difference);
    let difference = difference.map(|difference| describe(&implanted, difference));
    let parameters = [Tag::linear(Algorithm::Md5)];
    let report = Report::new(&parameters, vec![found.md5], &image);
    Ok((Report { implanted: Some(record), elapsed: started.elapsed(), ..report }, difference))
}

/// Says how much of an image the MD5 is not of, if that is more than what implantisomd5 leaves out.
fn note_uncovered(name: &OsStr, implanted: &Implanted, size: u64) {
    let text = match size.saturating_sub(implanted.length) {
        _ if size < implanted.volume_size => {
            let missing = implanted.volume_size - size;
            format!("the last {missing} bytes of its volume are missing, of which its MD5 is not")
        }
        rest if rest > SKIPPED => format!("its MD5 is not of the last {rest} bytes"),
        _ => return,
    };
    messages::remark_of(name.as_bytes(), &format!("note: {text}"));
}

fn record(implanted: &Implanted, found: Option<&ImplantedDifference>) -> checksum::Implanted {
    let (difference, fragment, range) = match found {
        None => (None, None, None),
        Some(ImplantedDifference::Fragment { range, number, .. }) => {
            (Some("fragment"), Some(*number), Some(range.clone()))
        }
        Some(ImplantedDifference::Sums) => (Some("sums"), None, Some(Implanted::BLANK)),
        Some(ImplantedDifference::Cut(end)) => (Some("end"), None, Some(*end..implanted.length)),
    };
    checksum::Implanted {
        md5: blkrecord::hex(&implanted.md5),
        bytes: implanted.length,
        fragments: implanted.fragments.len() + 1,
        difference,
        fragment,
        difference_offset: range.as_ref().map(|range| range.start),
        difference_length: range.map(|range| range.end - range.start),
    }
}

/// Says where an image differs from what its MD5 is of.
fn describe(implanted: &Implanted, difference: &ImplantedDifference) -> String {
    match difference {
        ImplantedDifference::Fragment { count: 1, .. } => {
            "differs from its MD5, or that is damaged".into()
        }
        ImplantedDifference::Fragment { range, number, count } => {
            let Range { start, end } = range;
            let length = end - start;
            match number == count {
                true => format!(
                    "differs in the {length} bytes at {start}, the last of {count} fragments, or its MD5 is damaged"
                ),
                false => format!(
                    "differs first in the {length} bytes at {start}, fragment {number} of {count}"
                ),
            }
        }
        ImplantedDifference::Sums => {
            "its MD5 matches, and the sums of its fragments, which it states as well, do not".into()
        }
        ImplantedDifference::Cut(end) => {
            format!("is cut: its MD5 is of {} bytes, and it has {end}", implanted.length)
        }
    }
}

const CHANGED: &str = "changed: it stated an MD5 of itself before";

/// Number of bytes that implantisomd5 leaves out.
const SKIPPED: u64 = 15 * 2048;
