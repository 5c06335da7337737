//! `blkhash map merge`: makes one map from the maps of parts of an image.

use std::ffi::OsString;
use std::io::ErrorKind;

use blkhash::Digest;
use blkmap::{Error, Header, Key, Map, PAGE, Pipe, Writer};
use blksum::map::{Info, Made};

use super::args::Merge;
use super::part::{self, Shard};
use super::watched::watched;
use crate::blkhash::confine_to_open_files;
use crate::map::output::{Content, Output};
use crate::map::{self, open};
use crate::messages;
use crate::outputs::{Named, mode_of};
use crate::problem::{Failure, Outcome, Problem, WithName as _};
use crate::progress::Reporter;

/// Merges the maps on the command line.
pub fn run(args: &Merge) -> Result<Outcome, Failure> {
    let key = open::key(args.key_file.as_deref());
    let key = key.map_err(Failure::usage)?;
    map::raise_limit_on_files();
    let names = part_names(args).map_err(Failure::usage)?;
    let parts = names.iter().map(|name| (name, open::open(name)));
    let parts: Vec<_> =
        parts.filter(|(_, part)| args.shards.is_none() || !is_missing(part)).collect();
    let names: Vec<&OsString> = parts.iter().map(|(name, _)| *name).collect();
    let mode = mode_of(names.iter().map(|name| name.as_os_str()));
    let output = Output::open(&args.output, Named::ByUser, mode);
    let output = output.and_then(|output| match output.content()? {
        Content::Map(_) if !args.force => {
            Err(Problem::new("exists").with_hint("--force overwrites it"))
        }
        content => Ok((output, matches!(content, Content::Map(_)))),
    });
    let is_part = names.iter().any(|part| output.as_ref().is_ok_and(|(it, _)| it.is_file(part)));
    confine_to_open_files();
    let (output, replaces) = output.named(&args.output)?;
    if is_part {
        return Err("is one of the parts").named(&args.output);
    }
    let maps = check_parts(args, parts, key.as_ref())?;
    let infos: Vec<Info> = maps.iter().map(|map| Info::of(map).unwrap_or_default()).collect();
    if let Some(name) = other_source(&names, &infos) {
        let problem = Problem::from("is of another state of the image than the first part");
        return Err(problem.with_outcome(Outcome::Useless)).named(name);
    }
    if maps.len() > 1 && infos.iter().any(|info| !info.shows_changes()) {
        let note = "note: the parts do not show that they are of the same image: parts of devices and servers, and \
                    those made with --no-source, do not say which";
        messages::remark(note);
    }
    let first = &maps[0];
    let Header { algorithm, block_size, salt, .. } = *first.header();
    let header = Header::new(algorithm, block_size, salt).named(&args.output)?;
    let reporter = Reporter::new(args.progress.when(), Some(1));
    reporter.begin(&args.output);
    let total = first.pages().saturating_mul(PAGE as u64);
    let failed = |(index, error): (Option<usize>, Error)| {
        let outcome = match error {
            Error::Mismatch(_) => Outcome::Useless,
            _ => Outcome::Unknown,
        };
        let problem = Problem::from(error).with_outcome(outcome);
        Failure::with_name(problem, index.map_or(&args.output, |index| names[index]))
    };
    if replaces {
        // Parts that are damaged or do not belong together must not cost the map that is there.
        let size = first.commit().image_size();
        Writer::new(Pipe(std::io::sink()), header, size)
            .map_err(|error| (None, error))
            .and_then(|mut writer| merge(&maps, &mut writer, total, &reporter))
            .map_err(failed)?;
    }
    let mut info = Info::new(Made::Merge(maps.len() as u64));
    info.source = infos[0].source.clone();
    info.partitions = infos[0].partitions.clone();
    let result = output
        .begin(header, first.commit().image_size())
        .map_err(|error| (None, error))
        .and_then(|writer| {
            let mut writer = writer.sealed_with(key);
            let padded = merge(&maps, &mut writer, total, &reporter)?;
            writer.set_padded_last(padded);
            let finished = writer.finish(&info.to_string());
            finished.map_err(|error| (None, error))
        });
    reporter.end(&args.output, None);
    drop(reporter);
    let (_, commit) = result.map_err(failed)?;
    if commit.known() == commit.blocks() {
        return Ok(Outcome::Clean);
    }
    report_missing(&maps, &infos);
    Ok(Outcome::Errors)
}

