//! Compares blksum with the installed sha256sum on check files and names. Output, messages and exit
//! status must be the same, except that the status for a wrong command line is 2.

#![allow(missing_docs, reason = "a test program")]

mod common;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use common::{Ran, Sandbox};

const A: &str = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
const ZEROS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

const VERSION: &str = "sha256sum (GNU coreutils) 9.1\n";

/// Options that make blksum hash the bytes of the files themselves.
const PLAIN: [&str; 4] = ["--construction", "linear", "-f", "raw"];

/// Parts of hints that sha256sum does not print.
const HINTS: [&str; 3] = ["a line is CHECKSUM  IMAGE", "it has no lines", "-c means"];

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    for name in ["a", "b", " a", "*a", "-x", "r\rn\nx\\y", "(a) = b", "it's", "ü"] {
        sandbox.write(name, "x");
    }
    std::fs::create_dir(sandbox.path().join("folder")).unwrap();
    sandbox
}

/// Returns whether the installed sha256sum has the expected version. Later ones escape more names in
/// check mode.
fn has_sha256sum() -> bool {
    let version = Command::new("sha256sum").arg("--version").output();
    let is_same = version.is_ok_and(|output| output.stdout.starts_with(VERSION.as_bytes()));
    if !is_same {
        assert!(std::env::var_os("CI").is_none(), "CI must be able to compare with {VERSION}");
        println!("skipped: comparing with sha256sum: not installed: {VERSION}");
    }
    is_same
}

fn compare(sandbox: &Sandbox, args: &[&OsStr], input: &[u8]) {
    let expected = sandbox.run(sandbox.command("sha256sum"), args, input);
    let with_plain: Vec<&OsStr> =
        PLAIN.iter().map(OsStr::new).chain(args.iter().copied()).collect();
    let got = sandbox.blksum_with_input(&with_plain, input);
    let stderr = expected.stderr.replace("sha256sum", "blksum");
    let is_usage = stderr.contains("Try 'blksum --help'");
    let status = if is_usage { Some(2) } else { expected.status };
    // Blksum also says how a line is written.
    let is_hint = |line: &&str| HINTS.iter().any(|hint| line.contains(hint));
    let got_stderr: String =
        got.stderr.split_inclusive('\n').filter(|line| !is_hint(line)).collect();
    let got_stderr = got_stderr.replace(": use -r to hash the files in it", "");
    let got = Ran { stderr: got_stderr, ..got };
    assert_eq!(got, Ran { status, stderr, ..expected }, "{args:?}");
}

fn check_files() -> Vec<(&'static str, Vec<u8>)> {
    let files = [
        ("good", "{A}  a\n{A}  b\n"),
        ("binary-mode", "{A} *a\n{A} *b\n"),
        ("no-last-newline", "{A}  a\n{A}  b"),
        ("upper-case", "2D711642B726B04401627CA9FBAC32F5C8530FB1903CC4DB02258717921A4881  a\n"),
        ("crlf", "{A}  a\r\n\r\n# comment\r\n{A}  b\r\n"),
        ("one-failed", "{A}  a\n{0}  b\n"),
        ("all-failed", "{0}  a\n{0}  b\n"),
        ("one-all-failed", "{0}  a\n"),
        ("missing", "{A}  a\n{A}  missing\n"),
        ("all-missing", "{A}  gone\n{A}  missing\n"),
        ("missing-and-failed", "{0}  a\n{A}  missing\n"),
        ("folder-in-it", "{A}  folder\n{A}  a\n"),
        ("malformed", "{A}  a\nnonsense\n\n#\n{A}\n{A} \n"),
        ("one-malformed", "{A}  a\nnonsense\n"),
        ("only-malformed", "nonsense\n  \n{A}x  a\n"),
        ("empty", ""),
        ("only-comments", "# a\n#b\n\n"),
        ("leading-blanks", "  {A}  a\n\t{A}  b\n"),
        ("tab", "{A}\t a\n{A}\t*b\n"),
        ("reversed", "{A} a\n{A}  a\n{A} *a\n"),
        ("reversed-late", "{A}  a\n{A} a\n"),
        ("escaped", "\\{A}  r\\rn\\nx\\\\y\n\\{A}  a\n"),
        ("bad-escapes", "\\{A}  a\\t\n\\{A}  a\\\n{A}  a\n"),
        ("escaped-and-failed", "\\{0}  r\\rn\\nx\\\\y\n\\{A}  gone\\n\n"),
        ("not-escaped", "{A}  r\\rn\\nx\\\\y\n\\{A}  b\\\\b\n\\{A}  b\\rb\n\\{A}  b\\n\\\\b\n"),
        ("strange-names", "{A}   a\n{A}  *a\n{A}  -x\n{A}  it's\n{A}  ü\n"),
        ("strange-missing", "{A}  a:b\n{A}  a b\n{A}  #\n{A}  a\u{7}\n{A}  $(x)\n{A}  'q' ?\n"),
        ("bsd", "SHA256 (a) = {A}\nSHA256 (b) = {0}\n"),
        ("openssl", "SHA256(a)= {A}\nSHA256(b)={A}\n"),
        ("bsd-escaped", "\\SHA256 (r\\rn\\nx\\\\y) = {A}\nSHA256 ((a) = b) = {A}\n"),
        ("bsd-malformed", "SHA256 (a) = {A} \nSHA256 (a {A}\nSHA257 (a) = {A}\n"),
        ("bsd-no-name", "SHA256 () = {A}\n"),
        ("bsd-and-gnu", "SHA256 (a) = {A}\n{A}  b\n"),
        ("dash", "{A}  -\n"),
        ("wrong-length", "{A}00  a\n123  a\n{A}  a\n"),
    ];
    let content = |text: &str| text.replace("{A}", A).replace("{0}", ZEROS).into_bytes();
    let mut files: Vec<_> = files.map(|(name, text)| (name, content(text))).into();
    files.push(("not-utf8", [A.as_bytes(), b"  \xff\xfe\n", A.as_bytes(), b"  a\n"].concat()));
    files
}

