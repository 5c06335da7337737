//! The map to write.
//!
//! It is opened before the process is restricted, and never renamed: a commit at its end says that it is
//! finished.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use blkimage::{Identity, Image};
use blkmap::{Error, Header, Map, Pipe, Recovered, Writer};
use rustix::fs::OFlags;

use super::open::{base_of_state, of_index};
use crate::outputs::{self, Fate, FileMode, Leftover, Named};
use crate::problem::Problem;
use crate::stdio::Stdout;

/// A file to write a map to, or standard output.
pub enum Output {
    Stdout,
    File { file: File, identity: Identity, leftover: Leftover },
}

/// The content of a file.
pub enum Content {
    /// Nothing, or the beginning of a map whose writing was interrupted before its first commit.
    Empty,
    /// A map, finished or not.
    Map(Box<Recovered>),
}

impl Output {
    /// Opens a file or creates it with this mode, and locks it.
    pub fn open(name: &OsStr, named: Named<'_>, mode: FileMode) -> Result<Self, Problem> {
        if name == "-" {
            return Ok(Self::Stdout);
        }
        let flags = OFlags::RDWR | OFlags::NONBLOCK;
        let opened = outputs::open_locked(Path::new(name), named, mode, flags)?;
        let identity = Identity::new(&opened.metadata);
        Ok(Self::File { file: opened.file, identity, leftover: opened.leftover })
    }

    /// Opens a map to append to, and locks it.
    pub fn open_map(name: &OsStr) -> Result<File, Problem> {
        let file = File::options().read(true).write(true).custom_flags(NONBLOCK).open(name);
        let file = file.map_err(|error| Problem::from(&error))?;
        outputs::lock(&file)?;
        Ok(file)
    }

    /// Returns what another thread needs to tell whether the map can be continued.
    pub fn watched(&self) -> Option<Watched> {
        let Self::File { file, leftover, .. } = self else { return None };
        Some(Watched { file: file.try_clone().ok()?, leftover: *leftover })
    }

    /// Refuses a file of the image. A new file may then be read by users who may read all files of the image.
    pub fn check_apart(&self, image: &Image) -> Result<(), Problem> {
        match self {
            Self::File { identity, .. } if identity.is_in(image) => {
                Err("is a file of the image".into())
            }
            Self::File { leftover, .. } => {
                leftover.share(Some(image));
                Ok(())
            }
            Self::Stdout => Ok(()),
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
    pub fn content(&self) -> Result<Content, Problem> {
        let Self::File { file, .. } = self else { return Ok(Content::Empty) };
        match Recovered::find_begun(file) {
            Ok(None) => Ok(Content::Empty),
            Ok(Some(recovered)) => Ok(Content::Map(Box::new(recovered))),
            Err(Error::Magic) => Err("exists, and is not a block map".into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Begins a map. What the file holds is removed.
    pub fn begin(&self, header: Header, image_size: u64) -> Result<Writer<Target>, Error> {
        Writer::new(self.target()?, header, image_size)
    }

    /// Returns the file, and what removes it if it is new. `None` for standard output.
    pub fn file(&self) -> Option<(&File, Leftover)> {
        match self {
            Self::Stdout => None,
            Self::File { file, leftover, .. } => Some((file, *leftover)),
        }
    }

    /// Empties the file, and returns it for a writer.
    pub fn target(&self) -> Result<Target, Error> {
        match self {
            Self::Stdout => Ok(Target::Stdout(Pipe(Stdout))),
            Self::File { file, leftover, .. } => {
                use std::io::Seek;
                file.set_len(0)?;
                let mut file = file.try_clone()?;
                file.rewind()?;
                Ok(Target::File { file, leftover: *leftover, syncs: 0 })
            }
        }
    }
}

/// Opens the last state of a map that is locked. What an interrupted update left after it is removed, so that a commit
/// can be appended.
pub fn last_state(file: &File, name: &OsStr) -> Result<Map, Error> {
    let map = Map::open(file.try_clone()?).map_err(|error| of_index(error, file, name))?;
    let rest = map.rest()?;
    if rest > 0 {
        file.set_len(file.metadata()?.len() - rest)?;
    }
    Ok(map)
}

/// A map that is being written.
pub struct Watched {
    file: File,
    leftover: Leftover,
}

impl Watched {
    /// Returns whether the map stays, and has a commit after which it can be continued.
    pub fn has_checkpoint(&self, fate: &Fate) -> bool {
        let recovered = self.file.try_clone().ok().and_then(|file| Recovered::find(file).ok());
        !fate.is_lost(self.leftover) && recovered.is_some_and(|map| map.commit().is_some())
    }
}

/// The destination of a writer.
pub enum Target {
    Stdout(Pipe<Stdout>),
    File {
        file: File,
        /// Keeps the file when the map has a commit.
        leftover: Leftover,
        /// Number of times that the file was brought to the disk.
        syncs: u32,
    },
}

impl blkmap::Output for Target {
    fn append(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Self::Stdout(pipe) => pipe.append(bytes),
            Self::File { file, .. } => file.append(bytes),
        }
    }

    fn sync(&mut self) -> std::io::Result<()> {
        match self {
            Self::Stdout(pipe) => pipe.sync(),
            Self::File { file, leftover, syncs } => {
                file.sync()?;
                *syncs += 1;
                if *syncs == COMMITTED {
                    leftover.keep();
                }
                Ok(())
            }
        }
    }

    fn written(&self) -> Option<&dyn blkmap::ReadAt> {
        match self {
            Self::Stdout(pipe) => pipe.written(),
            Self::File { file, .. } => file.written(),
        }
    }
}

/// Number of times that a file was brought to the disk when it has a commit, which is between the first two. A map with a
/// commit can be continued.
const COMMITTED: u32 = 2;

const NONBLOCK: i32 = OFlags::NONBLOCK.bits() as i32;
