//! The map to write.
//!
//! It is opened before the process is restricted, and never renamed: a commit at its end says that it is
//! finished.

use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::os::unix::fs::OpenOptionsExt;

use blkimage::Image;
use blkmap::{Error, Header, Pipe, Recovered, Writer};

use super::open::{base_of_state, reason};
use crate::identity::Identity;
use crate::messages;
use crate::stdio::Stdout;

/// A file to write a map to, or standard output.
pub enum Output {
    Stdout,
    File { file: File, identity: Identity },
}

/// What a file holds.
pub enum Content {
    /// Nothing.
    Empty,
    /// The beginning of a map whose writing was interrupted before its first commit.
    Torn,
    /// A map, finished or not.
    Map(Box<Recovered>),
}

impl Output {
    /// Opens or creates a file, and locks it. The error is a message without the name.
    pub fn open(name: &OsStr) -> Result<Self, String> {
        if name == "-" {
            return Ok(Self::Stdout);
        }
        let file = open_locked(name, true)?;
        let metadata = file.metadata().map_err(|error| messages::reason(&error))?;
        Ok(Self::File { identity: Identity::new(&metadata), file })
    }

    /// Opens a map to append to, and locks it. The error is a message without the name.
    pub fn open_map(name: &OsStr) -> Result<File, String> {
        open_locked(name, false)
    }

    /// Refuses a file of the image.
    pub fn check_apart(&self, image: &Image) -> Result<(), String> {
        match self {
            Self::File { identity, .. } if identity.is_in(image) => {
                Err("is a file of the image".into())
            }
            _ => Ok(()),
        }
    }

    /// Returns whether this is the file with a name.
    pub fn is_file(&self, name: &OsStr) -> bool {
        let Self::File { identity, .. } = self else { return false };
        let is_same = |name: &OsStr| {
            std::fs::metadata(name).is_ok_and(|metadata| Identity::new(&metadata) == *identity)
        };
        is_same(name) || base_of_state(name).is_some_and(|base| is_same(&base))
    }

    /// Returns what the file holds. It is not changed.
    pub fn content(&self) -> Result<Content, String> {
        let Self::File { file, .. } = self else { return Ok(Content::Empty) };
        let length = file.metadata().map_err(|error| messages::reason(&error))?.len();
        if length == 0 {
            return Ok(Content::Empty);
        }
        let file = file.try_clone().map_err(|error| messages::reason(&error))?;
        match Recovered::find(file) {
            Ok(recovered) => Ok(Content::Map(Box::new(recovered))),
            Err(Error::Magic | Error::Damaged { .. }) if self.is_torn(length) => Ok(Content::Torn),
            Err(Error::Magic) => Err("exists, and is not a block map".into()),
            Err(error) => Err(reason(&error)),
        }
    }

    /// Returns whether the file is what a crash leaves of a map without a commit: at most its header, and zeros.
    fn is_torn(&self, length: u64) -> bool {
        let Self::File { file, .. } = self else { return false };
        let mut bytes = vec![0; length.min(MAX_TORN + 1) as usize];
        let is_read = std::os::unix::fs::FileExt::read_exact_at(file, &mut bytes, 0).is_ok();
        let (header, rest) = bytes.split_at(bytes.len().min(blkmap::PAGE));
        let is_zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
        let is_header = header.iter().zip(&blkmap::MAGIC).all(|(one, other)| one == other);
        is_read && length <= MAX_TORN && is_zero(rest) && (is_header || is_zero(header))
    }

    /// Begins a map. What the file holds is removed.
    pub fn begin(&self, header: Header, image_size: u64) -> Result<Writer<Target>, Error> {
        Writer::new(self.target()?, header, image_size)
    }

    fn target(&self) -> Result<Target, Error> {
        match self {
            Self::Stdout => Ok(Target::Stdout(Pipe(Stdout))),
            Self::File { file, .. } => {
                use std::io::Seek;
                file.set_len(0)?;
                let mut file = file.try_clone()?;
                file.rewind()?;
                Ok(Target::File(file))
            }
        }
    }
}

fn open_locked(name: &OsStr, create: bool) -> Result<File, String> {
    let reason = |error| messages::reason(&error);
    let file = File::options()
        .read(true)
        .write(true)
        .create(create)
        .truncate(false)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
        .open(name)
        .map_err(reason)?;
    if !file.metadata().map_err(reason)?.is_file() {
        return Err("is not a regular file".into());
    }
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err("is being written by another process".into()),
        Err(TryLockError::Error(error)) => Err(reason(error)),
    }
}

/// What a writer writes to.
pub enum Target {
    Stdout(Pipe<Stdout>),
    File(File),
}

impl blkmap::Output for Target {
    fn append(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Self::Stdout(pipe) => pipe.append(bytes),
            Self::File(file) => file.append(bytes),
        }
    }

    fn sync(&mut self) -> std::io::Result<()> {
        match self {
            Self::Stdout(pipe) => pipe.sync(),
            Self::File(file) => file.sync(),
        }
    }

    fn written(&self) -> Option<&dyn blkmap::ReadAt> {
        match self {
            Self::Stdout(pipe) => pipe.written(),
            Self::File(file) => file.written(),
        }
    }
}

/// Returns 16 random bytes.
pub fn file_id() -> Result<[u8; 16], String> {
    let mut bytes = [0; 16];
    let mut filled = 0;
    while filled < bytes.len() {
        let flags = rustix::rand::GetRandomFlags::empty();
        filled += rustix::rand::getrandom(&mut bytes[filled..], flags)
            .map_err(|error| messages::reason(&error.into()))?;
    }
    Ok(bytes)
}

/// More zeros may be something else than the beginning of a map.
const MAX_TORN: u64 = 1 << 20;
