//! Raw images on storage that fails, shrinks or reports false holes, and on real files.

use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::*;
use crate::storage::{Memory, Storage};
use crate::{Cache, Error, ErrorKind, Extent, ExtentKind, Holes, Image, OpenOptions, Source};

/// Storage in memory with faults.
#[derive(Default)]
struct Faulty {
    bytes: Memory,
    /// Maximum number of bytes that a read returns.
    short: Option<usize>,
    /// Offset of a byte at which reads fail.
    broken: Option<u64>,
    /// End of the file now, if it has shrunk since it was opened.
    shrunk: Option<u64>,
    /// Whether every other read is interrupted.
    interrupts: bool,
    /// Range that is reported as a hole, whatever it holds.
    hole: std::ops::Range<u64>,
    reads: AtomicU64,
}

impl Storage for Faulty {
    fn size(&self) -> u64 {
        self.bytes.size()
    }

    fn read_at_most(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        if self.reads.fetch_add(1, Relaxed).is_multiple_of(2) && self.interrupts {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let mut length = buf.len().min(self.short.unwrap_or(usize::MAX));
        if let Some(end) = self.shrunk {
            length = length.min(end.saturating_sub(offset) as usize);
        }
        if self.broken.is_some_and(|byte| (offset..offset + length as u64).contains(&byte)) {
            return Err(io::Error::from_raw_os_error(5));
        }
        self.bytes.read_at_most(&mut buf[..length], offset)
    }

    fn extent(&self, offset: u64, limit: u64) -> io::Result<Extent> {
        let in_hole = self.hole.contains(&offset);
        let boundaries = [self.hole.start, self.hole.end, offset + limit];
        let end = boundaries.into_iter().filter(|end| *end > offset).min().unwrap();
        let kind = if in_hole { ExtentKind::Zero } else { ExtentKind::Data };
        Ok(Extent { offset, length: end - offset, kind })
    }
}

fn content() -> Vec<u8> {
    (0..100_000u32).map(|i| (i % 251) as u8).collect()
}

fn faulty() -> Faulty {
    Faulty { bytes: Memory(content()), ..Faulty::default() }
}

fn open(storage: Faulty, holes: Holes) -> Image {
    let options = OpenOptions { holes, format: Some(crate::Format::Raw), ..OpenOptions::default() };
    options.open_storage(Box::new(storage), "disk.raw").unwrap()
}

fn read_all(image: &Image) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0xee; image.size() as usize];
    image.read_exact_at(&mut bytes, 0).map(|()| bytes)
}

#[test]
fn short_and_interrupted_reads_are_continued() {
    for short in [1000, 4096, 99_999] {
        let storage = Faulty { short: Some(short), interrupts: true, ..faulty() };
        assert!(read_all(&open(storage, Holes::Trust)).unwrap() == content());
    }
}

#[test]
fn a_read_error_is_an_error() {
    let image = open(Faulty { broken: Some(50_000), ..faulty() }, Holes::Trust);
    let error = read_all(&image).unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Io, Some(0)));
    assert_eq!(error.io_error().unwrap().raw_os_error(), Some(5));
    assert!(image.read_exact_at(&mut [0; 100], 50_001).is_ok());
}

#[test]
fn a_file_that_shrinks_is_an_error() {
    let image = open(Faulty { shrunk: Some(99_999), ..faulty() }, Holes::Trust);
    let error = read_all(&image).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Truncated);
    assert_eq!(error.to_string(), "disk.raw: file was truncated while it was read (offset 0)");
}

#[test]
fn false_holes() {
    let make = || Faulty { hole: 10_000..20_000, ..faulty() };
    let trusting = open(make(), Holes::Trust);
    let hole = trusting.extent(10_000, u64::MAX).unwrap();
    assert_eq!((hole.length, hole.kind), (10_000, ExtentKind::Zero));

    let verifying = open(make(), Holes::Verify);
    assert_eq!(verifying.extent(0, u64::MAX).unwrap().length, 100_000);
    let error = read_all(&verifying).unwrap_err();
    // 10_000 is 211 modulo 251.
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Holes, Some(10_000)));
    assert!(verifying.read_exact_at(&mut [0; 10_000], 0).is_ok());
    assert!(verifying.read_exact_at(&mut [0; 10_000], 20_000).is_ok());

    assert!(read_all(&open(make(), Holes::Ignore)).unwrap() == content());
}

