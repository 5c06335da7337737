//! Content lent from the page cache equals the content of the file. If the content is lost while it is
//! lent, the reader finds out and the process survives.

#![allow(unsafe_code)]
#![cfg(not(blkhash_portable))] // cache

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use blkimage::{Cache, ErrorKind, Holes, Image, OpenOptions, Source};
use rustix::mm::{MapFlags, ProtFlags, mmap};
use rustix::process::Signal;
use tempfile::TempDir;

const MIB: usize = 1 << 20;

fn content(length: usize) -> Vec<u8> {
    (0..length as u32)
        .flat_map(|i| i.wrapping_mul(0x9e37_79b9).to_le_bytes())
        .take(length)
        .collect()
}

/// Creates a folder in a tmpfs, where no page leaves the page cache. While it exists, no other test
/// uses windows, because their number in a process is limited.
fn folder() -> (TempDir, MutexGuard<'static, ()>) {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    (tempfile::tempdir_in("/dev/shm").unwrap(), turn)
}

/// Returns whether this kernel reports the pages in the page cache.
fn lends() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
    let is_known = (numbers.next(), numbers.next()) >= (Some(6), Some(5));
    if !is_known {
        assert!(std::env::var_os("CI").is_none(), "CI must be able to lend what is cached");
        println!("skipped: Linux {release} does not tell what is in the page cache");
    }
    is_known
}

fn open(path: &Path) -> Image {
    OpenOptions::default().open(path).unwrap()
}

#[test]
fn lent_bytes_equal_read_bytes() {
    if !lends() {
        return;
    }
    let (folder, _turn) = folder();
    let path = folder.path().join("disk.raw");
    let bytes = content(35 * MIB + 1234);
    std::fs::write(&path, &bytes).unwrap();
    let image = open(&path);
    let lengths = [64 << 10, 100_000, MIB, 16 * MIB];
    let offsets = [0, 1, 4095, 65_536, 16 * MIB - 65_536, 16 * MIB, 32 * MIB, 34 * MIB + 99_999];
    let mut count = 0;
    for (length, offset) in lengths.into_iter().flat_map(|l| offsets.map(|o| (l, o))) {
        let lent = image.lend(offset as u64, length);
        let left = length.min(16 * MIB - offset % (16 * MIB));
        let expected = left >= 64 << 10 && offset + length <= bytes.len();
        assert_eq!(lent.is_some(), expected, "{length} at {offset}");
        if let Some(mut lent) = lent {
            assert!(lent.as_ref() == &bytes[offset..offset + left], "{length} at {offset}");
            lent.truncate(left + 1);
            assert_eq!(lent.as_ref().len(), left);
            lent.truncate(999);
            assert!(lent.as_ref() == &bytes[offset..offset + 999]);
            assert!(lent.is_intact());
            count += 1;
        }
    }
    assert!(count > 15, "{count}");
    let whole = image.lend(32 * MIB as u64, bytes.len() - 32 * MIB).unwrap();
    assert!(whole.as_ref() == &bytes[32 * MIB..]);
    assert!(image.lend(0, (64 << 10) - 1).is_none(), "too little");
    assert!(image.lend(bytes.len() as u64 - 65_535, 65_536).is_none(), "past the end");
    assert!(image.lend(u64::MAX, 65_536).is_none(), "far past the end");
}

#[test]
fn content_that_must_be_read_is_not_lent() {
    let (folder, _turn) = folder();
    let path = folder.path().join("disk.raw");
    std::fs::write(&path, content(2 * MIB)).unwrap();
    let direct = OpenOptions::new().cache(Cache::No);
    let written_to = OpenOptions::new().force_share(true);
    let doubted = OpenOptions::new().holes(Holes::Verify);
    for options in [direct, written_to, doubted] {
        assert!(options.open(&path).unwrap().lend(0, MIB).is_none());
    }
    let path = folder.path().join("small.raw");
    std::fs::write(&path, content(2 * MIB - 1)).unwrap();
    assert!(open(&path).lend(0, MIB).is_none());
}

