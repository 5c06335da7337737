//! Lists and reads the members of a zip archive, some bytes of which are changed. Without changes, they have the content that was
//! written. A member that is read has the CRC-32 that its archive states.

#![no_main]

use std::io::Write;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::{collections::BTreeMap, fs};

use blkimage::{Format, OpenOptions, Source};
use flate2::{Compression, Crc, write::DeflateEncoder};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

type Member = (u8, bool, bool, Vec<u8>);
type Input = (Vec<Member>, Vec<u8>, Vec<(u16, u8)>);

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir_in("/dev/shm").unwrap());
static PATH: LazyLock<PathBuf> = LazyLock::new(|| FOLDER.path().join("fuzz.zip"));

fuzz_target!(|input: Input| {
    let (members, comment, changes) = input;
    let mut archive = archive(&members, &comment);
    for (place, value) in &changes {
        let at = usize::from(*place) % archive.len();
        archive[at] = *value;
    }
    fs::write(&*PATH, &archive).unwrap();
    let options = OpenOptions::new().format(Format::Raw);
    let container = match options.open_container(&PATH) {
        Ok(Some(container)) => container,
        Ok(None) => return,
        Err(error) => return assert_one_line(&error),
    };
    let text = match container.manifest() {
        Ok(manifest) => String::from_utf8(manifest.text).unwrap(),
        Err(error) => return assert_one_line(&error),
    };
    if let Err(error) = container.disks() {
        assert_one_line(&error);
    }
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let (name, sum) = line.strip_prefix("CRC32 (").unwrap().rsplit_once(") = ").unwrap();
        let image = match container.open(&options, name.as_bytes()) {
            Ok(image) => image,
            Err(error) => {
                assert_one_line(&error);
                continue;
            }
        };
        let mut content = vec![0; image.size() as usize];
        let read = image.read_exact_at(&mut content, 0).and_then(|()| image.check_unchanged());
        match read {
            Err(error) => assert_one_line(&error),
            Ok(()) => {
                let mut crc = Crc::new();
                crc.update(&content);
                assert_eq!(format!("{:08x}", crc.sum()), sum, "another CRC-32");
                found.insert(name.to_owned(), content);
            }
        }
    }
    let is_unique = members
        .iter()
        .all(|member| members.iter().filter(|other| other.0 % 6 == member.0 % 6).count() == 1);
    if changes.is_empty() && is_unique {
        for member in &members {
            assert_eq!(found[NAMES[usize::from(member.0 % 6)]], member.3, "another content");
        }
    }
});

fn archive(members: &[Member], comment: &[u8]) -> Vec<u8> {
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for (name, is_deflate, is_late, content) in members {
        let name = NAMES[usize::from(name % 6)].as_bytes();
        let mut crc = Crc::new();
        crc.update(content);
        let body = match is_deflate {
            false => content.clone(),
            true => {
                let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(content).unwrap();
                encoder.finish().unwrap()
            }
        };
        let offset = archive.len() as u32;
        let numbers: Vec<u8> = [crc.sum(), body.len() as u32, content.len() as u32]
            .iter()
            .flat_map(|it| it.to_le_bytes())
            .collect();
        let flags = if *is_late { 8_u16 } else { 0 };
        let method = if *is_deflate { 8_u16 } else { 0 };
        let mut fields = [flags.to_le_bytes(), method.to_le_bytes(), [0; 2], [0; 2]].concat();
        let local = if *is_late { vec![0; 12] } else { numbers.clone() };
        archive.extend([&b"PK\x03\x04\x14\0"[..], &fields, &local].concat());
        archive.extend([&(name.len() as u16).to_le_bytes()[..], &[0; 2], name, &body].concat());
        if *is_late {
            archive.extend([&b"PK\x07\x08"[..], &numbers].concat());
        }
        fields.extend(&numbers);
        directory.extend([&b"PK\x01\x02\x14\0\x14\0"[..], &fields].concat());
        directory.extend([&(name.len() as u16).to_le_bytes()[..], &[0; 12]].concat());
        directory.extend([&offset.to_le_bytes()[..], name].concat());
    }
    let (start, size) = (archive.len() as u32, directory.len() as u32);
    let count = (members.len() as u16).to_le_bytes();
    archive.extend(directory);
    archive.extend([&b"PK\x05\x06\0\0\0\0"[..], &count, &count, &size.to_le_bytes()].concat());
    let comment = &comment[..comment.len().min(1000)];
    let length = (comment.len() as u16).to_le_bytes();
    archive.extend([&start.to_le_bytes()[..], &length, comment].concat());
    archive
}

fn assert_one_line(error: &blkimage::Error) {
    let message = error.to_string();
    assert!(!message.chars().any(char::is_control), "{message}");
}

const NAMES: [&str; 6] = ["a.img", "b.raw", "c", "x/a.img", "x/b", "d e"];
