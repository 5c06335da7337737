//! The list of mounts, as in Linux.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Major and minor number of its device. Some file systems have an anonymous one.
    pub device: (u32, u32),
    /// The folder of the file system that is mounted.
    pub root: PathBuf,
    /// Where it is mounted.
    pub place: PathBuf,
    /// Name of the file system, such as `ext4`.
    pub kind: String,
    /// The device or whatever else is mounted.
    pub source: PathBuf,
    /// Options of the file system, with the escapes of the list: a value may have a comma.
    pub options: Vec<u8>,
}

/// Returns the mounts of this process, in the order in which they were made.
///
/// # Errors
///
/// Fails if the list cannot be read, as on systems other than Linux.
pub fn mounts() -> io::Result<Vec<Mount>> {
    mounts_in(Path::new(MOUNTS))
}

/// Returns the mount through which `path` is reached, whose links were followed: of the deepest ones the last, which hides the
/// others.
pub fn mount_of<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let at = mounts.iter().filter(|mount| path.starts_with(&mount.place));
    at.max_by_key(|mount| mount.place.components().count())
}

/// Decodes spaces and similar characters, which are octal numbers after a backslash.
pub fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        let digits = tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match byte.filter(|_| first == b'\\') {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    bytes
}

/// Reads a list in the form of mountinfo. Lines that are not understood are left out.
pub(crate) fn mounts_in(list: &Path) -> io::Result<Vec<Mount>> {
    Ok(fs::read(list)?.split(|byte| *byte == b'\n').filter_map(parse).collect())
}

fn parse(line: &[u8]) -> Option<Mount> {
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let end = fields.iter().position(|field| *field == b"-")?;
    let path = |field: &[u8]| PathBuf::from(OsString::from_vec(unescaped(field)));
    let (major, minor) = std::str::from_utf8(fields.get(2)?).ok()?.split_once(':')?;
    Some(Mount {
        device: (major.parse().ok()?, minor.parse().ok()?),
        root: path(fields.get(3)?),
        place: path(fields.get(4)?),
        kind: String::from_utf8_lossy(fields.get(end + 1)?).into_owned(),
        source: path(fields.get(end + 2)?),
        options: fields.get(end + 3)?.to_vec(),
    })
}

const MOUNTS: &str = "/proc/self/mountinfo";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_and_last_mount_counts() {
        let list = b"\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:40 / /mnt/a\\040b rw - btrfs /dev/loop0 rw,space_cache=v2
31 22 0:41 /sub /home rw shared:3 master:1 - btrfs /dev/mapper/x\\134y rw
32 31 0:42 / /home/tmp rw - tmpfs tmpfs rw
33 22 0:43 / /over rw - btrfs /dev/loop1 rw
34 33 0:44 / /over rw - tmpfs tmpfs rw
nonsense
35 22 x:1 / /x rw - ext4 /dev/vdb rw
36 22 8:1 / /short rw -";
        let mounts: Vec<_> = list.split(|byte| *byte == b'\n').filter_map(parse).collect();
        assert_eq!(mounts.len(), 6);
        let source = |path: &str| &mount_of(&mounts, Path::new(path)).unwrap().source;
        assert_eq!(source("/mnt/a b/c"), Path::new("/dev/loop0"));
        assert_eq!(source("/mnt/a"), Path::new("/dev/vda"));
        assert_eq!(source("/home/user"), Path::new("/dev/mapper/x\\y"));
        assert_eq!(source("/homely"), Path::new("/dev/vda"));
        assert_eq!(source("/home/tmp/x"), Path::new("tmpfs"));
        assert_eq!(source("/over/x"), Path::new("tmpfs"));
        assert_eq!((mounts[2].device, &*mounts[2].root), ((0, 41), Path::new("/sub")));
        assert_eq!((&*mounts[1].kind, &*mounts[1].options), ("btrfs", &b"rw,space_cache=v2"[..]));
        assert_eq!(mount_of(&mounts[1..], Path::new("/srv")), None);
    }

    #[test]
    fn escapes() {
        assert_eq!(unescaped(b"a\\040b\\134\\1\\999\\"), b"a b\\\\1\\999\\");
    }
}
