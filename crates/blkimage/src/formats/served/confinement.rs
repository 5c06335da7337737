//! What a server may do: read the files that it is given and the system's programs, nothing else.
//!
//! The rules are landlock's, made before the fork so that the child has only to enter them. On a
//! kernel without landlock there are none, on an old one fewer. The filter of system calls and the
//! capabilities come from blkconfine, and need no landlock.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};

/// Rules for a server that runs `program` and reads `files`, each of which lies in a file system.
/// None: the kernel knows none.
pub(super) fn rules<F: AsFd>(
    program: &Path,
    files: impl Iterator<Item = F>,
) -> Result<Option<OwnedFd>, RulesetError> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let folders = PROGRAMS.iter().map(Path::new).chain(program.parent());
    let files =
        files.map(|file| Ok(PathBeneath::new(file, AccessFs::ReadFile | AccessFs::IoctlDev)));
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V5))?
        .handle_access(AccessNet::from_all(ABI::V4))?
        .scope(Scope::from_all(ABI::V6))?
        .create()?
        .add_rules(path_beneath_rules(folders, read | AccessFs::Execute))?
        .add_rules(path_beneath_rules(SETTINGS, read))?
        .add_rules::<_, _, AccessFs, RulesetError>(files)?;
    Ok(rules.into())
}

/// Where systems keep programs and their libraries.
const PROGRAMS: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix/store", "/gnu/store"];

/// What the loader and the libraries for encryption look at.
const SETTINGS: [&str; 9] = [
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/gnutls",
    "/etc/crypto-policies",
    "/dev/null",
    "/dev/urandom",
    "/proc/sys/crypto",
];