/// Returns whether a shard is one of those to make: it is not there, or not finished.
fn is_missing(shard: &Result<Map, Error>) -> bool {
    match shard {
        Err(Error::Io(error)) => error.kind() == ErrorKind::NotFound,
        Err(error) => matches!(error, Error::Unfinished),
        Ok(_) => false,
    }
}

/// Returns the maps of the parts, after checking their seals.
fn check_parts(
    args: &Merge,
    parts: Vec<(&OsString, Result<Map, Error>)>,
    key: Option<&Key>,
) -> Result<Vec<Map>, Failure> {
    let mut maps = Vec::with_capacity(parts.len());
    for (name, part) in parts {
        let map = part.named(name)?;
        if let Some(key) = key {
            // A seal over a part of unknown origin would make it genuine.
            map.check_seal(key).named(name)?;
        }
        maps.push(map);
    }
    if maps.is_empty() {
        return Err("none of the shards is there").named(&args.parts[0]);
    }
    Ok(maps)
}

/// Merges the parts, and shows how far that is. The error has the index of a part, if it is about one.
fn merge<O: blkmap::Output>(
    parts: &[Map],
    writer: &mut Writer<O>,
    total: u64,
    reporter: &Reporter,
) -> Result<Option<Digest>, (Option<usize>, Error)> {
    watched(reporter, total, |watch| {
        blkmap::merge(parts, writer, &mut |pages| watch(pages.saturating_mul(PAGE as u64)))
    })
    .map_err(|(index, error)| (Some(index), error))
}

/// Returns the names of the parts.
fn part_names(args: &Merge) -> Result<Vec<OsString>, String> {
    let Some(count) = args.shards else { return Ok(args.parts.clone()) };
    match args.parts.as_slice() {
        [name] if part::has_place(name) => {
            Ok((1..=count).map(|number| Shard { number, count }.fill(name)).collect())
        }
        _ => Err("--shards needs one name with {shard} in it".to_owned()),
    }
}

/// Returns the name of a part of another state of the image.
fn other_source<'a>(names: &[&'a OsString], infos: &[Info]) -> Option<&'a OsString> {
    let first = infos.iter().find(|info| info.source.is_some())?;
    let differs = |info: &Info| info.source.is_some() && !info.is_same_image(first);
    infos.iter().position(differs).map(|index| names[index])
}

/// Says which parts are missing, as the arguments that make them if all parts are shards of the same number.
fn report_missing(maps: &[Map], infos: &[Info]) {
    let shards: Option<Vec<_>> = infos.iter().map(|info| info.shard).collect();
    if let Some(shards) = shards
        && let Some([_, count]) = shards.first().copied()
        && shards.iter().all(|[_, other]| *other == count)
    {
        let missing: Vec<String> = (1..=count.min(MAX_SHARDS))
            .filter(|number| !shards.iter().any(|[shard, _]| shard == number))
            .take(MAX_LISTED + 1)
            .map(|number| format!("{number}/{count}"))
            .collect();
        let more = if missing.len() > MAX_LISTED { ", and more" } else { "" };
        let listed = missing[..missing.len().min(MAX_LISTED)].join(", ");
        return messages::message(&format!("missing shards: {listed}{more}"));
    }
    let commit = maps[0].commit();
    messages::message(&format!("the parts do not cover the image ({} blocks)", commit.blocks()));
}

/// Maximum number of missing shards that are listed.
/// Limit in shards.
const MAX_LISTED: usize = 32;

/// Maximum number of shards among which missing ones are looked for.
/// Limit in shards.
const MAX_SHARDS: u64 = 1 << 20;
