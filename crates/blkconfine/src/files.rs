//! Landlock rules for the files that a process may open, the programs that it may run and the
//! servers that it may connect to, and the locations of the system's programs.
//!
//! Rules have no effect on a kernel without Landlock. An older kernel ignores the rights that it
//! does not know. Rights that a later kernel adds stay allowed.

use std::os::fd::OwnedFd;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::retry_on_intr;

/// A path of the system, and the access allowed beneath it.
pub type Place = (&'static str, BitFlags<AccessFs>);

/// Creates rules that refuse everything that Landlock can restrict.
///
/// # Errors
///
/// Fails if the kernel has Landlock and refuses the rules, for example because no descriptor is free.
pub fn ruleset() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(KNOWN))?
        .handle_access(AccessNet::from_all(KNOWN))?
        .scope(Scope::from_all(KNOWN))?
        .create()
}

/// Allows `access` to the file at `path`, or beneath it if it is a folder. Ignores a path that
/// cannot be opened, because each system has only some of the places.
///
/// # Errors
///
/// Fails if the kernel refuses the rule.
pub fn allow(
    rules: &mut RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<(), RulesetError> {
    let Ok(file) = open(path, OFlags::empty()) else { return Ok(()) };
    rules.add_rule(PathBeneath::new(file, access)).map(|_| ())
}

/// Opens a descriptor that can be used in rules but not for reading.
///
/// # Errors
///
/// Fails if there is no file at `path`, or a folder on the way to it may not be searched.
pub fn open(path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let flags = flags | OFlags::PATH | OFlags::CLOEXEC;
    retry_on_intr(|| rustix::fs::openat(CWD, path, flags, Mode::empty()))
}

/// Access that lists a folder and its subfolders, and reads the files beneath it.
pub fn list() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::ReadDir
}

/// Access that lists a folder, and reads and runs the files beneath it.
pub fn run() -> BitFlags<AccessFs> {
    list() | AccessFs::Execute
}

/// Returns the system's places for a process that reads images and loads libraries.
pub fn for_loader() -> impl Iterator<Item = Place> {
    let null = ("/dev/null", AccessFs::ReadFile | AccessFs::WriteFile);
    places(&PROGRAMS, list()).chain(places(&SETTINGS, list())).chain([null])
}

/// Returns more places for a process that also starts a server.
pub fn for_starter() -> impl Iterator<Item = Place> {
    places(&PROGRAMS, run())
}

/// Returns the system's places for a server that such a process starts. These are more, because a
/// server also runs if its parent is not restricted. `/dev/null` is read-only.
pub fn for_server() -> impl Iterator<Item = Place> {
    places(&PROGRAMS, run())
        .chain(places(&SERVER_PROGRAMS, run()))
        .chain(places(&SETTINGS, list()))
        .chain(places(&SERVER_SETTINGS, list()))
}

fn places(
    paths: &'static [&'static str],
    access: BitFlags<AccessFs>,
) -> impl Iterator<Item = Place> {
    paths.iter().map(move |path| (*path, access))
}

/// Landlock version that the rules are written for.
const KNOWN: ABI = ABI::V7;

/// Folders of programs and libraries.
const PROGRAMS: [&str; 5] = ["/usr", "/lib", "/lib64", "/nix/store", "/gnu/store"];

/// More folders of programs. A server may be installed in `/bin` if that is not a link into `/usr`.
const SERVER_PROGRAMS: [&str; 4] = ["/bin", "/sbin", "/lib32", "/opt"];

/// Files that programs read at start: the cache of libraries, settings of GnuTLS, random bytes.
const SETTINGS: [&str; 4] =
    ["/etc/ld.so.cache", "/etc/gnutls", "/etc/crypto-policies", "/dev/urandom"];

/// Files that the loader and the encryption libraries of a server also read.
const SERVER_SETTINGS: [&str; 5] =
    ["/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/dev/null", "/proc/sys/crypto"];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::fs::{self, File};
    use std::io::ErrorKind::PermissionDenied;
    use std::thread;

    use landlock::LandlockStatus;

    #[test]
    fn only_what_is_allowed_is_opened() {
        let check = || {
            let mut rules = ruleset().unwrap();
            for (path, access) in for_server() {
                allow(&mut rules, Path::new(path), access).unwrap();
            }
            allow(&mut rules, Path::new("/no/such/place"), list()).unwrap();
            rustix::thread::set_no_new_privs(true).unwrap();
            let status = rules.restrict_self().unwrap();
            if !matches!(status.landlock, LandlockStatus::Available { .. }) {
                return;
            }
            fs::read_dir("/usr").unwrap();
            File::open("/dev/null").unwrap();
            assert_eq!(File::create("/dev/null").unwrap_err().kind(), PermissionDenied);
            assert_eq!(File::open("/etc/passwd").unwrap_err().kind(), PermissionDenied);
        };
        thread::spawn(check).join().unwrap();
    }

    /// ABI 7 added nothing to restrict, so these are the rights of the older versions.
    #[test]
    fn rights_match_the_versions_that_added_them() {
        assert_eq!(AccessFs::from_all(KNOWN), AccessFs::from_all(ABI::V5));
        assert_eq!(AccessNet::from_all(KNOWN), AccessNet::from_all(ABI::V4));
        assert_eq!(Scope::from_all(KNOWN), Scope::from_all(ABI::V6));
    }

    #[test]
    fn servers_write_nothing_and_readers_write_only_null() {
        let writable = |places: Vec<Place>| {
            let places = places.into_iter();
            places.filter(|(_, access)| !run().contains(*access)).collect::<BTreeMap<_, _>>()
        };
        let null = ("/dev/null", AccessFs::ReadFile | AccessFs::WriteFile);
        assert_eq!(writable(for_loader().collect()), BTreeMap::from([null]));
        assert_eq!(writable(for_starter().collect()), BTreeMap::new());
        assert_eq!(writable(for_server().collect()), BTreeMap::new());
    }
}
