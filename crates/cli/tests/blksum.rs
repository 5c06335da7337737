//! Tests of the command `blksum` as a whole.

#![allow(missing_docs, reason = "a test program")]

mod common;

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::process::Stdio;

use common::{Ran, Sandbox, failed, printed};

const USAGE: &str = "Try 'blksum --help' for more information.\n";

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("disk.img", [b'x'; 1024]);
    sandbox
}

fn usage(reason: &str) -> Ran {
    failed(2, format!("blksum: {reason}\n{USAGE}"))
}

/// Returns a qcow2 image of version 2, whose only cluster of 64 KiB is not allocated.
fn empty_qcow2() -> Vec<u8> {
    let mut image = vec![0; 4 * 65536];
    let mut put = |offset: usize, bytes: &[u8]| {
        image[offset..offset + bytes.len()].copy_from_slice(bytes);
    };
    put(0, b"QFI\xfb");
    put(4, &2u32.to_be_bytes());
    put(20, &16u32.to_be_bytes());
    put(24, &65536u64.to_be_bytes());
    put(36, &1u32.to_be_bytes());
    put(40, &(3 * 65536u64).to_be_bytes());
    put(48, &65536u64.to_be_bytes());
    put(56, &1u32.to_be_bytes());
    image
}

#[test]
fn one_failure_does_not_stop_the_others() {
    let ran = sandbox().blksum(&["gone", ".", "disk.img"]);
    assert_eq!(ran.status, Some(1));
    assert_eq!(ran.stdout.lines().count(), 1);
    let expected = "blksum: gone: No such file or directory\n\
                    blksum: .: Is a directory: use -r to hash the files in it\n";
    assert_eq!(ran.stderr, expected);
}

#[test]
fn standard_input_from_a_file_is_read_as_an_image() {
    let sandbox = sandbox();
    let path = sandbox.write("empty.qcow2", empty_qcow2());
    let by_name = sandbox.blksum(&["empty.qcow2"]).stdout;
    let output = sandbox.blksum_command().stdin(File::open(path).unwrap()).output().unwrap();
    let by_descriptor = String::from_utf8(output.stdout).unwrap();
    assert_eq!(by_descriptor, by_name.replace("empty.qcow2", "-"));

    sandbox.write("tail", [b'x'; 512]);
    let mut file = File::open(sandbox.path().join("disk.img")).unwrap();
    file.seek(SeekFrom::Start(512)).unwrap();
    let output = sandbox.blksum_command().stdin(file).output().unwrap();
    let tail = sandbox.blksum(&["tail"]).stdout.replace("tail", "-");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), tail);
}

#[test]
fn a_pipe_is_read_as_raw_and_refused_if_it_looks_like_another_format() {
    let sandbox = sandbox();
    let by_name = sandbox.blksum(&["disk.img"]).stdout;
    let piped = sandbox.blksum_with_input::<&str>(&[], &[b'x'; 1024]);
    assert_eq!(piped, printed(by_name.replace("disk.img", "-")));

    let reason = "standard input is a pipe and looks like qcow2: give the name of the file, or -f \
                  raw for its bytes";
    let refused = sandbox.blksum_with_input::<&str>(&[], &empty_qcow2());
    assert_eq!(refused, failed(1, format!("blksum: -: {reason}\n")));

    sandbox.write("empty.qcow2", empty_qcow2());
    let by_name = sandbox.blksum(&["-f", "raw", "empty.qcow2"]).stdout;
    let piped = sandbox.blksum_with_input(&["-f", "raw"], &empty_qcow2());
    assert_eq!(piped, printed(by_name.replace("empty.qcow2", "-")));

    let ran = sandbox.blksum_with_input(&["-f", "qcow2"], &empty_qcow2());
    assert_eq!(ran.status, Some(1));
    assert!(ran.stderr.contains("can only be read from files"), "{}", ran.stderr);
}

#[test]
fn a_fifo_is_read_like_a_pipe() {
    let sandbox = sandbox();
    let fifo = sandbox.path().join("fifo");
    assert!(sandbox.command("mkfifo").arg(&fifo).status().unwrap().success());
    let writer = std::thread::spawn(move || fs::write(fifo, [b'x'; 1024]).unwrap());
    let ran = sandbox.blksum(&["fifo"]);
    writer.join().unwrap();
    assert_eq!(ran, printed(sandbox.blksum(&["disk.img"]).stdout.replace("disk.img", "fifo")));
}

