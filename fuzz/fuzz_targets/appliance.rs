//! Lists and reads the disks of any appliance, an archive with changed headers and any descriptor. The names must be
//! the ones that a parser of XML finds, and the content must equal the one member with this name which the tar crate
//! reads, and of the file that it leaves where it extracts all members.

#![no_main]

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use blkimage::{Format, OpenOptions, Source};
use libfuzzer_sys::fuzz_target;
use roxmltree::{Document, Node};
use tempfile::TempDir;

type Member = (u8, u8, u8, Vec<u8>, Vec<(u8, u8)>);
type Input = (Vec<(u8, u8, u8)>, Vec<(u16, Vec<u8>)>, Vec<Member>, Vec<(u16, u8)>);

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir_in("/dev/shm").unwrap());
static PATH: LazyLock<PathBuf> = LazyLock::new(|| FOLDER.path().join("fuzz.ova"));

fuzz_target!(|input: Input| {
    let (elements, text_changes, members, changes) = input;
    let mut text = String::from("<Envelope xmlns:ovf=\"o\">");
    for (kind, id, name) in elements {
        let (id, name) = (id % 4, NAMES[usize::from(name) % NAMES.len()]);
        text += &match kind % 5 {
            0 | 1 => format!("<File ovf:id=\"f{id}\" ovf:href=\"{name}\"/>"),
            2 | 3 => format!("<Disk ovf:fileRef='f{id}'></Disk>"),
            _ => format!("<!-- <File id=\"f{id}\" href=\"{name}\"/> -->"),
        };
    }
    text += "</Envelope>";
    let mut text = text.into_bytes();
    for (place, bytes) in text_changes {
        let at = usize::from(place) % (text.len() + 1);
        let end = (at + bytes.len()).min(text.len());
        text.splice(at..end, bytes);
    }
    let mut archive = Vec::new();
    add(&mut archive, "d.ovf", b'0', text.len(), &text, &[]);
    for (kind, name, size, content, changes) in members {
        let kind = KINDS[usize::from(kind) % KINDS.len()];
        let name = NAMES[usize::from(name) % NAMES.len()];
        let size = if size < 240 { content.len() } else { usize::from(size) * 3 };
        add(&mut archive, name, kind, size, &content, &changes);
    }
    archive.extend([0; 1024]);
    for (place, value) in changes {
        let at = usize::from(place) % archive.len();
        archive[at] = value;
    }
    fs::write(&*PATH, &archive).unwrap();
    check(&archive, &text);
});

fn check(archive: &[u8], text: &[u8]) {
    let options = OpenOptions::new().format(Format::Raw);
    let appliance = match options.open_container(&PATH) {
        Ok(Some(appliance)) => appliance,
        Ok(None) => return,
        Err(error) => return assert_one_line(&error),
    };
    let disks = match appliance.disks() {
        Ok(disks) => disks,
        Err(error) => return assert_one_line(&error),
    };
    if archive[512..].starts_with(text)
        && let Ok(text) = std::str::from_utf8(text)
        && let Ok(document) = Document::parse(text)
    {
        let expected = names(&document);
        if !expected.is_empty() {
            assert_eq!(disks.len(), expected.len(), "{text}");
            for (disk, name) in disks.iter().zip(&expected) {
                let is_it = [name, &name.replace("%2e", ".")].map(|name| is_named(disk, name));
                assert!(is_it.contains(&true), "{}: {name}: {text}", disk.escape_ascii());
            }
        }
    }
    let extracted = extract(archive);
    for disk in disks {
        match appliance.open(&options, &disk) {
            Err(error) => assert_one_line(&error),
            Ok(image) => {
                let mut content = vec![0; image.size() as usize];
                image.read_exact_at(&mut content, 0).unwrap();
                if let Some(expected) = member(archive, &disk) {
                    assert!(content == expected, "another content");
                }
                if let Some(folder) = &extracted {
                    let file = fs::read(folder.path().join(OsStr::from_bytes(&disk))).ok();
                    assert!(file == Some(content), "another content after extraction");
                }
            }
        }
    }
}

