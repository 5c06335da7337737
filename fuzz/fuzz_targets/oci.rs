//! Lists and reads the disks of an archive with one image of any layers, some bytes of which are changed. A disk whose blobs
//! match their digests has the content that was written, and without changes the disks are those that a container runtime
//! sees.

#![no_main]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use blkimage::{Format, OpenOptions, Source};
use libfuzzer_sys::fuzz_target;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

type Member = (u8, u8, Vec<u8>);
type Layer = (bool, u8, Vec<u8>, Vec<Member>);
type Input = (Vec<Layer>, Vec<(u16, u8)>, Vec<(u16, Vec<u8>)>);

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir_in("/dev/shm").unwrap());
static PATH: LazyLock<PathBuf> = LazyLock::new(|| FOLDER.path().join("fuzz.tar"));

fuzz_target!(|input: Input| {
    let (layers, changes, text_changes) = input;
    let mut blobs = Vec::new();
    let mut descriptors = Vec::new();
    let mut contents = Vec::new();
    for (is_disk, title, content, members) in &layers {
        let title = NAMES[usize::from(*title) % NAMES.len()];
        let (kind, blob) = match is_disk {
            true => ("application/vnd.kubevirt.disk.raw", content.clone()),
            false => ("application/vnd.oci.image.layer.v1.tar", tar(members)),
        };
        descriptors.push(descriptor(kind, &blob, title));
        match is_disk {
            true => contents.push(content.clone()),
            false => contents.extend(members.iter().map(|member| member.2.clone())),
        }
        blobs.push(blob);
    }
    let mut manifest = format!("{{\"layers\":[{}]}}", descriptors.join(",")).into_bytes();
    for (place, bytes) in &text_changes {
        let at = usize::from(*place) % (manifest.len() + 1);
        let end = (at + bytes.len()).min(manifest.len());
        manifest.splice(at..end, bytes.iter().copied());
    }
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let index = format!("{{\"manifests\":[{}]}}", descriptor(kind, &manifest, "m"));
    blobs.push(manifest);
    let mut archive = Vec::new();
    add(&mut archive, "oci-layout", b'0', b"{\"imageLayoutVersion\":\"1.0.0\"}");
    add(&mut archive, "index.json", b'0', index.as_bytes());
    blobs.sort();
    blobs.dedup();
    for blob in blobs {
        add(&mut archive, &format!("blobs/sha256/{}", hex(&blob)), b'0', &blob);
    }
    archive.extend([0; 1024]);
    for (place, value) in &changes {
        let at = usize::from(*place) % archive.len();
        archive[at] = *value;
    }
    fs::write(&*PATH, &archive).unwrap();
    let is_changed = !changes.is_empty() || !text_changes.is_empty();
    check(&layers, &contents, is_changed);
});

fn check(layers: &[Layer], contents: &[Vec<u8>], is_changed: bool) {
    let options = OpenOptions::new().format(Format::Raw);
    let image = match options.open_container(&PATH) {
        Ok(Some(image)) => image,
        Ok(None) => return,
        Err(error) => return assert_one_line(&error),
    };
    if let Err(error) = image.manifest() {
        assert_one_line(&error);
    }
    let disks = match image.disks() {
        Ok(disks) => disks,
        Err(error) => return assert_one_line(&error),
    };
    let mut found = BTreeMap::new();
    for disk in disks {
        let opened = match image.open(&options, &disk) {
            Ok(opened) => opened,
            Err(error) => {
                assert_one_line(&error);
                continue;
            }
        };
        let mut content = vec![0; opened.size() as usize];
        opened.read_exact_at(&mut content, 0).unwrap();
        match opened.check_digests() {
            Ok(()) => assert!(is_changed || contents.contains(&content), "another content"),
            Err(error) => {
                assert!(is_changed, "{error}");
                assert_one_line(&error);
            }
        }
        assert!(found.insert(disk, content).is_none(), "a name twice");
    }
    if !is_changed {
        found.retain(|name, _| name.starts_with(b"disk/"));
        let expected = seen(layers);
        assert_eq!(found, expected);
    }
}

/// Returns the files in the folder `disk` after all layers were applied.
fn seen(layers: &[Layer]) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut files = BTreeMap::new();
    for (is_disk, _, _, members) in layers {
        if *is_disk {
            continue;
        }
        let names = || members.iter().map(|member| name(member).trim_start_matches("./"));
        let is_hiding = |it| matches!(it, ".wh..wh..opq" | ".wh.disk" | "disk/.wh..wh..opq");
        if names().any(is_hiding) {
            files.clear();
        }
        for gone in names().filter_map(|it| it.strip_prefix("disk/.wh.")) {
            files.remove(format!("disk/{gone}").as_bytes());
        }
        for member in members {
            let name = name(member).trim_start_matches("./");
            // What is no folder takes the place of one. A file whose name ends with a slash is a folder.
            let is_folder = kind(member) == b'5' || kind(member) == b'0' && name.ends_with('/');
            match name.strip_prefix("disk/") {
                Some(file) if file.starts_with(".wh.") => {}
                None | Some("") if name.trim_end_matches('/') == "disk" => {
                    if !is_folder {
                        files.clear();
                    }
                }
                Some(file) if file.contains('/') => {
                    let folder = file.split('/').next().unwrap();
                    files.remove(format!("disk/{folder}").as_bytes());
                }
                Some(_) if kind(member) == b'5' => drop(files.remove(name.as_bytes())),
                Some(_) => drop(files.insert(name.as_bytes().to_vec(), member.2.clone())),
                None => {}
            }
        }
    }
    files
}

fn name(member: &Member) -> &'static str {
    MEMBERS[usize::from(member.1) % MEMBERS.len()]
}

fn kind(member: &Member) -> u8 {
    KINDS[usize::from(member.0) % KINDS.len()]
}

fn tar(members: &[Member]) -> Vec<u8> {
    let mut archive = Vec::new();
    for member in members {
        let kind = kind(member);
        let has_content = kind == b'0' && !name(member).ends_with('/');
        add(&mut archive, name(member), kind, if has_content { &member.2 } else { b"" });
    }
    archive.extend([0; 1024]);
    archive
}

fn add(archive: &mut Vec<u8>, name: &str, kind: u8, content: &[u8]) {
    let mut header = [0; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
    header[156] = kind;
    header[257..265].copy_from_slice(b"ustar\x0000");
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    archive.extend(header);
    archive.extend(content);
    archive.resize(archive.len().next_multiple_of(512), 0);
}

fn descriptor(kind: &str, content: &[u8], title: &str) -> String {
    let (digest, size) = (hex(content), content.len());
    format!(
        "{{\"mediaType\":\"{kind}\",\"digest\":\"sha256:{digest}\",\"size\":{size},\
         \"annotations\":{{\"org.opencontainers.image.title\":\"{title}\"}}}}"
    )
}

fn hex(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn assert_one_line(error: &blkimage::Error) {
    let message = error.to_string();
    assert!(!message.chars().any(char::is_control), "{message}");
}

const NAMES: [&str; 6] = ["a.raw", "b", "dir/a", "../x", "blobs/sha256/x", "c d"];
const MEMBERS: [&str; 14] = [
    "disk/a",
    "disk/b",
    "./disk/a",
    "disk/.wh.a",
    "disk/.wh.b",
    "disk/.wh..wh..opq",
    "disk/",
    "disk",
    ".wh.disk",
    ".wh..wh..opq",
    "disk/a/x",
    "etc/disk/a",
    "disk/../x",
    "disks",
];
const KINDS: [u8; 8] = [b'0', b'0', b'0', b'0', b'0', b'0', b'2', b'5'];