#[test]
fn files_of_size_zero_with_content_are_read() {
    let sandbox = sandbox();
    sandbox.write("empty", "");
    let version = fs::read("/proc/version").unwrap();
    sandbox.write("copy", version);
    let linear = ["--construction", "linear"];
    let sum = |name| sandbox.blksum(&[&linear[..], &[name]].concat()).stdout;
    assert_eq!(sum("/proc/version"), sum("copy").replace("copy", "/proc/version"));
    let proc = File::open("/proc/version").unwrap();
    let output = sandbox.blksum_command().args(linear).stdin(proc).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), sum("copy").replace("copy", "-"));
    assert_eq!(sum("/dev/null"), sum("empty").replace("empty", "/dev/null"));
    let unreadable = sandbox.blksum(&["-f", "raw", "/proc/self/mem"]);
    assert_eq!(unreadable, failed(1, "blksum: /proc/self/mem: Input/output error\n"));
}

#[test]
fn json() {
    let sandbox = sandbox();
    let ran = sandbox.blksum(&["--json", "disk.img", "gone"]);
    assert_eq!(ran.status, Some(1));
    let objects: Vec<serde_json::Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.len(), 2);
    let first = objects[0].as_object().unwrap();
    let keys: Vec<&str> = first.keys().map(String::as_str).collect();
    let expected = "block_size bytes_read checksum construction digest format name seconds \
                    virtual_size";
    assert_eq!(keys.join(" "), expected);
    assert_eq!(first["name"], "disk.img");
    assert_eq!(first["digest"], "sha256");
    assert_eq!(first["construction"], "streams:4");
    assert_eq!(first["block_size"], 65536);
    assert_eq!(first["virtual_size"], 1024);
    assert_eq!(first["format"], "raw");
    assert!(first["bytes_read"].is_u64() && first["seconds"].is_f64());
    let line = sandbox.blksum(&["disk.img"]).stdout;
    assert_eq!(first["checksum"], line[..64]);
    let error = serde_json::json!({"name": "gone", "error": "No such file or directory"});
    assert_eq!(objects[1], error);

    let zeros = "0".repeat(64);
    let list = format!("{line}{zeros}  disk.img\n{zeros}  gone\n");
    let checked = sandbox.blksum_with_input(&["-c", "--json"], list.as_bytes());
    let status: Vec<String> = checked
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["status"].to_string())
        .collect();
    assert_eq!(status, [r#""ok""#, r#""failed""#, r#""error""#]);
}

#[test]
fn json_without_blocks_has_no_block_size() {
    let ran = sandbox().blksum(&["--json", "--construction", "linear", "disk.img"]);
    let object: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(object["block_size"].is_null());
}

#[test]
fn json_has_the_bytes_of_names_that_are_not_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let sandbox = Sandbox::new();
    let name = b"\xffx";
    sandbox.write(name, [0; 512]);
    let ran = sandbox.blksum(&[OsStr::new("--json"), OsStr::from_bytes(name)]);
    let object: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(object["name_bytes"], "ff78");
    assert_eq!(object["name"], "\u{fffd}x");
}

#[test]
fn uris_are_never_files() {
    let sandbox = sandbox();
    fs::create_dir(sandbox.path().join("nbd:")).unwrap();
    sandbox.write("nbd:/host:0", [0; 512]);
    let refused = sandbox.blksum(&["nbd://host:0"]);
    assert_eq!((refused.status, &*refused.stdout), (Some(1), ""));
    assert!(refused.stderr.starts_with("blksum: 'nbd://host:0': "), "{}", refused.stderr);
    fs::create_dir(sandbox.path().join("nbd+tcp:")).unwrap();
    sandbox.write("nbd+tcp:/host", [0; 512]);
    let refused = sandbox.blksum(&["nbd+tcp://host"]);
    let reason = "nbd+tcp: is not known, use nbd://HOST:PORT/EXPORT";
    assert_eq!(refused, failed(1, format!("blksum: 'nbd+tcp://host': {reason}\n")));
    let line = format!("{}  nbd+tcp://host\n", "0".repeat(64));
    let checked = sandbox.blksum_with_input(&["-c"], line.as_bytes());
    assert_eq!(checked.stdout, "nbd+tcp://host: FAILED open or read\n");
    assert!(checked.stderr.contains("only with --allow-uri"), "{}", checked.stderr);
    let checked = sandbox.blksum_with_input(&["-c", "--allow-uri"], line.as_bytes());
    assert!(checked.stderr.contains(reason), "{}", checked.stderr);
}

#[test]
fn options_of_the_released_blksum_are_suggested() {
    let sandbox = sandbox();
    let ran = sandbox.blksum(&["-t", "4", "disk.img"]);
    assert_eq!(ran.status, Some(1));
    assert!(ran.stderr.contains("use --threads 4"), "{}", ran.stderr);
    let ran = sandbox.blksum(&["-t4", "disk.img"]);
    assert_eq!(ran.status, Some(2));
    assert!(ran.stderr.contains("use --threads 4"), "{}", ran.stderr);
    sandbox.write("empty.qcow2", empty_qcow2());
    let reasons = [
        ("disk.img", "no properly formatted checksum lines found", "a line is CHECKSUM  IMAGE"),
        (
            "empty.qcow2",
            "is a qcow2 image, not a list of checksums: leave out -c to hash it",
            "use --cache",
        ),
    ];
    for (image, reason, hint) in reasons {
        let ran = sandbox.blksum(&["-c", image]);
        assert_eq!(ran.status, Some(1));
        let lines: Vec<&str> = ran.stderr.lines().collect();
        assert_eq!(lines[0], format!("blksum: {image}: {reason}"));
        assert!(lines[1].contains(hint), "{}", ran.stderr);
    }
}

