//! Permissions of a server process, which may read its files and the system's programs, and nothing else.
//!
//! The rules are for Landlock. They are made before the fork, so that the child only has to apply them.
//! A kernel without Landlock has no rules, and an old kernel has fewer. The paths of programs, the
//! system call filter and the capabilities come from blkconfine. The last two do not need Landlock.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use blkconfine::files;
use landlock::{AccessFs, PathBeneath, RulesetCreatedAttr, RulesetError};

/// Returns rules for a server that runs `program` and reads `files`, each of which is in a file
/// system. Returns `None` if the kernel does not support Landlock.
pub(in crate::formats::served) fn rules<F: AsFd>(
    program: &Path,
    files: impl Iterator<Item = F>,
) -> Result<Option<OwnedFd>, RulesetError> {
    let mut rules = files::ruleset()?;
    let places = files::for_server().map(|(path, access)| (Path::new(path), access));
    for (path, access) in places.chain(program.parent().map(|folder| (folder, files::run()))) {
        files::allow(&mut rules, path, access)?;
    }
    let files =
        files.map(|file| Ok(PathBeneath::new(file, AccessFs::ReadFile | AccessFs::IoctlDev)));
    Ok(rules.add_rules::<_, _, AccessFs, RulesetError>(files)?.into())
}
