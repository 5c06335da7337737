//! QEMU's locks, held by real QEMU tools, and changes between opening and the last check.

#![allow(unsafe_code)]

mod common;

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use blkimage::{ErrorKind, Hint, OpenOptions, Source};
use common::{make_raw, open, sh};

/// A process that is killed at the end of the test.
struct Holder(Child);

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a qemu-io that holds `image` open. The image is open when qemu-io prompts for a command.
fn hold(folder: &Path, arguments: &[&str]) -> Holder {
    let mut child = Command::new("qemu-io")
        .current_dir(folder)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("qemu-io (Debian: qemu-utils)");
    let mut output = child.stdout.take().unwrap();
    let holder = Holder(child);
    let mut prompt = [0; 9];
    output.read_exact(&mut prompt).unwrap();
    assert_eq!(&prompt, b"qemu-io> ");
    holder
}

/// Returns whether a process has a file of the folder open.
fn has_open(process: u32, folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    let mut targets = entries.flatten().flat_map(|entry| std::fs::read_link(entry.path()));
    targets.any(|target| target.starts_with(folder))
}

fn kind(path: &Path) -> Option<ErrorKind> {
    OpenOptions::default().open(path).err().map(|error| error.kind())
}

#[test]
#[cfg_attr(blkhash_portable, should_panic)] // writers
fn an_image_with_a_writer_is_refused() {
    if common::lacks_qemu() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    sh(path, "qemu-img create -q -f qcow2 a.qcow2 1m");
    assert_eq!(kind(&path.join("a.qcow2")), None);
    let holder = hold(path, &["a.qcow2"]);
    let error = OpenOptions::default().open(path.join("a.qcow2")).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InUse);
    assert_eq!(error.hint(), Some(Hint::ForceShare));
    let options = OpenOptions::new().force_share(true);
    assert!(options.open(path.join("a.qcow2")).is_ok());
    drop(holder);
    assert_eq!(kind(&path.join("a.qcow2")), None);
}

#[test]
fn an_image_with_a_reader_is_accepted() {
    if common::lacks_qemu() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    sh(path, "qemu-img create -q -f qcow2 a.qcow2 1m");
    make_raw(path, "a.raw", "1m:A");
    let _holder = hold(path, &["-r", "a.qcow2"]);
    assert_eq!(kind(&path.join("a.qcow2")), None);
    let _other = hold(path, &["-r", "-f", "raw", "a.raw"]);
    assert_eq!(kind(&path.join("a.raw")), None);
}

#[test]
#[cfg_attr(blkhash_portable, should_panic)] // writers
fn a_writer_of_the_overlay_is_not_a_writer_of_the_backing_file() {
    if common::lacks_qemu() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    make_raw(path, "base.raw", "1m:A");
    sh(path, "qemu-img create -q -f qcow2 -F raw -b base.raw top.qcow2");
    let _holder = hold(path, &["top.qcow2"]);
    assert_eq!(kind(&path.join("base.raw")), None);
    assert_eq!(kind(&path.join("top.qcow2")), Some(ErrorKind::InUse));
}

#[test]
#[cfg_attr(blkhash_portable, should_panic)] // writers
fn every_file_of_the_chain_is_checked() {
    if common::lacks_qemu() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    make_raw(path, "base.raw", "1m:A");
    sh(path, "qemu-img create -q -f qcow2 -F raw -b base.raw top.qcow2");
    sh(path, "qemu-img create -q -f qcow2 -o data_file=a.data a.qcow2 1m");
    let _holder = hold(path, &["-f", "raw", "base.raw"]);
    assert_eq!(kind(&path.join("top.qcow2")), Some(ErrorKind::InUse));
    let _other = hold(path, &["-f", "raw", "a.data"]);
    assert_eq!(kind(&path.join("a.qcow2")), Some(ErrorKind::InUse));
}

#[test]
#[cfg_attr(blkhash_portable, should_panic)] // writers
fn a_later_writer_is_detected_at_the_end() {
    if common::lacks_qemu() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    make_raw(path, "a.raw", "1m:A");
    let image = open(path, "a.raw");
    let _holder = hold(path, &["-f", "raw", "a.raw"]);
    assert_eq!(image.check_unchanged().unwrap_err().kind(), ErrorKind::Changed);
}

