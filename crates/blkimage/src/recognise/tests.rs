use std::sync::Arc;

use super::*;
use crate::storage::Memory;

/// Returns the message about content in a file with this name. Empty if it is a raw disk.
fn reason(name: &str, content: &[u8]) -> String {
    let storage = Box::new(Memory(content.to_vec()));
    let file = HostFile::new(name.into(), storage, Arc::default());
    let head = file.read_head(HEAD_SIZE).unwrap();
    check_file(&file, &head).map_or_else(|error| error.reason().to_owned(), |()| String::new())
}

fn padded(head: &[u8]) -> Vec<u8> {
    let mut content = head.to_vec();
    content.resize(4096, 0);
    content
}

#[test]
fn names_promise() {
    for (name, noun) in [
        ("disk.qcow2", "a qcow2 image"),
        ("DISK.QCOW2", "a qcow2 image"),
        ("disk-1.vmdk", "a vmdk image"),
        ("disk-flat.vmdk.vhd", "a vhd image"),
        ("disk.img.xz", "an xz file"),
        ("disk.tar.gz", "a gzip file"),
        ("disk.tgz", "a tar archive"),
        ("disk.E01", "an EWF image"),
        ("disk.img.gpg", "an OpenPGP file"),
        ("sda1.ext4-ptcl-img.zst.aa", "a part of a split image"),
        ("sda1.ext4-ptcl-img.ab", "a part of a split image"),
        ("disk.gz.xz", "an xz file"),
    ] {
        assert_eq!(FileKind::of_name(Path::new(name)).unwrap().to_string(), noun, "{name}");
    }
    for name in [
        "disk",
        "disk.img",
        "disk.img.aa",
        "qcow2",
        ".xz",
        "disk.qcow2.bak",
        "d-flat.vmdk",
        "d-f001.vmdk",
    ] {
        assert_eq!(FileKind::of_name(Path::new(name)), None, "{name}");
    }
}

#[test]
fn a_promise_must_be_kept() {
    let disk = padded(b"\xeb\x63\x90");
    for name in ["disk", "disk.img", "disk.raw", "disk.bin", "disk.dd", "disk.iso", "d-flat.vmdk"] {
        assert_eq!(reason(name, &disk), "", "{name}");
        assert_eq!(reason(name, b""), "", "{name}");
    }
    let none = ", and nothing in it says that it is one";
    assert_eq!(reason("disk.qcow2", &disk), format!("has the name of a qcow2 image{none}"));
    assert_eq!(reason("disk.img.xz", &disk), format!("has the name of an xz file{none}"));
    assert_eq!(reason("disk.vhd", &disk), format!("has the name of a vhd image{none}"));
    assert_eq!(reason("disk.gpg", &disk), "has the name of an OpenPGP file");
    assert_eq!(reason("disk.qcow2", b""), "is empty, and has the name of a qcow2 image");
    assert_eq!(reason("disk.gz.ab", &disk), "has the name of a part of a split image");
    assert_eq!(
        reason("disk.gz.aa", b"\x1f\x8b\x08\0\0\0\0\0\0\x03..."),
        "is a part of a split image"
    );
    let page = b"\n<!DOCTYPE html>\n<html>";
    assert_eq!(reason("disk.img", page), "is an HTML page");
    assert_eq!(reason("disk.qcow2", page), "is an HTML page, and has the name of a qcow2 image");
    assert_eq!(reason("disk.zip", b"PK\x03\x04..."), "is a zip archive");
}

#[test]
fn what_a_name_also_stands_for() {
    let mut disk = vec![0; 4096];
    assert_ne!(reason("disk.dmg", &disk), "");
    disk[510..512].copy_from_slice(b"\x55\xaa");
    assert_eq!(reason("disk.dmg", &disk), "");
    // The header may be in another file.
    assert_eq!(reason("disk.luks", &disk), "");
}

#[test]
fn names_within_a_compressed_file() {
    let (gzip, disk) = (Some(Compression::Gzip), padded(b"\xeb\x63\x90"));
    let reason = |name: &str, head: &[u8]| {
        let checked = check_raw(head, Path::new(name), gzip);
        checked.map_or_else(|error| error.reason().to_owned(), |()| String::new())
    };
    assert_eq!(reason("disk.img.gz", &disk), "");
    assert!(
        reason("disk.qcow2.gz", &disk).starts_with("has the name of a qcow2 image, and nothing")
    );
    assert!(
        reason("disk.vhd.gz", &disk).ends_with("decompress it, or say what it is, as vpc+gzip")
    );
    assert_eq!(reason("disk.img.gz", b"PK\x03\x04..."), "is a zip archive");
    let error = check_raw(b"PK\x03\x04...", Path::new("disk.img.gz"), gzip).unwrap_err();
    let way = Way::Pipe("unzip -p FILE NAME");
    assert_eq!(error.hint(), Some(Hint::NoDisk { way, compression: gzip }));
}

#[test]
fn archives_in_each_other() {
    assert_eq!(reason("disk.tgz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03..."), "is a tar archive");
    let gzip = reason("disk.img", b"\x1f\x8b\x08\0\0\0\0\0\0\x03...");
    assert_eq!(gzip, "is compressed by gzip");
    assert_eq!(
        reason("disk.xz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03..."),
        "is compressed by gzip, and has the name of an xz file"
    );
}

/// Random data, each beginning once, text and low bytes.
#[test]
fn other_content_is_a_raw_disk() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    for first in 0..=u16::MAX {
        let mut content: Vec<u8> = (0..HEAD_SIZE / 8).flat_map(|_| random()).collect();
        content[..2].copy_from_slice(&first.to_le_bytes());
        assert_eq!(reason("disk.img", &content), "", "{first:#x}");
    }
    for byte in 0..=u8::MAX {
        assert_eq!(reason("disk.img", &[byte; 4096]), "", "{byte:#x}");
        assert_eq!(reason("disk.img", &[byte; 3]), "", "{byte:#x}");
    }
    for text in ["hello\n", "404", "4040\n", "{}x", "[1, 2]", "< x", "<>", "Errors:", "0707070"] {
        assert_eq!(reason("disk.img", &padded(text.as_bytes())), "", "{text}");
    }
}

#[test]
fn texts() {
    for (text, noun) in [
        ("<html><head>", "is an HTML page"),
        ("\u{feff}<HTML>", "is an HTML page"),
        ("<!-- comment -->\n<!doctype html>", "is an HTML page"),
        ("<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code>", "is an XML document"),
        ("<domain type='kvm'>", "is an XML document"),
        ("{\"errors\": [{\"code\": \"UNAUTHORIZED\"}]}", "is a JSON document"),
        ("404: Not Found", "is a message of a server"),
        ("Not Found\n", "is a message of a server"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:", "is a git-lfs pointer"),
    ] {
        assert_eq!(reason("disk.img", text.as_bytes()), noun, "{text}");
    }
}