/// Returns the names of the files of all disks, each once. Empty if a disk has no file.
fn names(document: &Document<'_>) -> Vec<String> {
    let of = |name: &'static str| {
        let is_it = move |node: &Node<'_, '_>| node.tag_name().name() == name;
        document.descendants().filter(is_it)
    };
    let get = |node: Node<'_, '_>, name: &str| {
        node.attributes().find(|it| it.name() == name).map(|it| it.value().to_owned())
    };
    let mut names = Vec::new();
    for id in of("Disk").filter_map(|disk| get(disk, "fileRef")) {
        let Some(file) = of("File").find(|file| get(*file, "id").unwrap_or_default() == id) else {
            return Vec::new();
        };
        match get(file, "href") {
            Some(name) if !names.contains(&name) => names.push(name),
            Some(_) => {}
            None => return Vec::new(),
        }
    }
    names
}

/// Returns whether a member has this name, without components that lead nowhere.
fn is_named(member: &[u8], name: &str) -> bool {
    let plain = |path: &Path| -> PathBuf {
        path.components()
            .filter(|it| !matches!(it, Component::RootDir | Component::CurDir))
            .collect()
    };
    plain(Path::new(OsStr::from_bytes(member))) == plain(Path::new(name))
}

/// Extracts all members into a folder. `None` if the tar crate does not read the archive or cannot write a file.
fn extract(archive: &[u8]) -> Option<TempDir> {
    let folder = tempfile::tempdir_in(FOLDER.path()).unwrap();
    let mut archive = tar::Archive::new(archive);
    archive.set_preserve_permissions(false);
    archive.set_preserve_mtime(false);
    for entry in archive.entries().ok()? {
        let mut entry = entry.ok()?;
        // Records about all members are no member, whatever their name is.
        let is_member = !entry.header().entry_type().is_pax_global_extensions();
        // False if the name leads out of the folder.
        let is_inside = entry.unpack_in(folder.path()).ok()?;
        assert!(is_inside || !is_member, "a member outside of the folder");
    }
    Some(folder)
}

/// Returns the content of the only regular file with this name. `None` if the tar crate does not read the archive.
fn member(archive: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let mut found = None;
    for entry in tar::Archive::new(archive).entries().ok()? {
        let mut entry = entry.ok()?;
        let kind = entry.header().entry_type();
        if (kind.is_file() || kind.is_contiguous()) && *entry.path_bytes() == *name {
            let mut content = Vec::new();
            entry.read_to_end(&mut content).ok()?;
            assert!(found.replace(content).is_none(), "a name twice");
        }
    }
    assert!(found.is_some(), "tar finds no member \"{}\"", name.escape_ascii());
    found
}

/// Adds a member with changes in its header, whose checksum is right.
fn add(
    archive: &mut Vec<u8>,
    name: &str,
    kind: u8,
    size: usize,
    content: &[u8],
    changes: &[(u8, u8)],
) {
    let mut header = [0; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[100..107].copy_from_slice(b"0000644");
    header[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
    header[156] = kind;
    header[257..265].copy_from_slice(b"ustar\x0000");
    for (place, value) in changes {
        // The name, the size, the kind, the magic and the prefix.
        let at = [0, 124, 156, 257, 345][usize::from(place % 5)] + usize::from(place / 5) % 13;
        header[at] = *value;
    }
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

const NAMES: [&str; 12] = [
    "a.raw", "b.vmdk", "c", "x/a.raw", "a%2eraw", "d.ovf", "./c", "c/a.raw", "x/../c", "/c", "x/",
    "x",
];
const KINDS: [u8; 12] = [b'0', b'0', b'0', 0, b'7', b'1', b'2', b'5', b'L', b'x', b'g', b'K'];
