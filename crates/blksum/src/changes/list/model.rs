//! A plain reading of lists, for the tests and the fuzz target. It knows no limits, and panics if the text is not a list.

use serde_json::Value;

/// Returns offset and length of each extent in a text that has the form of this name.
pub fn extents(text: &[u8], form: &str) -> Vec<(u64, u64)> {
    match form {
        "thin-delta" => of_thin_delta(std::str::from_utf8(text).unwrap()),
        "xenserver" => of_bitmap(text),
        "vmware" if text.trim_ascii_start().starts_with(b"(") => {
            of_pyvmomi(std::str::from_utf8(text).unwrap())
        }
        "lines" | "csv" => of_columns(std::str::from_utf8(text).unwrap()),
        _ => {
            let values = serde_json::Deserializer::from_slice(text).into_iter::<Value>();
            values.flat_map(|value| of_json(&value.unwrap(), form)).collect()
        }
    }
}

/// Returns the extents as ranges, sorted and joined.
pub fn joined(extents: &[(u64, u64)]) -> Vec<std::ops::Range<u64>> {
    let mut edges: Vec<_> =
        extents.iter().flat_map(|(offset, length)| [(*offset, -1), (offset + length, 1)]).collect();
    // A start comes before an end at the same place, so that adjacent extents join.
    edges.sort_unstable();
    let (mut ranges, mut start, mut depth) = (Vec::new(), 0, 0);
    for (edge, change) in edges {
        if depth == 0 {
            start = edge;
        }
        depth += change;
        if depth == 0 {
            ranges.push(start..edge);
        }
    }
    ranges
}

fn of_json(value: &Value, form: &str) -> Vec<(u64, u64)> {
    if let Some(array) = value.as_array() {
        return array.iter().flat_map(|value| of_json(value, form)).collect();
    }
    let number = |value: &Value| match value {
        Value::String(text) => text.parse().unwrap(),
        other => other.as_u64().unwrap(),
    };
    let field = |value: &Value, names: [&str; 2]| {
        names.iter().find_map(|name| value.get(name)).cloned().unwrap_or(Value::Null)
    };
    let elements = |names| field(value, names).as_array().cloned().unwrap_or_default();
    match form {
        "csi" => {
            let extent = |block: &Value| {
                let offset = field(block, ["byte_offset", "byteOffset"]);
                let offset = if offset.is_null() { 0 } else { number(&offset) };
                (offset, number(&field(block, ["size_bytes", "sizeBytes"])))
            };
            elements(["block_metadata", "blockMetadata"]).iter().map(extent).collect()
        }
        "ebs" => {
            let size = number(&value["BlockSize"]);
            let blocks = [elements(["Blocks", ""]), elements(["ChangedBlocks", ""])].concat();
            blocks.iter().map(|block| (number(&block["BlockIndex"]) * size, size)).collect()
        }
        "vmware" => {
            let extent = |area: &Value| {
                (
                    number(&field(area, ["start", "Start"])),
                    number(&field(area, ["length", "Length"])),
                )
            };
            elements(["changedArea", "ChangedArea"]).iter().map(extent).collect()
        }
        "nbdinfo" if value["type"] == 0 => Vec::new(),
        _ => vec![(number(&value["offset"]), number(&value["length"]))],
    }
}

fn of_columns(text: &str) -> Vec<(u64, u64)> {
    let lines = text.lines().filter(|line| line.contains(|c: char| c.is_ascii_digit()));
    let numbers = |line: &str| -> Vec<u64> {
        let words = line.split(|c: char| c == ',' || c.is_ascii_whitespace());
        words.filter(|word| !word.is_empty()).map(|word| word.parse().unwrap()).collect()
    };
    lines.map(|line| numbers(line).try_into().map(|[a, b]: [u64; 2]| (a, b)).unwrap()).collect()
}

fn of_pyvmomi(text: &str) -> Vec<(u64, u64)> {
    let number = |text: &str, name: &str| -> u64 {
        let (_, rest) = text.split_once(name).unwrap();
        rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
    };
    let areas = text.split("DiskChangeExtent) {").skip(1);
    areas.map(|area| (number(area, "start = "), number(area, "length = "))).collect()
}

fn of_bitmap(text: &[u8]) -> Vec<(u64, u64)> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let characters = text.iter().filter(|byte| !byte.is_ascii_whitespace() && **byte != b'=');
    let bits = characters.flat_map(|byte| {
        let value = ALPHABET.iter().position(|it| it == byte).unwrap();
        (0..6).rev().map(move |bit| value >> bit & 1 == 1)
    });
    let set = bits.enumerate().filter(|(_, is_set)| *is_set);
    set.map(|(number, _)| (number as u64 * 65536, 65536)).collect()
}

fn of_thin_delta(text: &str) -> Vec<(u64, u64)> {
    let document = roxmltree::Document::parse(text).unwrap();
    let superblock = document.root_element();
    let number = |node: roxmltree::Node<'_, '_>, name| -> u64 {
        node.attribute(name).unwrap().parse().unwrap()
    };
    let size = number(superblock, "data_block_size") * 512;
    let blocks = superblock.descendants().filter(|node| {
        let names = node.ancestors().map(|it| it.tag_name().name().to_owned());
        let differs = |name: String| ["different", "left_only", "right_only"].contains(&&*name);
        node.has_attribute("begin") && names.into_iter().any(differs)
    });
    blocks.map(|node| (number(node, "begin") * size, number(node, "length") * size)).collect()
}
