//! An archive in a compressed file that is decoded from start to end only.
//!
//! A disk is read in the pass that finds it. What follows it is read at the end of the pass: another member of its name, or
//! another disk where one is expected, makes what was read invalid.

use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::members::{RULES, head_of, is_disk, is_disk_by};
use crate::compressed::{self, Make, Ordered};
use crate::compression::Compression;
use crate::container::choice;
use crate::container::entries::{Entries, key};
use crate::container::forward::{Forward, Stream};
use crate::container::kind::whole;
use crate::error::{Error, ErrorKind, Result, excerpt};
use crate::options::OpenOptions;
use crate::storage::{self, HostFile, Storage};
use crate::tar::Entry;

/// A compressed archive.
pub(super) struct Compressed {
    pub storage: Arc<dyn Storage>,
    pub compression: Compression,
    /// Limits of what is decoded.
    pub limits: OpenOptions,
    pub name: PathBuf,
}

/// A member that was found, and the stream that continues with it.
pub(super) struct Found {
    pub entry: Entry,
    /// Those up to it.
    entries: Entries,
    headers: u32,
    is_only: bool,
    /// The stream, whose next byte is the first one of the member. `None` if the archive has to be read again.
    stream: Option<Stream>,
}

impl Compressed {
    fn reader(&self) -> io::Result<Stream> {
        compressed::reader(&self.limits, self.compression, &self.storage)
    }

    fn file(&self, forward: Arc<Forward>) -> HostFile {
        whole(forward, &self.name)
    }

    /// Returns the names of all disks. All of the archive is decoded.
    pub fn disks(&self) -> Result<Vec<Vec<u8>>> {
        let failed = |error| storage::read_error(&self.name, error, None);
        let forward = Forward::new(self.reader().map_err(failed)?, 0);
        let file = self.file(forward.clone());
        let mut reader = RULES.reader(&file);
        let (mut entries, mut found) = (Entries::default(), Vec::new());
        while let Some(entry) = reader.entry()? {
            entries.add(&file, entry.clone(), RULES)?;
            if entry.is_file() && is_disk(&file, &entry)? {
                found.push(entry.name);
            }
        }
        entries.check_folders(&file)?;
        forward.finish().map_err(failed)?;
        let names = entries.files().map(|entry| &*entry.name);
        choice::disks(found, names)
            .map_err(|reason| Error::new(ErrorKind::Format, &self.name, reason))
    }

    /// Finds the file with this name, or the first disk.
    pub fn find(&self, wanted: Option<&[u8]>) -> Result<Found> {
        let stream = self.reader().map_err(|error| storage::read_error(&self.name, error, None))?;
        let forward = Forward::new(stream, 0);
        let file = self.file(forward.clone());
        let mut reader = RULES.reader(&file);
        let mut entries = Entries::default();
        while let Some(entry) = reader.entry()? {
            entries.add(&file, entry.clone(), RULES)?;
            if !entry.is_file() {
                continue;
            }
            let head = head_of(&file, &entry)?;
            let is_it = match wanted {
                Some(name) => key(name) == key(&entry.name),
                None => is_disk_by(&entry, &head),
            };
            if is_it {
                let (rest, _) = forward.take();
                let stream: Option<Stream> = Some(Box::new(Cursor::new(head).chain(rest)));
                let headers = reader.headers();
                return Ok(Found { entry, entries, headers, is_only: wanted.is_none(), stream });
            }
        }
        let names = entries.files().map(|entry| &*entry.name);
        let error = |reason| Error::new(ErrorKind::Format, &self.name, reason);
        if let Some(name) = wanted {
            return Err(error(choice::unknown(name, names)));
        }
        let disks = choice::disks(Vec::new(), names).map_err(error)?;
        let only = disks.first().and_then(|name| entries.find(name));
        let entry = only.cloned().ok_or_else(|| file.corrupt("lacks its only file"))?;
        // All is known of what surrounds it.
        Ok(Found { entry, entries, headers: u32::MAX, is_only: false, stream: None })
    }