#[test]
fn lending_does_not_allocate_holes() {
    let (folder, _turn) = folder();
    let path = folder.path().join("disk.raw");
    let file = File::create(&path).unwrap();
    file.set_len(32 * MIB as u64).unwrap();
    file.write_all_at(&content(MIB), 3 * MIB as u64).unwrap();
    let before = file.metadata().unwrap().blocks();
    let image = open(&path);
    assert!(image.lend(0, MIB).is_none());
    assert!(image.lend(MIB as u64 * 7 / 2, MIB).is_none(), "half of it is a hole");
    if lends() {
        let lent = image.lend(3 * MIB as u64, MIB).unwrap();
        assert!(lent.as_ref() == content(MIB));
    }
    assert_eq!(file.metadata().unwrap().blocks(), before);
}

#[test]
fn qcow2_lends_contiguous_content() {
    if !lends() {
        return;
    }
    let (folder, _turn) = folder();
    let (raw, path) = (folder.path().join("disk.raw"), folder.path().join("disk.qcow2"));
    let bytes = content(4 * MIB);
    std::fs::write(&raw, &bytes).unwrap();
    let convert = Command::new("qemu-img")
        .args(["convert", "-f", "raw", "-O", "qcow2"])
        .args([&raw, &path])
        .status();
    if convert.is_err() {
        return eprintln!("skipped: qemu-img is missing");
    }
    assert!(convert.unwrap().success());
    let image = open(&path);
    let lent = image.lend(MIB as u64, 2 * MIB).unwrap();
    assert!(lent.as_ref() == &bytes[MIB..3 * MIB]);
    assert!(image.lend(3 * MIB as u64, MIB + 1).is_none(), "past the end of the guest's disk");
}

#[test]
fn fragmented_qcow2_lends_contiguous_parts() {
    if !lends() {
        return;
    }
    let (folder, _turn) = folder();
    let path = folder.path().join("disk.qcow2");
    let create = Command::new("qemu-img")
        .args(["create", "-q", "-f", "qcow2"])
        .arg(&path)
        .arg("4M")
        .status();
    if create.is_err() {
        return eprintln!("skipped: qemu-img is missing");
    }
    let mut write = Command::new("qemu-io");
    for command in ["write -P 2 192k 3M", "write -P 1 128k 64k", "write -P 3 0 128k"] {
        write.args(["-c", command]);
    }
    assert!(write.arg(&path).output().unwrap().status.success());
    let image = open(&path);
    for (offset, length, fill) in [(0, 128, 3), (64, 64, 3), (128, 64, 1), (192, 832, 2)] {
        let lent = image.lend(offset << 10, (1024 - offset as usize) << 10).unwrap();
        assert!(lent.as_ref() == vec![fill; length << 10], "{offset} KiB");
    }
}

#[test]
fn a_file_truncated_while_it_is_lent() {
    if !lends() {
        return;
    }
    let (folder, _turn) = folder();
    let path = folder.path().join("disk.raw");
    let bytes = content(20 * MIB);
    std::fs::write(&path, &bytes).unwrap();
    let image = open(&path);
    let (first, second) = (image.lend(0, MIB).unwrap(), image.lend(17 * MIB as u64, MIB).unwrap());
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(17 * MIB as u64 + 4096).unwrap();
    // The rest of the window no longer exists.
    assert!(second.as_ref().iter().skip(4096).all(|byte| *byte == 0));
    assert!(!second.is_intact());
    assert!(first.as_ref() == &bytes[..MIB] && first.is_intact(), "another window");
    let error = image.read_exact_at(&mut vec![0; MIB], 17 * MIB as u64).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Truncated);
    assert!(image.lend(18 * MIB as u64, MIB).is_none(), "nothing is there any more");
    drop((first, second));

    // Threads with faults at the same time.
    std::fs::write(&path, &bytes).unwrap();
    let image = open(&path);
    let lent: Vec<_> = (0..16).map(|i| image.lend(i * MIB as u64, MIB).unwrap()).collect();
    file.set_len(0).unwrap();
    std::thread::scope(|scope| {
        for lent in &lent {
            scope.spawn(|| {
                assert!(lent.as_ref().iter().all(|byte| *byte == 0) && !lent.is_intact());
            });
        }
    });
}

#[test]
fn number_of_windows_in_a_process_is_limited() {
    if !lends() {
        return;
    }
    let (folder, _turn) = folder();
    let images: Vec<_> = (0..300)
        .map(|number| {
            let path = folder.path().join(number.to_string());
            std::fs::write(&path, content(2 * MIB)).unwrap();
            open(&path)
        })
        .collect();
    let count = |lent: &[_]| lent.iter().filter(|it: &&Option<_>| it.is_some()).count();
    let lent: Vec<_> = images.iter().map(|image| image.lend(0, 64 << 10)).collect();
    assert_eq!(count(&lent), 256);
    let expected = content(64 << 10);
    assert!(lent.iter().flatten().all(|lent| lent.as_ref() == expected));
    drop((lent, images));
    let path = folder.path().join("0");
    assert!(open(&path).lend(0, 64 << 10).is_some(), "they are free again");
}

