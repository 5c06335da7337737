//! New files, links, and files of other users.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use super::*;

const FLAGS: OFlags = OFlags::RDWR;

fn refused(name: &Path, named: Named<'_>) -> String {
    match open(name, named, FileMode::PRIVATE, FLAGS) {
        Ok(_) => panic!("{} is opened", name.display()),
        Err(reason) => reason,
    }
}

#[test]
fn links_are_followed_for_names_of_the_user_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("image"), "").unwrap();
    fs::write(path("there"), "kept").unwrap();
    symlink("there", path("link")).unwrap();
    symlink("new", path("dangling")).unwrap();
    symlink("loop", path("loop")).unwrap();
    let image = path("image");
    let after = Named::AfterImage(&image);
    for name in ["link", "dangling", "loop"] {
        assert_eq!(refused(&path(name), after), LINK);
    }
    assert!(!path("new").exists());
    let metadata =
        |name: &str| open(&path(name), Named::ByUser, FileMode::PRIVATE, FLAGS).unwrap().metadata;
    assert_eq!(metadata("link").ino(), fs::metadata(path("there")).unwrap().ino());
    assert_eq!(fs::read(path("there")).unwrap(), b"kept");
    refused(&path("loop"), Named::ByUser);
    refused(&path("none/file"), Named::ByUser);
    refused(&path("folder/"), Named::ByUser);
}

#[test]
fn files_that_others_may_write_are_refused_beside_images() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["image", "map"] {
        fs::write(path(name), "").unwrap();
        fs::set_permissions(path(name), Permissions::from_mode(0o600)).unwrap();
    }
    let image = path("image");
    assert!(open(&path("map"), Named::AfterImage(&image), FileMode::PRIVATE, FLAGS).is_ok());
    fs::set_permissions(path("map"), Permissions::from_mode(0o666)).unwrap();
    assert_eq!(refused(&path("map"), Named::AfterImage(&image)), OTHERS);
    assert!(open(&path("map"), Named::ByUser, FileMode::PRIVATE, FLAGS).is_ok());
}

#[test]
fn new_files_have_the_mode_and_go_unless_they_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["kept", "gone"] {
        let opened = open(&path(name), Named::ByUser, FileMode::PRIVATE, FLAGS).unwrap();
        assert_eq!(opened.metadata.mode() & 0o7777, 0o600);
        if name == "kept" {
            opened.leftover.keep();
        }
    }
    // Another process writes to this one.
    let locked = open(&path("locked"), Named::ByUser, FileMode::PRIVATE, FLAGS).unwrap();
    let other = File::open(path("locked")).unwrap();
    other.try_lock().unwrap();
    // This one has another name by now, and its name another file.
    let moved = open(&path("moved"), Named::ByUser, FileMode::PRIVATE, FLAGS).unwrap();
    fs::rename(path("moved"), path("elsewhere")).unwrap();
    fs::write(path("moved"), "another file").unwrap();
    // A link of the user leads to a new file.
    symlink("new", path("dangling")).unwrap();
    let new = open(&path("dangling"), Named::ByUser, FileMode::PRIVATE, FLAGS).unwrap();
    assert_eq!(new.metadata.ino(), fs::metadata(path("new")).unwrap().ino());
    settle();
    assert!(!path("new").exists());
    assert!(path("kept").exists() && path("locked").exists() && !path("gone").exists());
    assert_eq!(fs::read(path("moved")).unwrap(), b"another file");
    assert!(path("elsewhere").exists());
    drop((locked, moved));
}
