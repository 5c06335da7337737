//! The maps of test-vectors/maps.json, which the reference made.

use std::collections::HashMap;
use std::ops::ControlFlow;

use blkhash::engine::Batch;
use blkhash::{BlockDigests, BlockSize, Comparison, Sink};
use blkmap::{Header, Key, Map, Report, Writer, check, checksum, diff, seal};
use serde_json::Value;

fn vectors() -> Value {
    let text = include_str!("../../../test-vectors/maps.json");
    serde_json::from_str(text).expect("JSON")
}

fn list<'a>(vectors: &'a Value, name: &str) -> &'a [Value] {
    vectors[name].as_array().expect("a list")
}

fn text<'a>(vector: &'a Value, name: &str) -> &'a str {
    vector[name].as_str().unwrap_or_else(|| panic!("{name} of {vector}"))
}

fn number(vector: &Value, name: &str) -> u64 {
    vector[name].as_u64().unwrap_or_else(|| panic!("{name} of {vector}"))
}

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
    (0..hex.len()).step_by(2).map(digit).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Puts pieces over zeros.
fn put(file: &mut [u8], pieces: &Value) {
    for piece in pieces.as_array().expect("a list") {
        let (at, piece) = (piece[0].as_u64().unwrap() as usize, bytes(piece[1].as_str().unwrap()));
        file[at..at + piece.len()].copy_from_slice(&piece);
    }
}

/// The content of an image: extents with their offset, length and kind.
struct Image(Vec<(u64, u64, char)>);

impl Image {
    fn parse(spec: &str) -> Self {
        let mut offset = 0;
        let extents = spec.split_whitespace().map(|item| {
            let (length, kind) = item.split_once(':').expect("LENGTH:KIND");
            let digits = length.trim_end_matches(|c: char| !c.is_ascii_digit());
            let scale = match &length[digits.len()..] {
                "" => 1,
                "k" => 1 << 10,
                "m" => 1 << 20,
                "g" => 1 << 30,
                "t" => 1_u64 << 40,
                suffix => panic!("{suffix}"),
            };
            let length = digits.parse::<u64>().unwrap() * scale;
            offset += length;
            (offset - length, length, kind.chars().next().unwrap())
        });
        Self(extents.collect())
    }

    fn size(&self) -> u64 {
        self.0.iter().map(|(_, length, _)| length).sum()
    }

    fn byte(&self, at: u64) -> u8 {
        let extent =
            self.0.iter().find(|(offset, length, _)| (*offset..offset + length).contains(&at));
        match extent.expect("a byte of the image").2 {
            '#' => (at % 251) as u8,
            '0' | '-' => 0,
            letter => letter as u8,
        }
    }

    /// Returns the number of bytes of zeros from `at` on.
    fn zeros(&self, at: u64) -> u64 {
        let mut end = at;
        for (offset, length, kind) in &self.0 {
            if (*offset..offset + length).contains(&end) && matches!(kind, '0' | '-') {
                end = offset + length;
            }
        }
        end - at
    }

    /// Returns the digests of the blocks from `from` to `to`.
    fn digests(&self, header: &Header, from: u64, to: u64) -> BlockDigests {
        let (block_size, size) = (u64::from(header.block_size), self.size());
        let mut digests = BlockDigests::default();
        let leaf = header.leaf();
        let mut block = from;
        while block < to {
            let at = block * block_size;
            let zeros = (self.zeros(at) / block_size).min(to - block);
            digests.push_zero_blocks(zeros, header.block_size.get());
            block += zeros;
            if zeros == 0 {
                let end = (at + block_size).min(size);
                let content: Vec<u8> = (at..end).map(|at| self.byte(at)).collect();
                let mut batch = Batch::new(&leaf, &mut digests);
                batch.update(&content);
                batch.finish();
                block += 1;
            }
        }
        digests
    }
}

/// Writes the map of a vector.
fn write(vector: &Value, header: Header, image: &Image) -> Vec<u8> {
    let key = Key::new(bytes(text(vector, "key")));
    let info = text(vector, "info");
    let (block_size, size) = (u64::from(header.block_size), image.size());
    let blocks = size.div_ceil(block_size);
    let mut writer = Writer::new(Vec::new(), header, size).unwrap().sealed_with(key);
    let short = size % block_size;
    writer.set_padded_last((short > 0).then(|| {
        let mut last: Vec<u8> = (size - short..size).map(|at| image.byte(at)).collect();
        last.resize(header.block_size.get(), 0);
        header.leaf().hash(&last)
    }));
    let pages = &vector["pages"];
    let (mut page, end) = (pages[0].as_u64().unwrap(), pages[1].as_u64().unwrap());
    writer.skip_to(page).unwrap();
    let mut stops: Vec<u64> =
        list(vector, "checkpoints").iter().map(|page| page.as_u64().unwrap() + 1).collect();
    let checkpoints = stops.len();
    stops.push(end);
    for (index, stop) in stops.into_iter().enumerate() {
        let block = |page: u64| page.saturating_mul(header.blocks_per_page()).min(blocks);
        writer.take(&image.digests(&header, block(page), block(stop))).unwrap();
        if index < checkpoints {
            writer.checkpoint(info).unwrap();
        }
        page = stop;
    }
    writer.finish(info).unwrap().0
}

