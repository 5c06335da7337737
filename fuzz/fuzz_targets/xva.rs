//! Reads the disks of an export of XenServer, some bytes of which are changed. The archive and its compressed form have the same
//! disks, and a disk that is read has the content that was written.

#![no_main]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::LazyLock;

use blkimage::{OpenOptions, Source};
use flate2::{Compression, write::GzEncoder};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;
use xxhash_rust::xxh64::xxh64;

/// Blocks that are stored and not, the length of the last one, and changes.
type Input = (Vec<bool>, u16, Vec<(u8, Vec<u8>)>, Vec<(u16, u8)>);

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir_in("/dev/shm").unwrap());

fuzz_target!(|input: Input| {
    let (stored, last, text_changes, changes) = input;
    let stored: Vec<_> = stored.into_iter().take(3).collect();
    let length = usize::from(last).max(1);
    let size = stored.len() * MIB + length;
    let mut text = format!(
        "<value><struct><member><name>objects</name><value><array><data>{}{}</data></array></value></member></struct></value>",
        object("VBD", "Ref:9", "<member><name>VDI</name><value>Ref:7</value></member><member><name>type</name><value>Disk</value></member>"),
        object("VDI", "Ref:7", &format!("<member><name>virtual_size</name><value>{size}</value></member>")),
    )
    .into_bytes();
    let is_changed = !text_changes.is_empty() || !changes.is_empty();
    for (place, bytes) in text_changes {
        let at = usize::from(place) * text.len() / 256;
        let end = (at + bytes.len()).min(text.len());
        text.splice(at..end, bytes);
    }
    let mut archive = Vec::new();
    add(&mut archive, "ova.xml", &text);
    let mut content = Vec::new();
    for (index, is_stored) in stored.iter().chain([&true]).enumerate() {
        let length = if index == stored.len() { length } else { MIB };
        let is_stored = *is_stored || index == 0;
        let block = vec![if is_stored { index as u8 + 1 } else { 0 }; length];
        if is_stored {
            add(&mut archive, &format!("Ref:7/{index:08}"), &block);
            let sum = format!("{:016x}", xxh64(&block, 0));
            add(&mut archive, &format!("Ref:7/{index:08}.xxhash"), sum.as_bytes());
        }
        content.extend(block);
    }
    archive.extend([0; 1024]);
    for (place, value) in changes {
        // Where headers and checksums are.
        let place = usize::from(place);
        let at = match place {
            0..8192 => place,
            _ => archive.len().saturating_sub(4096) + place % 4096,
        };
        if let Some(byte) = archive.get_mut(at) {
            *byte = value;
        }
    }
    let (plain, packed) = (FOLDER.path().join("fuzz.xva"), FOLDER.path().join("fuzz.xva.gz"));
    fs::write(&plain, &archive).unwrap();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&archive).unwrap();
    fs::write(&packed, encoder.finish().unwrap()).unwrap();
    for found in [read(&plain), read(&packed)] {
        match found {
            Some(found) if found.len() == content.len() => {
                assert!(found == content, "another content")
            }
            found => assert!(is_changed, "{:?}", found.map(|found| found.len())),
        }
    }
});

/// Returns the content of the only disk, if it can be read.
fn read(path: &Path) -> Option<Vec<u8>> {
    let options = OpenOptions::new();
    let found = || {
        let Some(container) = options.open_container(path)? else { return Ok(None) };
        let Some(name) = container.disks()?.pop() else { return Ok(None) };
        let image = container.open(&options, &name)?;
        if image.size() > 64 << 20 {
            return Ok(None);
        }
        let mut content = vec![0; image.size() as usize];
        image.read_exact_at(&mut content, 0)?;
        image.check_unchanged().map(|()| Some(content))
    };
    found().unwrap_or_else(|error| {
        assert_one_line(&error);
        None
    })
}

fn object(class: &str, id: &str, fields: &str) -> String {
    format!(
        "<value><struct><member><name>class</name><value>{class}</value></member><member><name>id</name><value>{id}</value></member>\
         <member><name>snapshot</name><value><struct>{fields}</struct></value></member></struct></value>"
    )
}

fn add(archive: &mut Vec<u8>, name: &str, content: &[u8]) {
    let mut header = [0; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
    header[156] = b'0';
    header[257..265].copy_from_slice(b"ustar\x0000");
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    archive.extend(header);
    archive.extend(content);
    archive.resize(archive.len().next_multiple_of(512), 0);
}

fn assert_one_line(error: &blkimage::Error) {
    let message = error.to_string();
    assert!(!message.chars().any(char::is_control), "{message}");
}

const MIB: usize = 1 << 20;
