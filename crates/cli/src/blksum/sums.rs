//! Checks Apple disk images against the CRC-32 checksums that they state of their parts.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::Instant;

use blkhash::Algorithm;
use blkimage::{Format, Source, StatedSum, SumOf};
use blksum::{Progress, Tag, check_sums};

use super::report::{self, Report};
use super::settings::Settings;
use crate::image::notes::Notes;
use crate::image::open;
use crate::messages;
use crate::problem::Problem;
use crate::progress::{Amount, Counts, Reporter};
use crate::quote;
use crate::records::checksum::Sums;

/// Compares the image with the checksums that it states. Returns where it differs, if it does.
pub fn check(
    name: &OsStr,
    settings: &Settings,
    notes: Notes,
    reporter: &Reporter,
) -> Result<(Report, Option<String>), Problem> {
    let started = Instant::now();
    reporter.begin(name);
    let options = settings.open.clone().format(None);
    let image = open::open(name, &options)?;
    let file = open::open(name, &options.format(Some(Format::Raw)))?;
    let stated = image.stated_checksums().map_err(|error| Problem::of_image(&error, name))?;
    let stated = stated.filter(|stated| !stated.sums.is_empty());
    let stated = stated.ok_or_else(|| Problem::new(CHANGED))?;
    let progress = Arc::new(Progress::new());
    let amount = Amount { total: image.size(), stored: None };
    let watch = reporter.watch(Some(amount), {
        let (progress, image, file) = (progress.clone(), image.clone(), file.clone());
        let read = move || image.bytes_read() + file.bytes_read();
        move || Counts { read: read(), ..super::hash::counts(&progress) }
    });
    let found = check_sums(&*image, &*file, &stated.sums, &settings.tuning, &progress);
    drop(watch);
    let found = found.map_err(|error| report::problem(&error, name))?;
    let unknown = stated.unknown_sums;
    if notes == Notes::Printed && unknown > 0 {
        let note =
            format!("note: {unknown} of its checksums are not CRC-32, and were not compared");
        messages::remark_of(name.as_bytes(), &note);
    }
    let (mut tables, mut different) = (Vec::new(), Vec::new());
    for (sum, found) in stated.sums.iter().zip(found) {
        if matches!(sum.of, SumOf::Content { .. }) {
            tables.extend(found.to_be_bytes());
        }
        if found != sum.crc32 {
            different.push(part(sum).to_owned());
        }
    }
    let difference = different.first().map(|first| describe(first, different.len()));
    let parameters = Tag::linear(Algorithm::Crc32);
    let digester = settings.tuning.digester(Algorithm::Crc32);
    let digester = digester.map_err(|error| Problem::new(error.to_string()))?;
    let report = Report::new(&[parameters], vec![digester.digest(&tables)], &image);
    let sums = Sums { compared: stated.sums.len(), unknown, different };
    let bytes_read = image.bytes_read() + file.bytes_read();
    let report = Report { sums: Some(sums), bytes_read, elapsed: started.elapsed(), ..report };
    Ok((report, difference))
}

/// Returns the name of what a checksum is of.
fn part(sum: &StatedSum) -> &str {
    match &sum.of {
        SumOf::Content { name, .. } => name,
        SumOf::File(_) => "data fork",
        SumOf::Sums(_) => "master checksum",
    }
}

/// Says where an image differs from its checksums.
fn describe(first: &str, count: usize) -> String {
    let first = quote::printable(first);
    match count {
        1 => format!("differs from its CRC-32 in \"{first}\", or that is damaged"),
        _ => format!("differs from its CRC-32 in {count} parts, the first of which is \"{first}\""),
    }
}

const CHANGED: &str = "changed: it stated checksums of its parts before";
