//! QEMU's locks, held by real QEMU tools.

mod common;

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use blkimage::{ErrorKind, OpenOptions, Source};
use common::{make_raw, open, sh};

/// A process that is ended with the test.
struct Holder(Child);

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A qemu-io that holds `image` open: it has done so when it asks for a command.
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

/// Whether a process has a file of the folder open.
fn has_open(process: u32, folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    let mut targets = entries.flatten().flat_map(|entry| std::fs::read_link(entry.path()));
    targets.any(|target| target.starts_with(folder))
}

fn kind(path: &Path) -> Option<ErrorKind> {
    OpenOptions::default().open(path).err().map(|error| error.kind())
}

#[test]
fn a_writer_refuses_the_image() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    sh(path, "qemu-img create -q -f qcow2 a.qcow2 1m");
    assert_eq!(kind(&path.join("a.qcow2")), None);
    let holder = hold(path, &["a.qcow2"]);
    let error = OpenOptions::default().open(&path.join("a.qcow2")).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InUse);
    assert!(error.to_string().ends_with("use -U/--force-share to read it all the same"));
    let options = OpenOptions { force_share: true, ..OpenOptions::default() };
    assert!(options.open(&path.join("a.qcow2")).is_ok());
    drop(holder);
    assert_eq!(kind(&path.join("a.qcow2")), None);
}

#[test]
fn a_reader_does_not() {
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
fn a_writer_of_the_overlay_is_no_writer_of_the_backing_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    make_raw(path, "base.raw", "1m:A");
    sh(path, "qemu-img create -q -f qcow2 -F raw -b base.raw top.qcow2");
    let _holder = hold(path, &["top.qcow2"]);
    assert_eq!(kind(&path.join("base.raw")), None);
    assert_eq!(kind(&path.join("top.qcow2")), Some(ErrorKind::InUse));
}

#[test]
fn every_file_of_the_chain_is_tested() {
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
fn a_writer_that_comes_later_is_seen_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    make_raw(path, "a.raw", "1m:A");
    let image = open(path, "a.raw");
    let _holder = hold(path, &["-f", "raw", "a.raw"]);
    assert_eq!(image.check_unchanged().unwrap_err().kind(), ErrorKind::Changed);
}

#[test]
fn an_export_holds_its_image_as_it_was_told_to() {
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
