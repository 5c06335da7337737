use std::os::unix::net::UnixStream;
use std::process::{Child, Command};

use super::*;

/// Returns whether nbdkit is missing here, and reports that. `make test` installs it.
fn lacks_nbdkit() -> bool {
    let is_missing = Command::new("nbdkit").arg("--version").output().is_err();
    if is_missing {
        println!("skipped: nbdkit is missing (Debian: nbdkit)");
    }
    is_missing
}

/// Starts an nbdkit at the other end of a socket. It exits with the connection.
fn nbdkit(arguments: &[&str]) -> (OwnedFd, Child) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut command = Command::new("nbdkit");
    command.args(["--single", "--readonly"]).args(arguments);
    command.stdin(OwnedFd::from(theirs.try_clone().unwrap())).stdout(OwnedFd::from(theirs));
    (ours.into(), command.spawn().expect("nbdkit (Debian: nbdkit)"))
}

/// Returns the content of nbdkit's pattern plugin, in which every eight bytes hold their offset.
fn pattern(offset: u64, length: usize) -> Vec<u8> {
    (offset..).take(length).map(|i| (i / 8 * 8).to_be_bytes()[(i % 8) as usize]).collect()
}

fn open(count: usize, arguments: &[&str]) -> (Nbd, Vec<Child>) {
    let (sockets, children): (_, Vec<Child>) = (0..count).map(|_| nbdkit(arguments)).unzip();
    let export = Nbd::from_sockets(Path::new("child"), sockets, &NbdOptions::default()).unwrap();
    (export, children)
}

fn end((export, children): (Nbd, Vec<Child>)) {
    drop(export);
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn threads_share_connections() {
    if lacks_nbdkit() {
        return;
    }
    let size = 3_000_000;
    for (count, filters) in [(1, &["--filter=noparallel"][..]), (1, &[]), (3, &[])] {
        let opened = open(count, &[filters, &["pattern", "3000000"]].concat());
        let export = &opened.0;
        assert_eq!((export.size(), export.connections.len()), (size, count));
        thread::scope(|scope| {
            for seed in 0..6u64 {
                scope.spawn(move || {
                    let mut state = seed;
                    for _ in 0..30 {
                        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(12345);
                        let offset = (state >> 20) % size;
                        let length = ((state >> 44) % 700_000).min(size - offset) as usize;
                        let mut buf = vec![0xee; length];
                        export.read_exact_at(&mut buf, offset).unwrap();
                        assert!(buf == pattern(offset, length), "{length} at {offset}");
                    }
                });
            }
        });
        end(opened);
    }
}

#[test]
fn reads_of_any_alignment() {
    if lacks_nbdkit() {
        return;
    }
    let policy = ["--filter=blocksize-policy", "pattern", "1000000", "blocksize-minimum=4096"];
    let limits = ["blocksize-preferred=4096", "blocksize-maximum=8192"];
    let opened = open(1, &[&policy[..], &limits].concat());
    for offset in [0, 1, 4095, 4096, 5000, 999_423, 999_424, 999_999] {
        for length in [0, 1, 4095, 4096, 4097, 100_000] {
            let length = length.min(1_000_000 - offset as usize);
            let mut buf = vec![0xee; length];
            opened.0.read_exact_at(&mut buf, offset).unwrap();
            assert!(buf == pattern(offset, length), "{length} at {offset}");
        }
    }
    let past = opened.0.read_exact_at(&mut [0; 2], 999_999).unwrap_err();
    assert_eq!(past.kind(), io::ErrorKind::UnexpectedEof);
    assert_eq!(opened.0.read_at_most(&mut [0; 2], 999_999).unwrap(), 1);
    assert_eq!(opened.0.read_at_most(&mut [0; 2], u64::MAX).unwrap(), 0);
    end(opened);
}

#[test]
fn a_dead_server_is_an_error_for_all_readers() {
    if lacks_nbdkit() {
        return;
    }
    let (export, mut children) = open(1, &["--filter=delay", "pattern", "1M", "delay-read=60"]);
    thread::scope(|scope| {
        let read = || export.read_exact_at(&mut [0; 100_000], 0).unwrap_err().to_string();
        let readers: Vec<_> = (0..4).map(|_| scope.spawn(read)).collect();
        thread::sleep(Duration::from_millis(100));
        children[0].kill().unwrap();
        for reader in readers {
            let reason = reader.join().unwrap();
            assert!(reason.contains("clos") || reason.contains("connection"), "{reason}");
        }
    });
    children[0].wait().unwrap();
    assert!(export.read_exact_at(&mut [0; 1], 0).is_err());
}
