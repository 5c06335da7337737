//! Check files that are read before the first image is: the sandbox must know what they name.
//!
//! One that grows while somebody waits for answers, in a terminal or a pipe, is not waited for, and
//! of a very long one only the beginning is held. Neither changes what is printed, only how narrow
//! the sandbox can be.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, IsTerminal, Read};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::stdio;

/// Check files, those that are held and those that are opened when their turn comes.
pub struct CheckFiles {
    held: Vec<io::Result<CheckFile>>,
    /// Whether all of all files is held.
    pub is_all: bool,
}

/// A check file: what is held of it, then the rest.
pub struct CheckFile {
    held: Vec<u8>,
    position: usize,
    rest: Rest,
}

enum Rest {
    None,
    Unread(File),
    /// It could not be read.
    Error,
}

impl CheckFiles {
    /// Reads the beginning of the files, all of it if that is possible.
    pub fn hold(names: &[OsString]) -> Self {
        let mut files = Self { held: Vec::new(), is_all: true };
        // Which of several comes to its end first, nobody can say.
        if names.len() > 1 && names.iter().any(|name| is_stream(name)) {
            files.is_all = false;
            return files;
        }
        let mut room = MAX_HELD;
        for name in names {
            let file = open(name).map(|file| file.hold(room));
            if let Ok(file) = &file {
                room -= file.held.len();
                files.is_all = !matches!(file.rest, Rest::Unread(_));
            }
            files.held.push(file);
            if !files.is_all {
                break;
            }
        }
        files
    }

    /// What is held of each file.
    pub fn contents(&self) -> impl Iterator<Item = &[u8]> {
        self.held.iter().flatten().map(|file| &file.held[..])
    }

    /// Whether what is not held yet may be long in coming.
    pub fn may_wait(&self, names: &[OsString]) -> bool {
        !self.is_all && names.iter().any(|name| is_stream(name))
    }

    /// The files, in the order of `names`.
    pub fn open(self, names: &[OsString]) -> impl Iterator<Item = io::Result<CheckFile>> {
        let others = names.iter().skip(self.held.len()).map(|name| open(name));
        self.held.into_iter().chain(others)
    }
}

impl CheckFile {
    /// Reads at most `room` bytes, for no longer than [`PATIENCE`] if there may be no end.
    fn hold(self, room: usize) -> Self {
        let Rest::Unread(mut file) = self.rest else { return self };
        let may_wait = file.metadata().is_ok_and(|metadata| metadata.is_file());
        let is_terminal = file.is_terminal();
        let deadline = Instant::now() + PATIENCE;
        let mut held = Vec::new();
        let rest = loop {
            if held.len() == room || is_terminal || !may_wait && !is_ready(&file, deadline) {
                break Rest::Unread(file);
            }
            let limit = CHUNK.min(room - held.len()) as u64;
            // No more than one read of a pipe, which may wait for the next.
            let count = if may_wait {
                (&mut file).take(limit).read_to_end(&mut held)
            } else {
                let start = held.len();
                held.resize(start + limit as usize, 0);
                let count = read(&mut file, &mut held[start..]);
                held.truncate(start + count.as_ref().map_or(0, |count| *count));
                count
            };
            match count {
                Ok(0) => break Rest::None,
                Ok(_) => {}
                Err(_) => break Rest::Error,
            }
        };
        Self { held, position: 0, rest }
    }
}

impl Read for CheckFile {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let held = &self.held[self.position..];
        if !held.is_empty() {
            let count = held.len().min(buf.len());
            buf[..count].copy_from_slice(&held[..count]);
            self.position += count;
            return Ok(count);
        }
        match &mut self.rest {
            Rest::None => Ok(0),
            Rest::Unread(file) => file.read(buf),
            Rest::Error => Err(io::ErrorKind::Other.into()),
        }
    }
}

fn open(name: &OsStr) -> io::Result<CheckFile> {
    let rest = if name == "-" {
        // It is open for other programs, and what is closed fails when it is read.
        stdio::stdin().map_or(Rest::Error, Rest::Unread)
    } else {
        Rest::Unread(File::open(name)?)
    };
    Ok(CheckFile { held: Vec::new(), position: 0, rest })
}

/// Whether reading may wait for somebody. What does not exist never does.
fn is_stream(name: &OsStr) -> bool {
    let metadata = if name == "-" {
        stdio::stdin().and_then(|stdin| stdin.metadata())
    } else {
        fs::metadata(name)
    };
    metadata.is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Waits until there is something to read, or the end; false if it took too long.
fn is_ready(file: &File, deadline: Instant) -> bool {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos() as _ };
        match poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&timeout)) {
            Err(rustix::io::Errno::INTR) => {}
            // Reading will tell what is wrong.
            other => return other.is_err() || other.is_ok_and(|count| count > 0),
        }
    }
}

fn read(file: &mut File, buf: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read(buf) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Bytes of all check files that are held: more than a hundred thousand lines.
const MAX_HELD: usize = 16 << 20;

const CHUNK: usize = 64 << 10;

/// How long whoever writes into a pipe may take without an answer.
const PATIENCE: Duration = Duration::from_secs(1);
