//! Landlock rules: what a process may open, run and connect to, and where programs of the system lie.
//!
//! A kernel without Landlock makes rules that do nothing, an old one leaves out what it does not know. What
//! a later kernel can restrict in addition stays allowed.

use std::os::fd::OwnedFd;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::retry_on_intr;

/// A path of the system and what is allowed beneath it.
pub type Place = (&'static str, BitFlags<AccessFs>);

/// Rules that refuse everything that Landlock knows.
pub fn ruleset() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(KNOWN))?
        .handle_access(AccessNet::from_all(KNOWN))?
        .scope(Scope::from_all(KNOWN))?
        .create()
}

/// Allows `access` to the file at `path`, or to what lies beneath it. A path that cannot be opened is
/// passed over: each system has only some of the places.
pub fn allow(
    rules: &mut RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<(), RulesetError> {
    let Ok(file) = open(path, OFlags::empty()) else { return Ok(()) };
    rules.add_rule(PathBeneath::new(file, access)).map(|_| ())
}

/// Opens a descriptor for rules, which cannot read the file.
pub fn open(path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let flags = flags | OFlags::PATH | OFlags::CLOEXEC;
    retry_on_intr(|| rustix::fs::openat(CWD, path, flags, Mode::empty()))
}

/// Listing a folder and all beneath it, and reading what is there.
pub fn list() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::ReadDir
}

/// Listing a folder, and reading and running what is beneath it.
pub fn run() -> BitFlags<AccessFs> {
    list() | AccessFs::Execute
}

/// Programs of the system for a process that reads images, loads libraries and starts a server.
pub fn for_reader() -> impl Iterator<Item = Place> {
    let null = ("/dev/null", AccessFs::ReadFile | AccessFs::WriteFile);
    places(&PROGRAMS, run()).chain(places(&SETTINGS, list())).chain([null])
}

/// Programs of the system for a server that such a process starts. They may lie in more places, as the
/// server also runs where its parent is not restricted; `/dev/null` is read only.
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

/// The version that the rules are written for.
const KNOWN: ABI = ABI::V7;

/// Where systems keep programs and libraries.
const PROGRAMS: [&str; 5] = ["/usr", "/lib", "/lib64", "/nix/store", "/gnu/store"];

/// More of these. Where `/bin` is no link into `/usr`, a server can be installed there.
const SERVER_PROGRAMS: [&str; 4] = ["/bin", "/sbin", "/lib32", "/opt"];

/// What programs read before they do anything: where libraries are, settings of GnuTLS, noise.
const SETTINGS: [&str; 4] =
    ["/etc/ld.so.cache", "/etc/gnutls", "/etc/crypto-policies", "/dev/urandom"];

/// What the loader and the libraries for encryption of a server look at in addition.
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

    /// ABI 7 came with nothing to restrict: these are the rights of older versions, one by one.
    #[test]
    fn rights_are_those_of_the_versions_that_brought_them() {
        assert_eq!(AccessFs::from_all(KNOWN), AccessFs::from_all(ABI::V5));
        assert_eq!(AccessNet::from_all(KNOWN), AccessNet::from_all(ABI::V4));
        assert_eq!(Scope::from_all(KNOWN), Scope::from_all(ABI::V6));
    }

    #[test]
    fn servers_write_nothing_and_readers_only_null() {
        let writable = |places: Vec<Place>| {
            let places = places.into_iter();
            places.filter(|(_, access)| !run().contains(*access)).collect::<BTreeMap<_, _>>()
        };
        let null = ("/dev/null", AccessFs::ReadFile | AccessFs::WriteFile);
        assert_eq!(writable(for_reader().collect()), BTreeMap::from([null]));
        assert_eq!(writable(for_server().collect()), BTreeMap::new());
    }
}
