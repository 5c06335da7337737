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
    /// Nothing.
    Empty,
    /// The beginning of a map whose writing was interrupted before its first commit.
    Torn,
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
        let length = file.metadata().map_err(|error| Problem::from(&error))?.len();
        if length == 0 {
            return Ok(Content::Empty);
        }
        let file = file.try_clone().map_err(|error| Problem::from(&error))?;
        match Recovered::find(file) {
            Ok(recovered) => Ok(Content::Map(Box::new(recovered))),
            Err(Error::Magic | Error::Damaged { .. }) if self.is_torn(length) => Ok(Content::Torn),
            Err(Error::Magic) => Err("exists, and is not a block map".into()),
            Err(error) => Err(error.into()),
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

    /// Returns the file of a map that is continued for its writer.
    pub fn continued(&self, file: File) -> Target {
        let leftovers = match self {
            Self::Stdout => vec![],
            Self::File { leftover, .. } => vec![*leftover],
        };
        Target::File { file, leftovers, syncs: 0 }
    }

    /// Returns the number of bytes in the file so far.
    pub fn length(&self) -> std::io::Result<u64> {
        match self {
            Self::Stdout => Ok(0),
            Self::File { file, .. } => Ok(file.metadata()?.len()),
        }
    }

    /// Removes what is past this length from the file.
    pub fn cut(&self, length: u64) -> std::io::Result<()> {
        match self {
            Self::Stdout => Ok(()),
            Self::File { file, .. } => file.set_len(length),
        }
    }

    /// Opens the map in the file, which is finished.
    pub fn map(&self) -> Result<Map, Error> {
        match self {
            Self::Stdout => Err(Error::Unfinished),
            Self::File { file, .. } => Map::open(file.try_clone()?),
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
                Ok(Target::File { file, leftovers: vec![*leftover], syncs: 0 })
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
        /// The files that are kept when the map has a commit.
        leftovers: Vec<Leftover>,
        /// Number of times that the file was brought to the disk.
        syncs: u32,
    },
}

impl Target {
    /// Keeps another new file together with the map, which is of no use without it.
    pub fn keeping(mut self, leftover: Leftover) -> Self {
        if let Self::File { leftovers, .. } = &mut self {
            leftovers.push(leftover);
        }
        self
    }
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
            Self::File { file, leftovers, syncs } => {
                file.sync()?;
                *syncs += 1;
                if *syncs == COMMITTED {
                    Leftover::keep_all(leftovers);
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

/// More zeros may be something else than the beginning of a map.
const MAX_TORN: u64 = 1 << 20;