#[test]
fn a_disk_as_check_file_is_not_read_to_its_end() {
    let sandbox = sandbox();
    File::create(sandbox.path().join("huge")).unwrap().set_len(1 << 42).unwrap();
    let ran = sandbox.blksum(&["-c", "huge"]);
    assert_eq!(ran.status, Some(1));
    assert_eq!(ran.stderr, "blksum: huge: is not a check file: it has NUL bytes\n");
}

#[test]
fn odd_sizes_are_noted_where_conversions_would_differ() {
    let sandbox = sandbox();
    sandbox.write("odd", "x");
    let note = "blksum: odd: note: size is not a multiple of 512 bytes: its qcow2 conversion has \
                another checksum\n";
    assert_eq!(sandbox.blksum(&["odd"]).stderr, note);
    assert_eq!(sandbox.blksum(&["--construction", "linear", "odd"]).stderr, "");
    let line = sandbox.blksum(&["odd"]).stdout;
    for (option, stderr) in [("--strict", ""), ("--quiet", ""), ("--status", "")] {
        assert_eq!(sandbox.blksum_with_input(&["-c", option], line.as_bytes()).stderr, stderr);
    }
}

#[test]
fn wrong_command_lines() {
    let sandbox = sandbox();
    let lines: [(&[&str], &str); 9] = [
        (&["--json", "--tag"], "--json and --tag are mutually exclusive"),
        (&["-c", "-r"], "the --recursive option is meaningless when verifying checksums"),
        (&["--allow-uri"], "the --allow-uri option is meaningful only when verifying checksums"),
        (&["-c", "-d", "null"], "the digest null is empty: there is nothing to check"),
        (
            &["--block-size", "3k"],
            "invalid value '3k' for --block-size: use a power of two from 512 to 64M",
        ),
        (
            &["--block-size", "x"],
            "invalid value 'x' for --block-size: use a number of bytes, or one with K, M \
             or G for powers of 1024",
        ),
        (
            &["-f", "iso"],
            "invalid value 'iso' for --format: unknown image format: use raw, qcow2, qcow, vmdk, \
             vdi, vhdx, vpc, qed, parallels, luks, bochs, cloop, dmg, ewf, partclone, rbd, simg, gzip, xz, zstd, bzip2, \
             lz4 or lzop",
        ),
        (&["--threads", "0"], "invalid value '0' for --threads: use a number from 1 to 1024"),
        (&["--follow=any", "--untrusted"], "the argument --follow cannot be used with --untrusted"),
    ];
    for (args, reason) in lines {
        assert_eq!(sandbox.blksum(args), usage(reason), "{args:?}");
    }
    for digest in ["siphash", "blake2b", "sha257"] {
        assert_eq!(sandbox.blksum(&["-d", digest, "disk.img"]).status, Some(2));
    }
}

#[test]
fn control_characters_do_not_reach_the_terminal_in_messages() {
    let sandbox = sandbox();
    let evil = "\u{1b}[2J\u{202e}\u{9b}x\u{8}";
    let line = format!("{}  {evil}\n", "0".repeat(64));
    let ran = sandbox.blksum_with_input(&["-c"], line.as_bytes());
    assert!(!ran.stderr.contains(|c: char| c.is_control() && c != '\n'), "{:?}", ran.stderr);
    let ran = sandbox.blksum(&["-d", evil]);
    assert!(!ran.stderr.contains(|c: char| c.is_control() && c != '\n'), "{:?}", ran.stderr);
}

#[test]
fn a_full_disk_is_an_error_and_a_closed_pipe_is_quiet() {
    let sandbox = sandbox();
    for args in [&["disk.img"][..], &["--help"], &["-l"]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = sandbox.blksum_command().args(args).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(stderr, "blksum: write error: No space left on device\n");

        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = sandbox.blksum_command().args(args).stdout(writer).output().unwrap();
        assert_eq!((output.status.code(), output.stderr), (Some(1), vec![]));
    }
}

#[test]
fn each_result_is_printed_before_the_next_image_is_read() {
    let sandbox = sandbox();
    let mut child = sandbox
        .blksum_command()
        .args(["disk.img", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = [0; 75];
    child.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
    assert!(line.ends_with(b"  disk.img\n"));
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}
