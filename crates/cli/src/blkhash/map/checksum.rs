//! `blkhash map checksum`: the checksums of images from their maps.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use blkhash::Construction;
use blkindex::Format;
use blkmap::{Error, Map};
use blksum::check_file::{Form, Style};
use blksum::{Content, Encoding, ImageTag, Part, Tag};
use serde_json::Value;

use super::args::Checksum;
use crate::blkhash::confine_to_open_files;
use crate::map::open;
use crate::problem::{Failure, Outcome, Problem};
use crate::quote;
use crate::stdio::Stdout;

/// Prints the checksums of the maps on the command line.
pub fn run(args: &Checksum) -> Result<Outcome, Failure> {
    let key = open::key(args.key_file.as_deref());
    let key = key.map_err(Failure::usage)?;
    let maps: Vec<_> = args.maps.iter().map(|name| (name, open::open(name))).collect();
    confine_to_open_files();
    let mut constructions = args.construction.clone();
    if constructions.is_empty() {
        constructions.push(Construction::default());
    }
    let tag = args.tag || constructions.len() > 1;
    let mut outcome = Outcome::Clean;
    for (name, map) in maps {
        let checked = map.and_then(|map| match &key {
            Some(key) => map.check_seal(key).map(|()| map),
            None => Ok(map),
        });
        let print_all = || -> Result<io::Result<()>, Error> {
            let map = checked?;
            let image = image_name(name, &map);
            for construction in &constructions {
                let line = line(&map, &image, *construction, tag)?;
                if let Err(error) = print(&line) {
                    return Ok(Err(error));
                }
            }
            Ok(Ok(()))
        };
        match print_all() {
            Ok(written) => written?,
            Err(error) => {
                Problem::from(&error).report(name);
                outcome = Outcome::Unknown;
            }
        }
    }
    Ok(outcome)
}

/// Returns the line of a check file for the image of a map. On a terminal, an unprintable name is quoted.
pub fn line(
    map: &Map,
    image: &OsStr,
    construction: Construction,
    tag: bool,
) -> Result<Vec<u8>, Error> {
    let parameters = blkmap::parameters(map, construction)?;
    let digest = blkmap::checksum(map, construction, blksys::processors())?;
    let form = match tag {
        true => Form::Tagged(Tag::Image(Box::new(ImageTag { parameters, content: content(map)? }))),
        false => Form::Text,
    };
    let style = Style { form, encoding: Encoding::Hex, zero: false };
    let (image, is_terminal) = (image.as_bytes(), io::stdout().is_terminal());
    Ok(quote::line(&style, image, digest.as_bytes(), is_terminal))
}

/// Prints a line.
pub fn print(line: &[u8]) -> io::Result<()> {
    Stdout.write_all(line)
}

/// Returns the content that a map is of: the snapshot and the partition that it records.
fn content(map: &Map) -> Result<Content, Error> {
    let source = source(map);
    let snapshot = source["snapshot"].as_str().map(str::to_owned);
    let part = match &source["partition"] {
        Value::Null => None,
        number => {
            let number = number.as_u64().and_then(|it| u32::try_from(it).ok()).filter(|it| *it > 0);
            let number = number.ok_or_else(|| {
                Error::Unsupported(
                    "records a partition that is no number from 1 to 4294967295".into(),
                )
            })?;
            Some(Part::Partition(number))
        }
    };
    let content = Content { snapshot, part, ..Content::default() };
    content.check_recordable().map_err(|error| Error::Unsupported(error.to_string()))?;
    Ok(content)
}

/// Returns what a map says about its image. `Null` if it says nothing.
fn source(map: &Map) -> Value {
    let info = map.info().ok().and_then(|text| serde_json::from_str::<Value>(&text).ok());
    info.and_then(|mut info| info.get_mut("source").map(Value::take)).unwrap_or_default()
}

/// Returns the name of the image of a map, in the folder of the map.
fn image_name(name: &OsStr, map: &Map) -> OsString {
    let source = source(map);
    let recorded = source["name"].as_str();
    let is_name = |name: &&str| {
        !name.contains(['/', '\0', '\u{fffd}']) && !["", ".", "..", "-"].contains(name)
    };
    let recorded = recorded.filter(is_name);
    match recorded {
        Some(recorded) => Path::new(name).with_file_name(recorded).into_os_string(),
        None => {
            let bytes = name.as_bytes();
            let name = OsStr::from_bytes(bytes.strip_suffix(b".blkmap").unwrap_or(bytes));
            Format::without_suffix(name).to_owned()
        }
    }
}
