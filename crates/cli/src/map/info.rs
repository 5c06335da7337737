//! The info of a map, which describes its image.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use blkimage::{Format, Image, Source, partition, split_member};
use serde_json::{Map, Value, json};

use super::base_name;

use crate::time;

/// What a map is made of.
pub struct Subject<'a> {
    /// Name of the image on the command line.
    pub name: &'a OsStr,
    pub image: &'a Image,
    /// What is read of the image.
    pub source: &'a dyn Source,
    pub snapshot: Option<&'a str>,
    pub partition: Option<u32>,
}

impl Subject<'_> {
    /// Adds the description of the image to the info of its map.
    pub fn describe(&self, info: &mut Map<String, Value>) {
        info.insert("source".into(), describe(self));
        let partitions = partition::table(self.source).unwrap_or_default().partitions;
        if !partitions.is_empty() {
            let object = |it: &partition::Partition| json!({"number": it.number, "offset": it.offset, "length": it.length});
            let partitions: Vec<Value> = partitions.iter().map(object).collect();
            info.insert("partitions".into(), partitions.into());
        }
    }
}

/// Describes a map that was made in this way.
pub fn made(how: impl Into<Value>) -> Map<String, Value> {
    let mut info = Map::new();
    info.insert("created".into(), time::now().into());
    let program = concat!("blkhash ", env!("CARGO_PKG_VERSION"));
    info.insert("program".into(), program.into());
    info.insert("made".into(), how.into());
    info
}

/// Returns whether the info of a map describes this image as it is. Times and inodes of devices and of servers
/// say nothing, so only the sizes of those are compared.
pub fn is_same(info: &Value, of_image: &Value) -> bool {
    let identity = |info: &Value| -> Option<Vec<Value>> {
        let source = &info["source"];
        let files = source["files"].as_array()?;
        let of_file = |file: &Value| json!([file["size"], file["mtime_ns"], file["ino"]]);
        let mut identity: Vec<Value> = files.iter().map(of_file).collect();
        identity.push(json!([source["format"], source["snapshot"], source["partition"]]));
        Some(identity)
    };
    identity(of_image).is_some_and(|it| Some(it) == identity(info))
}

/// Returns the number of the partition that a map is of, or `None` in `Some` for a whole image. Returns `None` if the
/// map does not say.
pub fn partition_of(map: &blkmap::Map) -> Option<Option<u64>> {
    let info: Value = serde_json::from_str(&map.info().ok()?).ok()?;
    let source = info["source"].as_object()?;
    Some(source.get("partition").and_then(Value::as_u64))
}

/// Returns the snapshot that a map is of.
pub fn snapshot_of(map: &blkmap::Map) -> Option<String> {
    let info: Value = serde_json::from_str(&map.info().ok()?).ok()?;
    info["source"]["snapshot"].as_str().map(str::to_owned)
}

/// Returns the partitions that the info of a map names.
pub fn partitions(map: &blkmap::Map) -> Vec<partition::Partition> {
    let info: Value = match map.info().map(|text| serde_json::from_str(&text)) {
        Ok(Ok(info)) => info,
        _ => return Vec::new(),
    };
    let partition = |it: &Value| {
        Some(partition::Partition {
            number: u32::try_from(it["number"].as_u64()?).ok()?,
            offset: it["offset"].as_u64()?,
            length: it["length"].as_u64()?,
        })
    };
    info["partitions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(partition)
        .take(MAX_PARTITIONS)
        .collect()
}

/// Returns whether times and inodes of all files are known, so that a change of the image shows.
pub fn shows_changes(of_image: &Value) -> bool {
    let files = of_image["source"]["files"].as_array();
    files.is_some_and(|files| files.iter().all(|file| !file["mtime_ns"].is_null()))
}

fn describe(subject: &Subject<'_>) -> Value {
    let Subject { name, image, snapshot, partition, .. } = subject;
    let mut files = Vec::new();
    for (index, member) in image.chain().iter().enumerate() {
        for (number, file) in member.files().enumerate() {
            let role = match (index, number) {
                (0, 0) => "image",
                (_, 0) => "backing",
                _ => "data",
            };
            files.push(describe_file(file.name(), file.size(), role));
        }
    }
    let mut source = json!({
        "name": base_name(name).to_string_lossy(),
        "format": Format::name(image.format()),
        "snapshot": snapshot,
        "files": files,
    });
    if let Some(partition) = partition {
        source["partition"] = json!(partition);
    }
    source
}

fn describe_file(name: &Path, size: u64, role: &str) -> Value {
    let mut file =
        json!({"name": base_name(name.as_os_str()).to_string_lossy(), "role": role, "size": size});
    let name = split_member(name).map_or(name, |(appliance, _)| appliance);
    // A file of the host. A URI is none, and the node of a device is another one on each host.
    if let Some(metadata) = std::fs::metadata(name).ok().filter(std::fs::Metadata::is_file) {
        let time = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
        if let Ok(time) = i64::try_from(time) {
            file["mtime_ns"] = json!(time);
        }
        file["ino"] = json!(metadata.ino());
        file["dev"] = json!(metadata.dev());
    }
    file
}

/// More partitions of a map are left out.
const MAX_PARTITIONS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_told_apart_by_their_files() {
        let info = |time: u64, name: &str| {
            json!({"source": {"format": "raw", "files": [
                {"name": name, "size": 5, "mtime_ns": time, "ino": 1, "dev": time}
            ]}})
        };
        assert!(is_same(&info(1, "a"), &info(1, "b")));
        assert!(!is_same(&info(1, "a"), &info(2, "a")));
        assert!(!is_same(&json!({}), &json!({})));
    }
}
