//! Files that are refused. Devices and the commands are tested in tests/copy/test_copy.py.

use std::fs;

use blkimage::Format;
use blksum::{Progress, Tuning};
use tempfile::TempDir;

use super::*;

const NONE: Others<'_> = Others { source: None, files: &[] };

fn open(path: &Path) -> File {
    File::options().read(true).write(true).create(true).truncate(false).open(path).unwrap()
}

/// Opens a place, and returns the reason if it is refused.
fn place(path: &Path, existing: Existing, others: &Others<'_>) -> Result<Place, String> {
    let name = FileName::new(path, existing).map_err(|refused| refused.to_string())?;
    assert!(!name.is_device());
    let is_new = !path.exists();
    name.with_file(open(path), is_new, others).map_err(|refused| refused.to_string())
}

fn refused(path: &Path, existing: Existing, others: &Others<'_>) -> String {
    place(path, existing, others).err().expect("it is refused")
}

fn folder() -> (TempDir, impl Fn(&str, &str) -> PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_owned();
    let file = move |name: &str, content: &str| {
        fs::write(place.join(name), content).unwrap();
        place.join(name)
    };
    (folder, file)
}

#[test]
fn names_and_kinds() {
    let (folder, _) = folder();
    let qcow2 = folder.path().join("disk.QCOW2");
    for existing in [Existing::Refuse, Existing::Update, Existing::Resume] {
        let name = FileName::new(&qcow2, existing);
        assert_eq!(
            name.unwrap_err().to_string(),
            "has the name of a qcow2 image, and the copy is raw"
        );
    }
    assert!(FileName::new(&qcow2, Existing::Overwrite).is_ok());
    assert!(FileName::new(&qcow2.with_extension("raw"), Existing::Refuse).is_ok());
    for path in [folder.path(), Path::new("/dev/null")] {
        assert!(matches!(FileName::new(path, Existing::Overwrite), Err(Refused::Kind)));
    }
    let name = FileName::new(&folder.path().join("new"), Existing::Overwrite).unwrap();
    let null = File::options().read(true).write(true).open("/dev/null").unwrap();
    assert!(matches!(name.with_file(null, false, &NONE), Err(Refused::OtherKind)));
}

#[test]
fn what_a_file_holds_stays() {
    let (_folder, file) = folder();
    let (full, empty) = (file("full", "x"), file("empty", ""));
    assert_eq!(refused(&full, Existing::Refuse, &NONE), "exists");
    for existing in [Existing::Overwrite, Existing::Update, Existing::Resume] {
        place(&full, existing, &NONE).unwrap();
    }
    let place = place(&empty, Existing::Refuse, &NONE).unwrap();
    let (found, options) = (place.found().clone(), OpenOptions::new());
    place.into_destination(None, Zeros::Auto, &options).unwrap();
    found.check_named().unwrap();
    fs::rename(&full, &empty).unwrap();
    assert!(matches!(found.check_named(), Err(Refused::Removed)));
    fs::remove_file(&empty).unwrap();
    assert!(matches!(found.check_named(), Err(Refused::Removed)));
}

#[test]
fn other_files_and_processes() {
    let (_folder, file) = folder();
    let (map, copy) = (file("map", ""), file("copy", ""));
    let files = [(Identity::of(&map).unwrap(), "the file of the map")];
    let others = Others { source: None, files: &files };
    assert_eq!(refused(&map, Existing::Overwrite, &others), "is the file of the map");
    let first = place(&copy, Existing::Overwrite, &others).unwrap();
    assert_eq!(refused(&copy, Existing::Overwrite, &others), "is being written by another process");
    drop(first);
    let image = OpenOptions::new().format(Format::Raw).open(&copy).unwrap();
    let place = place(&copy, Existing::Overwrite, &others).unwrap();
    let destination = place.into_destination(Some(&image), Zeros::Auto, &OpenOptions::new());
    assert!(matches!(destination, Err(Refused::Source)));
}

#[test]
fn copies_without_a_checkpoint() {
    let (folder, file) = folder();
    let (full, new) = (file("full", "x"), folder.path().join("new"));
    let check = |path: &Path, existing| {
        let place = place(path, existing, &NONE).unwrap();
        let found = place.found().clone();
        let destination = place.into_destination(None, Zeros::Auto, &OpenOptions::new()).unwrap();
        let (tuning, progress) = (Tuning::default(), Progress::new());
        let result = found.check_resumed(&*destination, None, 512, &tuning, &progress);
        result.map_err(|refused| refused.to_string())
    };
    let no_checkpoint = "exists, and the map has no checkpoint";
    assert_eq!(check(&full, Existing::Resume), Err(no_checkpoint.to_owned()));
    assert_eq!(check(&full, Existing::Overwrite), Ok(0));
    assert_eq!(check(&new, Existing::Resume), Ok(0));
}

/// Whatever the name of the source is, and whether it must be opened for that.
#[test]
fn the_source_by_other_names() {
    let (folder, file) = folder();
    let (source, other) = (file("source.gz", "x"), file("other", "x"));
    let (hard, soft) = (folder.path().join("hard"), folder.path().join("soft"));
    fs::hard_link(&source, &hard).unwrap();
    std::os::unix::fs::symlink(&source, &soft).unwrap();
    let opened = File::open(&source).unwrap();
    for reading in [Reading::Name(Location::Path(&source)), Reading::File(&opened)] {
        let others = Others { source: Some(reading), files: &[] };
        for name in [&source, &hard, &soft] {
            assert_eq!(refused(name, Existing::Overwrite, &others), "is a file of the source");
        }
        place(&other, Existing::Overwrite, &others).unwrap();
    }
}