    /// Returns the bytes of a member, which are stored one after the other.
    pub fn content(
        self: &Arc<Self>,
        options: &OpenOptions,
        found: Found,
    ) -> Result<Box<dyn Storage>> {
        let Found { entry, entries, headers, is_only, stream } = found;
        let (size, before) = (entry.size, entry.offset);
        let rest = Arc::new(Rest { archive: self.clone(), entry, entries, headers, is_only });
        let first: Option<Stream> = stream.map(|stream| rest.member(stream));
        let make: Make = Box::new(move || {
            let mut stream = rest.archive.reader()?;
            let skipped = io::copy(&mut stream.by_ref().take(before), &mut io::sink())?;
            if skipped < before {
                return Err(cut());
            }
            Ok(rest.member(stream))
        });
        let compression = Some(self.compression);
        let stored = self.storage.size();
        let shape = Ordered { size, stored, before, compression };
        compressed::ordered(options, self.storage.clone(), &self.name, shape, make, first)
    }
}

/// What is checked after a member.
struct Rest {
    archive: Arc<Compressed>,
    entry: Entry,
    entries: Entries,
    headers: u32,
    is_only: bool,
}

impl Rest {
    /// Returns a reader of the member, which begins with the next byte of `stream`.
    fn member(self: &Arc<Self>, stream: Stream) -> Stream {
        Box::new(Member { stream: Some(stream), left: self.entry.size, rest: self.clone() })
    }

    /// Reads what follows the member in `stream`.
    fn check(&self, stream: Stream) -> Result<()> {
        let forward = Forward::new(stream, self.entry.offset + self.entry.size);
        let file = self.archive.file(forward.clone());
        let mut entries = self.entries.clone();
        if self.headers < u32::MAX {
            let mut reader = RULES.reader(&file).behind(&self.entry, self.headers);
            while let Some(entry) = reader.entry()? {
                entries.add(&file, entry.clone(), RULES)?;
                if !self.is_only || !entry.is_file() {
                    continue;
                }
                if is_disk(&file, &entry)? {
                    let (first, second) = (excerpt(&self.entry.name), excerpt(&entry.name));
                    let reason = format!(
                        "has the disks \"{first}\" and \"{second}\": name one after a colon, as {first}"
                    );
                    return Err(file.error(ErrorKind::Unsupported, reason).at(entry.header()));
                }
            }
            entries.check_folders(&file)?;
        }
        let end = forward.finish();
        end.map(drop).map_err(|error| storage::read_error(&self.archive.name, error, None))
    }
}

/// A member, and what follows it.
struct Member {
    /// `None` past the end.
    stream: Option<Stream>,
    left: u64,
    rest: Arc<Rest>,
}

impl Read for Member {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        if self.left == 0 {
            let Some(stream) = self.stream.take() else { return Ok(0) };
            return self.rest.check(stream).map(|()| 0).map_err(|error| plain(&error));
        }
        let Some(stream) = &mut self.stream else { return Ok(0) };
        let length = self.left.min(buf.len() as u64) as usize;
        let count = stream.read(&mut buf[..length])?;
        self.left -= count as u64;
        if count == 0 { Err(cut()) } else { Ok(count) }
    }
}

/// Converts the error of an archive to a storage's.
fn plain(error: &Error) -> io::Error {
    let kind = match error.kind() {
        ErrorKind::Unsupported => io::ErrorKind::Unsupported,
        ErrorKind::Size => io::ErrorKind::FileTooLarge,
        _ => io::ErrorKind::InvalidData,
    };
    io::Error::new(kind, error.reason())
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "is a tar archive that is cut off within a member")
}

/// Returns the first block of an archive, or fewer bytes of a shorter one.
pub(super) fn first_block(archive: &Compressed, name: &Path) -> Result<Vec<u8>> {
    let mut block = Vec::new();
    let read = archive.reader().and_then(|reader| reader.take(512).read_to_end(&mut block));
    read.map_err(|error| storage::read_error(name, error, None))?;
    Ok(block)
}
