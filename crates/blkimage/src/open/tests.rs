//! Paths, descriptors, formats and chains.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};

use super::*;
use crate::chain::MAX_CHAIN;
use crate::formats::qcow2::builder::Builder;
use crate::{ExtentKind, Memory, Source};

/// Creates a qcow2 image of one cluster with a backing file.
fn overlay(backing: &str, format: &str, size: u64) -> Vec<u8> {
    let mut builder = Builder::new(16, size);
    let end = builder.extension(104, 0xe279_2aca, format.as_bytes());
    builder.put64(8, end + 8);
    builder.put32(16, backing.len() as u32);
    builder.put(end + 8, backing.as_bytes());
    builder.bytes
}

fn open(path: &Path) -> Result<Image> {
    OpenOptions::default().open(path)
}

fn first_byte(image: &Image) -> u8 {
    let mut byte = [0xee];
    image.read_exact_at(&mut byte, 0).unwrap();
    byte[0]
}

#[test]
fn paths_that_are_not_images() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let kind = |path: &Path| open(path).err().unwrap().kind();
    assert_eq!(kind(&path.join("missing")), ErrorKind::Open);
    assert_eq!(kind(path), ErrorKind::Directory);
    assert_eq!(kind(Path::new("/dev/null")), ErrorKind::FileType);
    let (mode, kind_of) = (rustix::fs::Mode::RUSR, rustix::fs::FileType::Fifo);
    rustix::fs::mknodat(rustix::fs::CWD, path.join("fifo"), kind_of, mode, 0).unwrap();
    assert_eq!(kind(&path.join("fifo")), ErrorKind::Pipe);
    let error = open(&path.join("missing")).err().unwrap();
    assert_eq!(error.io_error().unwrap().kind(), std::io::ErrorKind::NotFound);
    let folder = File::open(path).unwrap();
    let error = OpenOptions::default().open_file(folder, path, 0).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Directory);
}

#[test]
fn an_empty_file_is_an_empty_raw_image() {
    let image = OpenOptions::default().open_storage(Box::new(Memory(vec![])), "x").unwrap();
    assert_eq!((image.format(), image.size()), (Format::Raw, 0));
    assert!(image.read_exact_at(&mut [], 0).is_ok());
}

#[test]
fn raw_is_forced() {
    let bytes = Builder::new(16, 1 << 20).bytes;
    let options = OpenOptions { format: Some(Format::Raw), ..OpenOptions::default() };
    let image = options.open_storage(Box::new(Memory(bytes.clone())), "x").unwrap();
    assert_eq!((image.format(), image.size()), (Format::Raw, bytes.len() as u64));
}

#[cfg(feature = "qemu-nbd")]
#[test]
#[cfg_attr(blkhash_portable, should_panic)] // servers
fn other_formats_need_a_file() {
    let mut luks = vec![0; 512];
    luks[..8].copy_from_slice(b"LUKS\xba\xbe\0\x01");
    let cases: [(&[u8], _, _); 4] = [
        (&luks, None, "is not a file of its own"),
        (b"KDMV", None, "past the end of the file"),
        (b"", Some(Format::Vmdk), "is not a vmdk image"),
        (&[0; 512], Some(Format::Qed), "is not a qed image"),
    ];
    for (bytes, format, reason) in cases {
        let options = OpenOptions { format, ..OpenOptions::default() };
        let error = options.open_storage(Box::new(Memory(bytes.into())), "x").err().unwrap();
        assert!(error.to_string().starts_with("x: ") && error.reason().contains(reason), "{error}");
    }
}

#[test]
fn a_chain_is_followed_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::create_dir(path.join("sub")).unwrap();
    fs::write(path.join("top"), overlay("sub/mid", "qcow2", 4096)).unwrap();
    fs::write(path.join("sub/mid"), overlay("base", "raw", 1024)).unwrap();
    fs::write(path.join("sub/base"), [7; 700]).unwrap();
    let image = open(&path.join("top")).unwrap();
    let names: Vec<_> = image.files().map(Path::to_path_buf).collect();
    assert_eq!(names, ["top", "sub/mid", "sub/base"].map(|name| path.join(name)));
    let mut content = vec![1; 4096];
    image.read_exact_at(&mut content, 0).unwrap();
    assert!(content[..700] == [7; 700] && content[700..] == [0; 4096 - 700]);
    let tail = image.extent(700, u64::MAX).unwrap();
    assert_eq!((tail.length, tail.kind), (4096 - 700, ExtentKind::Zero));
}

#[test]
fn content_past_the_end_of_a_short_layer_is_zero() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("top"), overlay("mid", "qcow2", 4096)).unwrap();
    fs::write(path.join("mid"), overlay("base", "raw", 512)).unwrap();
    fs::write(path.join("base"), [7; 4096]).unwrap();
    let mut content = vec![1; 4096];
    open(&path.join("top")).unwrap().read_exact_at(&mut content, 0).unwrap();
    assert!(content[..512] == [7; 512] && content[512..] == [0; 4096 - 512]);
}