#[test]
fn content_may_begin_in_the_middle() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk.raw");
    std::fs::write(&path, content()).unwrap();
    for start in [0, 1, 512, 99_999, 100_000, 200_000] {
        let file = std::fs::File::open(&path).unwrap();
        let image = OpenOptions::default().open_file(file, &path, start).unwrap();
        let rest = content().split_off((start as usize).min(100_000));
        assert!(read_all(&image).unwrap() == rest);
    }
}

#[test]
fn direct_reads_return_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk.raw");
    std::fs::write(&path, content()).unwrap();
    let options = OpenOptions { cache: Cache::No, ..OpenOptions::default() };
    let image = options.open(&path).unwrap();
    assert!(read_all(&image).unwrap() == content());
    for (offset, length) in [(0, 1), (4095, 2), (4096, 8192), (1, 99_999), (98_304, 1696)] {
        let mut piece = vec![0; length];
        image.read_exact_at(&mut piece, offset).unwrap();
        assert!(piece == content()[offset as usize..][..length], "{length} at {offset}");
    }
    std::fs::File::options().write(true).open(&path).unwrap().set_len(99_000).unwrap();
    assert_eq!(read_all(&image).unwrap_err().kind(), ErrorKind::Truncated);
}

#[test]
fn holes_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk.raw");
    let file = std::fs::File::create(&path).unwrap();
    file.set_len(10 << 20).unwrap();
    file.write_all_at(&[1; 4096], 1 << 20).unwrap();
    file.write_all_at(&[1; 4096], 5 << 20).unwrap();
    let image = OpenOptions::default().open(&path).unwrap();
    let mut kinds = Vec::new();
    let mut offset = 0;
    while offset < image.size() {
        let extent = image.extent(offset, 3 << 20).unwrap();
        kinds.push((extent.offset, extent.kind));
        offset = extent.end();
    }
    assert!(kinds.contains(&(1 << 20, ExtentKind::Data)), "{kinds:?}");
    assert!(kinds.contains(&(5 << 20, ExtentKind::Data)), "{kinds:?}");
    assert!(kinds.contains(&(0, ExtentKind::Zero)), "{kinds:?}");
    // The head and the end of the file, by which other files are recognised.
    assert_eq!(image.bytes_read(), 2048 + 512);
}

#[test]
fn a_shared_descriptor_is_not_modified() {
    use crate::storage::local::access::Access;
    use crate::storage::local::file::LocalFile;
    use std::io::Seek;
    let mut file = tempfile::tempfile().unwrap();
    file.set_len(1 << 20).unwrap();
    let access = Access { cache: Cache::No, force_share: false, shared: true };
    let disk = LocalFile::new(file.try_clone().unwrap(), "x".as_ref(), access).unwrap();
    let extent = disk.extent(0, 1 << 20).unwrap();
    assert_eq!((extent.length, extent.kind), (1 << 20, ExtentKind::Data));
    assert!(disk.read_exact_at(&mut [0; 100], 5).is_ok() && disk.changed().is_none());
    assert_eq!((file.stream_position().unwrap(), disk.granularity()), (0, 1));
}

#[test]
fn a_lost_tail_is_not_a_hole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk.raw");
    std::fs::write(&path, content()).unwrap();
    let options = OpenOptions { force_share: true, ..OpenOptions::default() };
    let image = options.open(&path).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(50_000).unwrap();
    assert_eq!(image.extent(60_000, 100).unwrap_err().kind(), ErrorKind::Truncated);
    let error = image.read_exact_at(&mut [0; 100], 60_000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Truncated);
    assert!(image.check_unchanged().is_ok());
}

#[test]
fn changes_are_detected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk.raw");
    std::fs::write(&path, content()).unwrap();
    let image = OpenOptions::default().open(&path).unwrap();
    assert!(image.check_unchanged().is_ok());
    // File systems take time stamps with the resolution of their clock.
    std::thread::sleep(std::time::Duration::from_millis(20));
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(b"x", 0).unwrap();
    let error = image.check_unchanged().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Changed);
    assert!(error.to_string().ends_with("disk.raw: changed while it was read"), "{error}");
}
