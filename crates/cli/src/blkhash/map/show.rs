//! `blkhash map show`: what maps hold.

use std::ffi::OsStr;
use std::fmt::Write as _;

use blkmap::{Commit, Error, Map};
use blkrecord::{Flat, Name};
use serde_json::Value;

use super::args::Show;
use crate::blkhash::confine_to_open_files;
use crate::blkhash::out::Out;
use crate::blkhash::source::shown;
use crate::json::{self, hex};
use crate::map::open;
use crate::problem::{Failure, Outcome, Problem};
use crate::quote;
use crate::records::map::{self as records, Known};
use crate::size::Bytes;
use crate::stdio::Stdout;

/// Shows the maps on the command line.
pub fn run(args: &Show) -> Result<Outcome, Failure> {
    let maps: Vec<_> = args.maps.iter().map(|name| (name, open::open(name))).collect();
    confine_to_open_files();
    let mut outcome = Outcome::Clean;
    let mut is_first = true;
    for (name, map) in maps {
        let gap = if is_first || args.json || args.id { "" } else { "\n" };
        // A list may be long.
        let mut out = Out::new(Box::new(Stdout), MAX_TEXT);
        out.write(gap);
        let shown = map.and_then(|map| match () {
            () if args.log => log(name, &map, args.json, &mut out),
            () if args.list => list(name, &map, args.json, &mut out),
            () if args.id => id(&map).map(|text| out.write(&text)),
            () if args.json => object(name, &map).map(|text| out.write(&text)),
            () => describe(name, &map).map(|text| out.write(&text)),
        });
        if let Err(error) = &shown
            && !out.has_failed()
        {
            Problem::from(error).report(name);
            outcome = Outcome::Unknown;
            continue;
        }
        out.end()?;
        is_first = false;
    }
    Ok(outcome)
}

fn id(map: &Map) -> Result<String, Error> {
    // The root in the commit is a claim until then.
    map.check_hashes()?;
    let commit = map.commit();
    let id = commit.content_id(map.header());
    let id = id.ok_or(Error::Incomplete { known: commit.known(), blocks: commit.blocks() })?;
    Ok(hex(&id) + "\n")
}

fn describe(name: &OsStr, map: &Map) -> Result<String, Error> {
    let (header, commit) = (map.header(), map.commit());
    let info = info(map)?;
    let mut rows: Vec<(&str, String)> = Vec::new();
    let source = &info["source"];
    if let Some(image) = source["name"].as_str() {
        let format = source["format"].as_str().unwrap_or("unknown");
        let snapshot = source["snapshot"].as_str();
        let snapshot = snapshot.map(|name| format!(", snapshot {}", quote::name(name.as_bytes())));
        let partition = source["partition"].as_u64();
        let partition = partition.map(|number| format!(", partition {number}"));
        rows.push((
            "image",
            format!(
                "{} ({}){}{}",
                quote::name(image.as_bytes()),
                quote::printable(format),
                snapshot.unwrap_or_default(),
                partition.unwrap_or_default()
            ),
        ));
    }
    rows.push(("size", format!("{} ({} bytes)", Bytes(commit.image_size()), commit.image_size())));
    let salt = if header.salt.is_empty() { "" } else { ", salted" };
    rows.push(("digest", format!("{}{salt}", header.algorithm)));
    rows.push(("block size", header.block_size.to_string()));
    let unknown = match commit.blocks() - commit.known() {
        0 => String::new(),
        count => format!(", {count} not known"),
    };
    let blocks = format!("{}: {} in runs of zeros{unknown}", commit.blocks(), commit.zero_blocks());
    rows.push(("blocks", blocks));
    rows.push(("pages", format!("{} of {} stored", commit.stored_pages(), map.pages())));
    if let [Some(number), Some(count)] = [info["shard"][0].as_u64(), info["shard"][1].as_u64()] {
        rows.push(("shard", format!("{number}/{count}")));
    }
    if let Some(root) = &commit.root() {
        rows.push(("root", hex(root)));
    }
    if let Some(id) = commit.content_id(header) {
        rows.push(("content id", hex(&id)));
    }
    let made = match &info["made"] {
        Value::String(how) => quote::printable(how),
        Value::Object(how) if how.get("import").is_some_and(Value::is_string) => {
            let format = how["import"].as_str().unwrap_or_default();
            format!("import of {}", quote::printable(format))
        }
        Value::Object(how) => quote::printable(&how.keys().cloned().collect::<Vec<_>>().join(", ")),
        _ => "unknown".to_owned(),
    };
    let text =
        |field: &str| info[field].as_str().map(|text| format!(", {}", quote::printable(text)));
    let created = text("created").unwrap_or_default();
    rows.push(("made", format!("{made}{created}{}", text("program").unwrap_or_default())));
    let seal = match &commit.seal() {
        Some(seal) => format!("with the key {}, not checked", hex(&seal.key_id)),
        None => "none".to_owned(),
    };
    rows.push(("seal", seal));
    rows.push(("commit", commit.sequence().to_string()));
    let mut out = format!("{}\n", shown(name));
    for (label, value) in rows {
        let _ = writeln!(out, "  {label:<12}{value}");
    }
    Ok(out)
}

