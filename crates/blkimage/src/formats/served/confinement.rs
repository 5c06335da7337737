//! What a server may do: read the files that it is given and the system's programs, nothing else.
//!
//! The rules are landlock's, made before the fork so that the child has only to enter them. On a
//! kernel without landlock there are none, on an old one fewer. The places of programs, the filter of
//! system calls and the capabilities come from blkconfine; the last two need no landlock.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use blkconfine::files;
use landlock::{AccessFs, PathBeneath, RulesetCreatedAttr, RulesetError};

/// Rules for a server that runs `program` and reads `files`, each of which lies in a file system.
/// None: the kernel knows none.
pub(super) fn rules<F: AsFd>(
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
