//! Runs the built commands in a temporary folder.

#![allow(dead_code, reason = "each test program uses a part")]

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A temporary folder in which commands run.
pub struct Sandbox {
    folder: TempDir,
}

/// The result of a command.
#[derive(Debug, PartialEq, Eq)]
pub struct Ran {
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Sandbox {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn write(&self, name: impl AsRef<[u8]>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(OsStr::from_bytes(name.as_ref()));
        fs::write(&path, content).unwrap();
        path
    }

    pub fn blksum<S: AsRef<OsStr>>(&self, args: &[S]) -> Ran {
        self.run(self.blksum_command(), args, b"")
    }

    pub fn blkhash<S: AsRef<OsStr>>(&self, args: &[S]) -> Ran {
        self.run(self.blkhash_command(), args, b"")
    }

    pub fn blksum_with_input<S: AsRef<OsStr>>(&self, args: &[S], input: &[u8]) -> Ran {
        self.run(self.blksum_command(), args, input)
    }

    /// Runs a command with `input` piped to its standard input.
    pub fn run<S: AsRef<OsStr>>(&self, mut command: Command, args: &[S], input: &[u8]) -> Ran {
        let mut child = command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The program may end without reading its input.
        let _ = child.stdin.take().unwrap().write_all(input);
        let output = child.wait_with_output().unwrap();
        Ran {
            status: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.path()).env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
        command
    }

    pub fn blkhash_command(&self) -> Command {
        self.built(env!("CARGO_BIN_EXE_blkhash"))
    }

    pub fn blksum_command(&self) -> Command {
        self.built(env!("CARGO_BIN_EXE_blksum"))
    }

    /// Returns a command that runs a built program, through `BLKHASH_TEST_RUNNER` if that is set: an emulator of
    /// another CPU and its options.
    fn built(&self, program: &str) -> Command {
        let runner = std::env::var("BLKHASH_TEST_RUNNER").unwrap_or_default();
        let mut words = runner.split_whitespace().chain([program]);
        let mut command = self.command(words.next().unwrap());
        command.args(words);
        command
    }
}

/// The result of a run that succeeded and printed only `stdout`.
pub fn printed(stdout: impl Into<String>) -> Ran {
    Ran { status: Some(0), stdout: stdout.into(), stderr: String::new() }
}

/// The result of a run that failed and printed only `stderr`.
pub fn failed(status: i32, stderr: impl Into<String>) -> Ran {
    Ran { status: Some(status), stdout: String::new(), stderr: stderr.into() }
}