#[test]
fn check_mode() {
    if !has_sha256sum() {
        return;
    }
    let sandbox = sandbox();
    let options: [&[&str]; 12] = [
        &[],
        &["-w"],
        &["--warn", "--strict"],
        &["--quiet"],
        &["--status"],
        &["--status", "--strict"],
        &["--ignore-missing"],
        &["--ignore-missing", "--quiet"],
        &["--ignore-missing", "--status"],
        &["--status", "-w"],
        &["-w", "--quiet"],
        &["--quiet", "--status"],
    ];
    for (name, content) in check_files() {
        let name = format!("check-{name}");
        sandbox.write(&name, &content);
        for options in options {
            let args: Vec<&str> = [&["-c"], options, &[&name]].concat();
            let args: Vec<&OsStr> = args.into_iter().map(OsStr::new).collect();
            compare(&sandbox, &args, b"x");
            let args: Vec<&str> = [options, &["--check"]].concat();
            let args: Vec<&OsStr> = args.into_iter().map(OsStr::new).collect();
            compare(&sandbox, &args, &content);
        }
    }
    let several = ["-c", "check-good", "gone", "folder", "check-reversed", "check-missing"];
    compare(&sandbox, &several.map(OsStr::new), b"");
}

#[test]
fn names_and_command_lines() {
    if !has_sha256sum() {
        return;
    }
    let sandbox = sandbox();
    let lines: [&[&str]; 25] = [
        &[],
        &["-"],
        &["a", "b", " a", "*a", "./-x", "r\rn\nx\\y", "(a) = b", "it's", "ü"],
        &["--tag", "a", "r\rn\nx\\y"],
        &["-b", "a", "-", "b"],
        &["-b", "-t", "a"],
        &["-t", "-b", "a"],
        &["-z", "a", "r\rn\nx\\y"],
        &["--zero", "--tag", "a"],
        &["a", "gone", "folder", "b"],
        &["--", "-x"],
        &["", "~", "{", "}", "a#", "a~b", "a{b", "a=b", "a%b", "a,b", "a@b", "a]b", "a[b", "a/b"],
        &["it's gone", "it's:gone", "gone's", "'", "a'$b", "\"", "a\tb", "a\x7fb", "a\x0bb"],
        &["--tag", "--check", "a"],
        &["--tag", "--text", "a"],
        &["--text", "--tag", "a"],
        &["--zero", "--check", "a"],
        &["--binary", "--check", "a"],
        &["-ct", "a"],
        &["--status", "a"],
        &["--strict", "a"],
        &["--warn", "a"],
        &["--ignore-missing", "a"],
        &["--no-such-option"],
        &["-X"],
    ];
    for args in lines {
        let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
        compare(&sandbox, &args, b"x");
    }
    compare(&sandbox, &[OsStr::from_bytes(b"\xff\x1b[2J")], b"");
    // Every character alone, at either end, in the middle, and next to a quote.
    for c in (1..=127).map(char::from).filter(|c| *c != '-') {
        let names = [format!("{c}"), format!("{c}gone"), format!("go{c}ne"), format!("gone{c}")];
        let quoted = [format!("it's{c}gone"), format!("{c}'"), format!("'{c}")];
        let args: Vec<&OsStr> = names.iter().chain(&quoted).map(OsStr::new).collect();
        compare(&sandbox, &args, b"");
    }
}