#[test]
#[cfg_attr(blkhash_portable, should_panic)] // writers
fn only_a_writable_export_is_a_writer() {
    if common::lacks_qemu() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    sh(path, "qemu-img create -q -f qcow2 a.qcow2 1m");
    for (arguments, expected) in [(&["-r"][..], None), (&[], Some(ErrorKind::InUse))] {
        let socket = path.join("socket");
        let child = Command::new("qemu-nbd")
            .current_dir(path)
            .args(arguments)
            .args(["-t", "-f", "qcow2", "-k", socket.to_str().unwrap(), "a.qcow2"])
            .spawn()
            .expect("qemu-nbd (Debian: qemu-utils)");
        let holder = Holder(child);
        let wait = std::time::Instant::now();
        while !(has_open(holder.0.id(), path) && kind(&path.join("a.qcow2")) == expected) {
            assert!(wait.elapsed().as_secs() < 20, "no {expected:?} while qemu-nbd {arguments:?}");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let _ = std::fs::remove_file(socket);
    }
}

/// Writes to a file right before and right after it is opened, for `count` files of a folder at once.
/// Returns how many of the later writes were detected.
fn seen_changes(folder: &Path, count: usize) -> usize {
    let is_seen = |number: usize| {
        let path = folder.join(format!("{number}.raw"));
        let file = File::create(&path).unwrap();
        file.write_all_at(&[1; 8192], 0).unwrap();
        let image = OpenOptions::default().open(&path).unwrap();
        file.write_all_at(b"x", 5000).unwrap();
        image.check_unchanged().is_err_and(|error| error.kind() == ErrorKind::Changed)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|it| scope.spawn(move || is_seen(it))).collect();
        threads.into_iter().map(|it| it.join().unwrap()).filter(|it| *it).count()
    })
}

#[test]
fn a_change_within_a_tick_of_the_clock_is_seen() {
    for folder in [env!("CARGO_TARGET_TMPDIR"), "/dev/shm"] {
        let Ok(folder) = tempfile::tempdir_in(folder) else { continue };
        assert_eq!(seen_changes(folder.path(), 200), 200, "{}", folder.path().display());
    }
}

/// A mounted file system in a file, unmounted at the end of the test.
struct Mounted(tempfile::TempDir);

impl Mounted {
    /// Returns `None` without the privilege to mount, or without this file system. CI must have both.
    fn new(make: &str, kind: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let script = format!(
            "PATH=$PATH:/sbin:/usr/sbin; truncate -s 32M image && {make} image >&2 && mkdir root && \
             mount -o loop -t {kind} image root"
        );
        let mut command = Command::new("sh");
        let output = command.current_dir(folder.path()).args(["-c", &script]).output().unwrap();
        if output.status.success() {
            return Some(Self(folder));
        }
        let reason = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(std::env::var_os("CI").is_none(), "CI must be able to mount {kind}: {reason}");
        println!("skipped: {reason}");
        None
    }

    fn root(&self) -> std::path::PathBuf {
        self.0.path().join("root")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.root()).status();
    }
}

/// Time stamps with a resolution of a second, and of the kernel's tick.
#[test]
fn a_change_within_the_tick_of_a_file_system_is_seen() {
    for (make, kind) in [("mke2fs -q -F -t ext4 -I 128", "ext4"), ("mke2fs -q -F -I 256", "ext2")] {
        let Some(mounted) = Mounted::new(make, kind) else { return };
        assert_eq!(seen_changes(&mounted.root(), 200), 200, "{make}");
    }
}

#[test]
fn a_stamp_ahead_of_the_clock_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.raw");
    let file = File::create(&path).unwrap();
    file.write_all_at(&[1; 8192], 0).unwrap();
    let ahead = std::time::SystemTime::now() + std::time::Duration::from_secs(1 << 20);
    file.set_modified(ahead).unwrap();
    let image = OpenOptions::default().open(&path).unwrap();
    assert!(image.check_unchanged().is_ok());
    file.write_all_at(b"x", 5000).unwrap();
    assert!(image.check_unchanged().is_err());
}

/// A write to a page that was dirty when the image was opened changes no time stamp, unless the page
/// was written back.
#[test]
fn writes_through_a_mapping_are_seen() {
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
    const TMPFS: u32 = 0x0102_1994;
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("a.raw");
    let file = File::options().create_new(true).read(true).write(true).open(&path).unwrap();
    if rustix::fs::fstatfs(&file).unwrap().f_type as u32 == TMPFS {
        println!("skipped: tmpfs never writes its pages back");
        return;
    }
    file.write_all_at(&[1; 8192], 0).unwrap();
    let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: a new mapping of a file that is at least as long.
    let address = unsafe { mmap(std::ptr::null_mut(), 8192, protection, flags, &file, 0) }
        .unwrap()
        .cast::<u8>();
    let write = |offset: usize, byte: u8| {
        assert!(offset < 8192);
        // SAFETY: is within the mapping, to which there are no references.
        unsafe { address.add(offset).write_volatile(byte) }
    };
    for turn in 2..22 {
        write(10, turn);
        let image = OpenOptions::default().open(&path).unwrap();
        assert!(image.check_unchanged().is_ok());
        write(11, turn);
        let error = image.check_unchanged().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Changed);
    }
    // SAFETY: the mapping from above, which is not used any more.
    unsafe { munmap(address.cast(), 8192) }.unwrap();
}
