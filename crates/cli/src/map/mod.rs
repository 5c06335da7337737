//! Block maps, for the commands that write or read them.
//!
//! [`output`] is the map to write, [`open`] opens maps, and [`change_list`] lists of what changed since one was made.

pub mod change_list;
pub mod open;
pub mod output;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use blkimage::{Location, container_of};

/// Allows this process as many open files as possible. Returns their number, or `None` if there is no limit.
pub fn raise_limit_on_files() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    getrlimit(Resource::Nofile).current
}

/// Returns the name of an image as a path, of which maps have their names. In the name of a disk in a container, a
/// slash is `%2F` and a percent sign `%25`: a container must not choose the folder or the name of a file.
pub fn path_of(image: &OsStr) -> PathBuf {
    let Some(container) = container_of(Path::new(image)) else { return image.into() };
    let (container, disk) = image.as_bytes().split_at(container.as_os_str().len());
    let mut path = container.to_vec();
    for byte in disk {
        match byte {
            b'/' => path.extend(b"%2F"),
            b'%' => path.extend(b"%25"),
            _ => path.push(*byte),
        }
    }
    OsString::from_vec(path).into()
}

/// Returns the name of the file of a URL, of which maps have their names. `None` if it has none that names a file in one folder.
pub fn name_of_url(url: &OsStr) -> Option<OsString> {
    let name = Location::new(url).file_name()?;
    let is_one = !name.as_bytes().contains(&b'/') && !name.as_bytes().contains(&0);
    (is_one && name != "." && name != "..").then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_files_in_the_current_folder() {
        for (url, name) in [
            ("https://h/a/disk.qcow2?x=/y", Some("disk.qcow2")),
            ("https://h/a/..%2F..%2Fetc%2Fpasswd", None),
            ("https://h/a/%2e%2e", None),
            ("https://h/", None),
            ("nbd://h/disk", None),
        ] {
            assert_eq!(name_of_url(OsStr::new(url)), name.map(OsString::from), "{url}");
        }
    }

    #[test]
    fn members_name_no_other_files() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name).into_os_string();
        std::fs::write(file("a.ova"), b"").unwrap();
        for (image, path) in [
            ("a.ova", "a.ova"),
            ("a.ova:d.vmdk", "a.ova:d.vmdk"),
            ("a.ova:sub/victim", "a.ova:sub%2Fvictim"),
            ("a.ova:sub%2Fvictim", "a.ova:sub%252Fvictim"),
            ("a.ova:/../../x", "a.ova:%2F..%2F..%2Fx"),
            ("sub/b:c/d", "sub/b:c/d"),
        ] {
            assert_eq!(path_of(&file(image)), PathBuf::from(file(path)));
        }
    }
}