fn header(vector: &Value) -> Header {
    Header::with_id(
        bytes(text(vector, "file_id")).try_into().unwrap(),
        text(vector, "digest").parse().unwrap(),
        BlockSize::try_from(number(vector, "block_size")).unwrap(),
        text(vector, "salt").parse().unwrap(),
    )
}

fn check_all(map: &Map) -> blkmap::Result<()> {
    check(map, &mut |_| ControlFlow::Continue(()))
}

/// Returns the files of all maps that are built or appended to, by their names.
fn files(vectors: &Value) -> HashMap<&str, Vec<u8>> {
    let mut files = HashMap::new();
    for vector in list(vectors, "maps") {
        let mut file = vec![0; number(vector, "length") as usize];
        put(&mut file, &vector["file"]);
        files.insert(text(vector, "name"), file);
    }
    for vector in list(vectors, "appended") {
        let mut file = files[text(vector, "base")].clone();
        file.resize(number(vector, "length") as usize, 0);
        put(&mut file, &vector["file"]);
        files.insert(text(vector, "name"), file);
    }
    files
}

#[test]
fn maps_are_those_of_the_reference() {
    let vectors = vectors();
    let files = files(&vectors);
    assert!(list(&vectors, "maps").len() >= 60);
    for vector in list(&vectors, "maps") {
        let name = text(vector, "name");
        let image = Image::parse(text(vector, "image"));
        let written = write(vector, header(vector), &image);
        assert_eq!(written.len(), files[name].len(), "{name}");
        if let Some(at) = (0..written.len()).find(|at| written[*at] != files[name][*at]) {
            panic!("{name}: byte {at} is {:02x}, not {:02x}", written[at], files[name][at]);
        }
        let map = Map::open(written).unwrap();
        check_all(&map).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(hex(&map.commit().root().unwrap_or_default()), text(vector, "root"), "{name}");
        let id = map.commit().content_id(map.header()).unwrap_or_default();
        assert_eq!(hex(&id), text(vector, "content_id"), "{name}");
        if let Some(key) = Key::new(bytes(text(vector, "key"))) {
            map.check_seal(&key).unwrap();
        }
        for (construction, expected) in vector["checksums"].as_object().unwrap() {
            // The whole fold of the largest images takes minutes.
            if construction == "linear" || map.commit().blocks() > 1 << 28 {
                continue;
            }
            let found = checksum(&map, construction.parse().unwrap(), 1);
            let found = found.unwrap_or_else(|error| panic!("{name}: {construction}: {error}"));
            assert_eq!(found.to_string(), expected.as_str().unwrap(), "{name}: {construction}");
        }
    }
}

#[test]
fn appended_states_are_read() {
    let vectors = vectors();
    let files = files(&vectors);
    for vector in list(&vectors, "appended") {
        let name = text(vector, "name");
        let file = &files[name];
        let map = Map::open(file.clone()).unwrap();
        check_all(&map).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(map.commit().sequence(), number(vector, "sequence"), "{name}");
        assert_eq!(hex(&map.commit().root().unwrap_or_default()), text(vector, "root"), "{name}");
        let base = Map::open(files[text(vector, "base")].clone()).unwrap();
        let before = Map::open_state(file.clone(), base.commit().sequence()).unwrap();
        assert_eq!(before.commit(), base.commit(), "{name}");
        let mut found = Vec::new();
        let mut take = |first: u64, count: u64, kind: Comparison| {
            let kind = match kind {
                Comparison::Equal | Comparison::Zeros => return,
                kind => format!("{kind:?}").to_lowercase(),
            };
            found.push(serde_json::json!([first, count, kind]));
        };
        diff(&before, &map, Report::new(&mut take)).unwrap();
        assert_eq!(Value::Array(found), vector["diff"], "{name}");
        if vector["image"].is_null() {
            let mut sealed = files[text(vector, "base")].clone();
            let key = Key::new(bytes(text(vector, "key"))).unwrap();
            seal(&base, &mut sealed, &key).unwrap();
            assert_eq!(hex(&sealed), hex(file), "{name}");
        }
    }
}

#[test]
fn invalid_maps_are_refused() {
    let vectors = vectors();
    let files = files(&vectors);
    let mut late = Vec::new();
    for vector in list(&vectors, "refused") {
        let reason = text(vector, "reason");
        let mut file = files[text(vector, "base")].clone();
        file.resize(number(vector, "length") as usize, 0);
        put(&mut file, &vector["changes"]);
        let opened = Map::open(file);
        if text(vector, "when") == "open" && opened.is_ok() {
            late.push(reason);
        }
        let result = opened.and_then(|map| check_all(&map));
        assert!(result.is_err(), "not refused: {reason}");
    }
    assert!(late.is_empty(), "refused only by a full check: {late:?}");
}
