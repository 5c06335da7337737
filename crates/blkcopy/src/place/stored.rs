//! The bytes that a name leads to: of a file, a device or an export, and of everything that stores them.

use std::fs::{self, File, Metadata};
use std::ops::Range;
use std::path::{Path, PathBuf};

use blkimage::{Identity, Image, Location, Member, MemberFile, Uri, container_of};

use super::server::{self, Access, Server};
use super::system::{Lower, System};

/// Bytes of files, devices and exports.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    pieces: Vec<Piece>,
    servers: Vec<Server>,
}

/// Bytes of one file or device.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    of: Identity,
    range: Range<u64>,
    /// Whether all of the range belongs to it. Of a volume, nothing tells where in the range it is.
    is_exact: bool,
    /// The process that has the file open, if it was found in this way.
    process: Option<u32>,
}

impl Stored {
    /// Returns what a name leads to, which may name a disk in a container.
    pub fn of_name(system: &System, name: Location<'_>, access: Access) -> Self {
        let mut stored = Self::default();
        match name {
            Location::Path(path) => stored.add_path(system, path),
            Location::Uri(uri) => {
                // Nothing is written to where an object is.
                if let Some(uri) = uri.to_str().and_then(Uri::new).filter(|uri| !uri.is_url()) {
                    stored.add_export(system, &uri, access);
                }
            }
            _ => {}
        }
        stored
    }

    /// Returns what an open file is, and what stores it.
    pub fn of_file(system: &System, file: &File, metadata: &Metadata) -> Self {
        let mut stored = Self::default();
        stored.add(system, Piece::whole(Identity::new(metadata)), blksys::path_of(file).ok());
        stored
    }

    /// Returns the files of an image and of its chain, and what stores them. Those in a container that is a folder are left out.
    pub fn of_image(system: &System, image: &Image) -> Self {
        let mut stored = Self::default();
        for name in image.chain().iter().flat_map(Member::files).map(MemberFile::name) {
            let other = Self::of_name(system, Location::new(name.as_os_str()), Access::Read);
            stored.pieces.extend(other.pieces);
            stored.servers.extend(other.servers);
        }
        stored
    }

    /// Returns the bytes of a device.
    pub fn of_device(system: &System, device: Identity) -> Self {
        let mut stored = Self::default();
        stored.add(system, Piece::whole(device), None);
        stored
    }

