//! `blkhash map show`: what maps hold.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::{self, Write as _};

use blkmap::{Commit, Error, Map};
use serde_json::{Value, json};

use super::args::Show;
use crate::blkhash::confine_to_open_files;
use crate::blkhash::source::shown;
use crate::json::{self, Name};
use crate::map::open;
use crate::problem::{Failure, Outcome, Problem};
use crate::quote;
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
        let mut out = Text(gap.to_owned());
        let shown = map.map_err(Stopped::Map).and_then(|map| match () {
            () if args.log => log(name, &map, args.json, &mut out),
            () if args.list => list(name, &map, args.json, &mut out),
            () => {
                out.0 += &match () {
                    () if args.id => id(&map)?,
                    () if args.json => object(name, &map)?,
                    () => describe(name, &map)?,
                };
                Ok(())
            }
        });
        match shown {
            Ok(()) => {
                out.flush()?;
                is_first = false;
            }
            Err(Stopped::Output(error)) => return Err(error.into()),
            Err(Stopped::Map(error)) => {
                Problem::from(&error).report(name);
                outcome = Outcome::Unknown;
            }
        }
    }
    Ok(outcome)
}

/// Text that is written in parts, because a list may be long.
struct Text(String);

impl Text {
    fn push(&mut self, line: &str) -> io::Result<()> {
        self.0 += line;
        self.0.push('\n');
        if self.0.len() > MAX_TEXT { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Stdout.write_all(self.0.as_bytes())?;
        self.0.clear();
        Ok(())
    }
}

/// The reason why a map is not shown.
enum Stopped {
    Map(Error),
    Output(io::Error),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::Map(error)
    }
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
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
    let mut object = name_object(name);
    object["type"] = json!("map");
    object["digest"] = json!(header.algorithm.name());
    object["block_size"] = json!(header.block_size.get());
    object["salt"] = json!(header.salt.to_string());
    object["file_id"] = json!(hex(&header.file_id));
    object["pages"] = json!(map.pages());
    merge(&mut object, commit_object(map, commit));
    object["info"] = info(map)?;
    Ok(json::text(&object) + "\n")
}

fn log(name: &OsStr, map: &Map, is_json: bool, out: &mut Text) -> Result<(), Stopped> {
    if !is_json {
        out.push(&shown(name))?;
    }
    for commit in map.log() {
        let (offset, commit) = commit?;
        if is_json {
            let mut object = name_object(name);
            object["type"] = json!("commit");
            object["offset"] = json!(offset);
            merge(&mut object, commit_object(map, &commit));
            out.push(&json::text(&object))?;
            continue;
        }
        let kind = if commit.is_final() { "final" } else { "checkpoint" };
        let seal = if commit.seal().is_some() { ", sealed" } else { "" };
        let (sequence, known, blocks) = (commit.sequence(), commit.known(), commit.blocks());
        let amount = match commit.is_final() {
            true => format!("{known} of {blocks} blocks"),
            false => format!("{known} more of {blocks} blocks"),
        };
        out.push(&format!("  {sequence:>4} at {offset}: {kind}, {amount}{seal}"))?;
    }
    Ok(())
}

fn list(name: &OsStr, map: &Map, is_json: bool, out: &mut Text) -> Result<(), Stopped> {
    let per_page = map.header().blocks_per_page();
    let block_size = u64::from(map.header().block_size);
    if !is_json {
        out.push(&shown(name))?;
    }
    for run in map.page_runs() {
        let run = run?;
        let first = run.first * per_page;
        let end = (run.end() * per_page).min(map.commit().blocks());
        let offset = first * block_size;
        let length = (end.saturating_mul(block_size)).min(map.commit().image_size()) - offset;
        let kind = if run.is_zero() { "zeros" } else { "digests" };
        if !is_json {
            out.push(&format!("  {offset:>16} {length:>16}  {kind}"))?;
            continue;
        }
        let mut object = name_object(name);
        let fields = json!({
            "type": "run", "kind": kind, "first_page": run.first, "pages": run.count,
            "offset": offset, "length": length,
        });
        merge(&mut object, fields);
        out.push(&json::text(&object))?;
    }
    Ok(())
}

fn commit_object(map: &Map, commit: &Commit) -> Value {
    json!({
        "sequence": commit.sequence(),
        "final": commit.is_final(),
        "virtual_size": commit.image_size(),
        "blocks": commit.blocks(),
        "known_blocks": commit.known(),
        "zero_blocks": commit.zero_blocks(),
        "stored_pages": commit.stored_pages(),
        "root": commit.root().as_ref().map(|root| hex(root)),
        "content_id": commit.content_id(map.header()).map(|id| hex(&id)),
        "sealed_with": commit.seal().map(|seal| hex(&seal.key_id)),
    })
}

fn name_object(name: &OsStr) -> Value {
    serde_json::to_value(Name::new(name)).expect("a name is JSON")
}

fn merge(object: &mut Value, more: Value) {
    if let (Value::Object(object), Value::Object(more)) = (object, more) {
        object.extend(more);
    }
}

fn info(map: &Map) -> Result<Value, Error> {
    Ok(serde_json::from_str(&map.info()?).unwrap_or_default())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Bytes of text that are kept before they are written.
const MAX_TEXT: usize = 32 << 10;