#[test]
#[cfg_attr(blkhash_portable, should_panic)] // links
fn cycles_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("self"), overlay("self", "qcow2", 4096)).unwrap();
    fs::write(path.join("a"), overlay("b", "qcow2", 4096)).unwrap();
    fs::write(path.join("b"), overlay("link", "qcow2", 4096)).unwrap();
    std::os::unix::fs::symlink("a", path.join("link")).unwrap();
    fs::hard_link(path.join("a"), path.join("hard")).unwrap();
    for name in ["self", "a", "b", "hard"] {
        let error = open(&path.join(name)).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Reference);
        assert!(error.reason().contains("its own backing chain"), "{error}");
    }
}

#[test]
fn chains_have_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for i in 0..=MAX_CHAIN {
        let backing = format!("{}", i + 1);
        let mut bytes = overlay(&backing, "qcow2", 4096);
        if i == MAX_CHAIN {
            bytes = vec![9; 4096];
            bytes[..4].copy_from_slice(b"data");
        }
        fs::write(path.join(i.to_string()), bytes).unwrap();
    }
    let last = MAX_CHAIN - 1;
    fs::write(path.join(last.to_string()), overlay(&MAX_CHAIN.to_string(), "raw", 4096)).unwrap();
    let error = open(&path.join("0")).err().unwrap();
    assert!(error.reason().contains("longer than 200 files"), "{error}");
    assert_eq!(first_byte(&open(&path.join("1")).unwrap()), b'd');
}

#[test]
#[cfg_attr(blkhash_portable, should_panic)] // servers
fn a_recorded_format_is_not_probed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("base"), overlay("none", "raw", 512)).unwrap();
    fs::write(path.join("raw"), overlay("base", "raw", 512)).unwrap();
    assert_eq!(first_byte(&open(&path.join("raw")).unwrap()), b'Q');
    fs::write(path.join("base"), [0; 512]).unwrap();
    fs::write(path.join("qcow2"), overlay("base", "qcow2", 512)).unwrap();
    assert_eq!(open(&path.join("qcow2")).err().unwrap().kind(), ErrorKind::Format);
    fs::write(path.join("vmdk"), overlay("base", "vmdk", 512)).unwrap();
    assert_eq!(open(&path.join("vmdk")).err().unwrap().kind(), ErrorKind::Format);
    fs::write(path.join("bochs"), overlay("base", "bochs", 512)).unwrap();
    let kind = if cfg!(feature = "qemu-nbd") { ErrorKind::Format } else { ErrorKind::Unsupported };
    assert_eq!(open(&path.join("bochs")).err().unwrap().kind(), kind);
}

#[test]
#[cfg_attr(blkhash_portable, should_panic)] // stdin
fn a_descriptor_resolves_references_and_keeps_its_offset() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("top"), overlay("base", "raw", 512)).unwrap();
    fs::write(path.join("base"), [7; 512]).unwrap();
    let mut file = File::open(path.join("top")).unwrap();
    file.seek(SeekFrom::Start(3)).unwrap();
    let twin = file.try_clone().unwrap();
    let options = OpenOptions::default();
    let image = options.open_file(twin, Path::new("-"), 0).unwrap();
    assert_eq!(first_byte(&image), 7);
    image.extent(0, u64::MAX).unwrap();
    let mut rest = Vec::new();
    file.read_to_end(&mut rest).unwrap();
    assert_eq!(rest[0], 0xfb, "the offset of the descriptor was moved");

    let error = options.open_file(file, Path::new("-"), 3).err();
    assert!(error.is_none(), "raw from the current offset on");
    fs::write(path.join("inner"), [&[0; 512][..], &overlay("base", "raw", 512)].concat()).unwrap();
    let inner = File::open(path.join("inner")).unwrap();
    let error = options.open_file(inner, Path::new("-"), 512).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Format);
}

#[test]
fn a_descriptor_without_a_path_has_no_references() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("top"), overlay("base", "raw", 512)).unwrap();
    fs::write(path.join("base"), [7; 512]).unwrap();
    let file = File::open(path.join("top")).unwrap();
    fs::remove_file(path.join("top")).unwrap();
    let error = OpenOptions::default().open_file(file, Path::new("-"), 0).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Reference);
}

#[test]
fn a_change_to_any_file_of_a_chain_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("top"), overlay("base", "raw", 512)).unwrap();
    fs::write(path.join("base"), [7; 512]).unwrap();
    let image = open(&path.join("top")).unwrap();
    assert!(image.check_unchanged().is_ok());
    fs::write(path.join("base"), [7; 513]).unwrap();
    let error = image.check_unchanged().unwrap_err();
    assert_eq!((error.kind(), error.name()), (ErrorKind::Changed, &*path.join("base")));
}

#[cfg(not(feature = "nbd"))]
#[test]
fn uris_are_unsupported_without_the_nbd_feature() {
    let location = crate::Location::new("nbd://localhost/".as_ref());
    let error = OpenOptions::default().open_location(location).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[test]
fn images_are_shared_between_threads() {
    fn is_shared<T: Send + Sync + 'static>() {}
    is_shared::<Image>();
}