/// Opens an image of `windows` windows, each with 64 KiB of content at its start. Returns
/// it with these offsets.
fn scattered(folder: &Path, windows: u64) -> (Image, impl Iterator<Item = u64> + Clone) {
    let path = folder.join("disk.raw");
    let file = File::create(&path).unwrap();
    file.set_len(windows * 16 * MIB as u64).unwrap();
    let starts = (0..windows).map(|window| window * 16 * MIB as u64);
    for start in starts.clone() {
        file.write_all_at(&content(64 << 10), start).unwrap();
    }
    (open(&path), starts)
}

#[test]
fn number_of_windows_of_a_file_is_limited() {
    if !lends() {
        return;
    }
    let (folder, _turn) = folder();
    let (image, starts) = scattered(folder.path(), 40);
    let lent: Vec<_> = starts.filter_map(|start| image.lend(start, 64 << 10)).collect();
    assert_eq!(lent.len(), 32);
    drop(lent);
    assert!(image.lend(0, 64 << 10).is_some(), "there is room again");
}

#[test]
fn scattered_content_is_read_instead() {
    if !lends() {
        return;
    }
    let (folder, _turn) = folder();
    let (image, starts) = scattered(folder.path(), 64);
    let lent = starts.filter(|start| image.lend(*start, 64 << 10).is_some());
    assert!((1..=20).contains(&lent.count()));
}

/// An unrelated SIGBUS ends the process, as it would without the handler.
#[test]
fn foreign_faults_are_passed_on() {
    const ROLE: &str = "BLKIMAGE_TEST_FOREIGN_FAULT";
    if let Some(path) = std::env::var_os(ROLE) {
        let image = open(Path::new(&path));
        let lent = image.lend(0, MIB);
        assert_eq!(lent.is_some(), lends());
        let file = tempfile::tempfile().unwrap();
        // SAFETY: a new mapping of an empty file.
        let nothing = unsafe {
            mmap(std::ptr::null_mut(), 4096, ProtFlags::READ, MapFlags::SHARED, &file, 0).unwrap()
        };
        // SAFETY: this faults, which is the purpose of the test.
        let byte = unsafe { nothing.cast::<u8>().read_volatile() };
        unreachable!("read {byte} where there is nothing");
    }
    let (folder, _turn) = folder();
    let path = folder.path().join("disk.raw");
    std::fs::write(&path, content(2 * MIB)).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "foreign_faults_are_passed_on", "--nocapture"])
        .env(ROLE, &path)
        .output()
        .unwrap();
    assert_eq!(output.status.signal(), Some(Signal::BUS.as_raw()), "{output:?}");
}

/// A SIGBUS that is sent has the same effect as without the handler, and a later fault is still handled.
#[test]
fn a_signal_that_is_sent_leaves_the_handler_in_place() {
    const ROLE: &str = "BLKIMAGE_TEST_SENT_SIGNAL";
    const NAME: &str = "a_signal_that_is_sent_leaves_the_handler_in_place";
    if let Some(path) = std::env::var_os(ROLE) {
        let image = open(Path::new(&path));
        let lent = image.lend(0, MIB).unwrap();
        for _ in 0..3 {
            // SAFETY: a call on a number. This thread gets the signal before the call returns.
            assert_eq!(unsafe { nix::libc::raise(nix::libc::SIGBUS) }, 0);
        }
        File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
        assert!(lent.as_ref().iter().all(|byte| *byte == 0));
        assert!(!lent.is_intact());
        return;
    }
    if !lends() {
        return;
    }
    let (folder, _turn) = folder();
    let path = folder.path().join("disk.raw");
    // With the handler of the runtime, and with the signal ignored since before the program started.
    for script in ["exec \"$@\"", "trap '' BUS; exec \"$@\""] {
        std::fs::write(&path, content(2 * MIB)).unwrap();
        let output = Command::new("sh")
            .args(["-c", script, "sh"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", NAME, "--nocapture"])
            .env(ROLE, &path)
            .output()
            .unwrap();
        assert!(output.status.success(), "{script}: {output:?}");
    }
}