fn object(name: &OsStr, map: &Map) -> Result<String, Error> {
    let (header, commit) = (map.header(), map.commit());
    Ok(json::line(&records::Map {
        r#type: "map",
        name: Name::new(name),
        digest: header.algorithm.name(),
        block_size: header.block_size.get(),
        salt: header.salt.to_string(),
        file_id: hex(&header.file_id),
        pages: map.pages(),
        commit: Flat(known(map, commit)),
        info: info(map)?,
    }))
}

fn log(name: &OsStr, map: &Map, is_json: bool, out: &mut Out) -> Result<(), Error> {
    if !is_json {
        out.write(&(shown(name) + "\n"));
    }
    for commit in map.log() {
        let (offset, commit) = commit?;
        if is_json {
            out.write(&json::line(&records::Commit {
                r#type: "commit",
                name: Name::new(name),
                offset,
                commit: Flat(known(map, &commit)),
            }));
            continue;
        }
        let kind = if commit.is_final() { "final" } else { "checkpoint" };
        let seal = if commit.seal().is_some() { ", sealed" } else { "" };
        let (sequence, known, blocks) = (commit.sequence(), commit.known(), commit.blocks());
        let amount = match commit.is_final() {
            true => format!("{known} of {blocks} blocks"),
            false => format!("{known} more of {blocks} blocks"),
        };
        out.write(&format!("  {sequence:>4} at {offset}: {kind}, {amount}{seal}\n"));
    }
    Ok(())
}

fn list(name: &OsStr, map: &Map, is_json: bool, out: &mut Out) -> Result<(), Error> {
    let per_page = map.header().blocks_per_page();
    let block_size = u64::from(map.header().block_size);
    if !is_json {
        out.write(&(shown(name) + "\n"));
    }
    for run in map.page_runs() {
        let run = run?;
        if out.has_failed() {
            break;
        }
        let first = run.first * per_page;
        let end = (run.end() * per_page).min(map.commit().blocks());
        let offset = first * block_size;
        let length = (end.saturating_mul(block_size)).min(map.commit().image_size()) - offset;
        let kind = if run.is_zero() { "zeros" } else { "digests" };
        if !is_json {
            out.write(&format!("  {offset:>16} {length:>16}  {kind}\n"));
            continue;
        }
        out.write(&json::line(&records::Pages {
            r#type: "run",
            name: Name::new(name),
            kind,
            first_page: run.first,
            pages: run.count,
            offset,
            length,
        }));
    }
    Ok(())
}

fn known(map: &Map, commit: &Commit) -> Known {
    Known {
        sequence: commit.sequence(),
        r#final: commit.is_final(),
        virtual_size: commit.image_size(),
        blocks: commit.blocks(),
        known_blocks: commit.known(),
        zero_blocks: commit.zero_blocks(),
        stored_pages: commit.stored_pages(),
        root: commit.root().as_ref().map(|root| hex(root)),
        content_id: commit.content_id(map.header()).map(|id| hex(&id)),
        sealed_with: commit.seal().map(|seal| hex(&seal.key_id)),
    }
}

fn info(map: &Map) -> Result<Value, Error> {
    Ok(serde_json::from_str(&map.info()?).unwrap_or_default())
}

/// Bytes of text that are kept before they are written.
const MAX_TEXT: usize = 32 << 10;