    /// Returns whether both have bytes in common, as far as the system tells.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.pieces.iter().any(|one| other.pieces.iter().any(|two| one.overlaps(two)))
            || self.servers.iter().any(|one| other.servers.iter().any(|two| one.is_same(two)))
    }

    /// Returns whether one of the files or devices is a file of the image, or one of its container.
    pub fn has_file_of(&self, image: &Image) -> bool {
        self.pieces.iter().any(|piece| piece.of.is_in(image))
    }

    /// Returns whether one of the files or devices is this one.
    pub fn has(&self, identity: Identity) -> bool {
        self.pieces.iter().any(|piece| piece.of == identity)
    }

    /// Returns whether both begin with the same file or device, so that it is not only stored in it.
    pub fn is_same(&self, other: &Self) -> bool {
        let first = |it: &Self| it.pieces.first().map(|piece| piece.of);
        first(self).is_some() && first(self) == first(other)
    }

    fn add_path(&mut self, system: &System, path: &Path) {
        let path = match container_of(path) {
            Some(container) if container.is_dir() => return,
            container => container.unwrap_or(path),
        };
        if let Some(identity) = Identity::of(path) {
            self.add(system, Piece::whole(identity), fs::canonicalize(path).ok());
        }
    }

    /// Adds the files that the server of an export has open, as far as this process may see them. What is read may be stored in
    /// any of them, and what is written goes to all that are open for writing.
    fn add_export(&mut self, system: &System, uri: &Uri<'_>, access: Access) {
        let Some(server) = server::of_uri(uri) else { return };
        for process in server.processes.iter().copied() {
            self.add_files_of(system, process, access);
        }
        self.servers.push(server);
    }

    fn add_files_of(&mut self, system: &System, process: u32, access: Access) {
        let is_exact = access == Access::Write;
        for file in server::files_of(process, access) {
            let piece = Piece { is_exact, process: Some(process), ..Piece::whole(file.identity) };
            self.add(system, piece, Some(file.path));
        }
    }

    /// Adds bytes and what stores them.
    fn add(&mut self, system: &System, piece: Piece, path: Option<PathBuf>) {
        if self.pieces.len() == MAX_PIECES || self.pieces.contains(&piece) {
            return;
        }
        let Piece { of, process, .. } = piece;
        let (range, is_exact) = (piece.range.clone(), piece.is_exact);
        self.pieces.push(piece);
        let Identity::Device(number) = of else {
            if let Some(real) = path.and_then(|path| system.beneath_overlay(&path))
                && let Some(of) = Identity::of(&real)
            {
                self.add(system, Piece { of, range, is_exact, process }, Some(real));
            }
            return;
        };
        for beneath in system.beneath(number) {
            let start = beneath.start.saturating_add(range.start);
            let end = beneath.start.saturating_add(range.end.min(beneath.length));
            let is_exact = is_exact && beneath.is_exact;
            let piece = |of| Piece { of, range: start..end, is_exact, process };
            match &beneath.lower {
                Lower::Device(number) => self.add(system, piece(Identity::Device(*number)), None),
                Lower::File(path) => {
                    if let Some(of) = Identity::of(path) {
                        self.add(system, piece(of), Some(path.clone()));
                    }
                }
                Lower::Process(process) => self.add_files_of(system, *process, Access::Read),
            }
        }
    }
}

impl Piece {
    fn whole(of: Identity) -> Self {
        Self { of, range: 0..u64::MAX, is_exact: true, process: None }
    }

    /// Returns whether both have bytes in common. Of two volumes of a disk, and of two files of a server, nothing tells that they
    /// do.
    fn overlaps(&self, other: &Self) -> bool {
        let (one, two) = (&self.range, &other.range);
        let holds =
            |it: &Range<u64>, other: &Range<u64>| it.start <= other.start && other.end <= it.end;
        self.of == other.of
            && (self.process.is_none() || self.process != other.process)
            && match (self.is_exact, other.is_exact) {
                (true, true) => one.start < two.end && two.start < one.end,
                (true, false) => holds(one, two),
                (false, true) => holds(two, one),
                (false, false) => false,
            }
    }
}

/// Devices that are stored in more files and devices are not followed further.
const MAX_PIECES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(range: Range<u64>, is_exact: bool) -> Piece {
        Piece { of: Identity::Device(1), range, is_exact, process: None }
    }

    #[test]
    fn pieces_overlap() {
        let check = |one: &Piece, two: &Piece, expected: bool| {
            assert_eq!(one.overlaps(two), expected, "{one:?} {two:?}");
            assert_eq!(two.overlaps(one), expected, "{two:?} {one:?}");
        };
        check(&piece(0..5, true), &piece(4..6, true), true);
        check(&piece(0..5, true), &piece(5..6, true), false);
        // A volume within a partition, against the disk, the partition, another one and another volume.
        let volume = piece(10..20, false);
        check(&volume, &piece(0..u64::MAX, true), true);
        check(&volume, &piece(10..20, true), true);
        check(&volume, &piece(20..30, true), false);
        check(&volume, &piece(12..14, true), false);
        check(&volume, &volume, false);
        check(&piece(0..5, true), &Piece { of: Identity::File(0, 1), ..piece(0..5, true) }, false);
        let of = |process| Piece { process: Some(process), ..piece(0..5, true) };
        check(&of(1), &of(1), false);
        check(&of(1), &of(2), true);
        check(&of(1), &piece(0..5, true), true);
    }
}
