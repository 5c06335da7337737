//! References that the gate allows or refuses.

use std::fs;
use std::os::unix::fs::symlink;

use rustix::fs::OFlags;

use super::*;
use crate::storage::Memory;

/// A folder `image/` with an image and files for it to name, and files outside of it.
struct World(tempfile::TempDir);

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::create_dir_all(path.join("image/sub")).unwrap();
        for name in ["image/disk", "image/base", "image/sub/base", "outside", "image/sub/..x"] {
            fs::write(path.join(name), name).unwrap();
        }
        symlink("sub/base", path.join("image/inner-link")).unwrap();
        symlink("../outside", path.join("image/outer-link")).unwrap();
        symlink("..", path.join("image/up")).unwrap();
        symlink("loop", path.join("image/loop")).unwrap();
        symlink("/proc/self/cwd", path.join("image/magic")).unwrap();
        symlink("image", path.join("alias")).unwrap();
        World(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn follow(&self, follow: Follow, image: &str, name: &[u8]) -> Result<String> {
        self.follow_opened(follow, image, name).map(|opened| content(opened.file))
    }

    fn follow_opened(&self, follow: Follow, image: &str, name: &[u8]) -> Result<Opened> {
        let path = self.path(image);
        let reference = Reference { what: "backing file", name };
        let options = OpenOptions::new().follow(follow);
        open(&options, &host_file(&path), &Folder::Of(path), reference)
    }

    #[track_caller]
    fn refused(&self, follow: Follow, name: impl AsRef<[u8]>, says: &str) {
        let error = self.follow(follow, "image/disk", name.as_ref()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Reference);
        assert!(error.to_string().contains(says), "{error}");
        assert!(error.to_string().contains("image/disk: "), "{error}");
    }
}

fn host_file(path: &Path) -> HostFile {
    HostFile::new(path.into(), Box::new(Memory::default()), Default::default())
}

fn content(file: OpenedFile) -> String {
    #[allow(irrefutable_let_patterns, reason = "without http, all files are local")]
    let OpenedFile::Local(mut file) = file else { panic!("is an object") };
    let mut text = String::new();
    io::Read::read_to_string(&mut file, &mut text).unwrap();
    text
}

#[test]
#[cfg_attr(blkhash_portable, should_panic)] // links
fn beneath_allows_files_beneath_the_folder() {
    let world = World::new();
    for (name, found) in [
        ("base", "image/base"),
        ("./base", "image/base"),
        ("sub/base", "image/sub/base"),
        ("sub/../base", "image/base"),
        ("sub/..x", "image/sub/..x"),
        ("inner-link", "image/sub/base"),
    ] {
        let content = world.follow(Follow::Beneath, "image/disk", name.as_bytes());
        assert_eq!(content.unwrap(), found, "{name}");
    }
}

#[test]
#[cfg_attr(blkhash_portable, should_panic)] // links
fn beneath_refuses_what_leads_out() {
    let world = World::new();
    let outside = world.path("outside");
    let says = "leads out of the image's own folder";
    for name in ["../outside", "outer-link", "up/outside", "sub/../../outside", "/etc/passwd"] {
        world.refused(Follow::Beneath, name, says);
    }
    world.refused(Follow::Beneath, outside.as_os_str().as_bytes(), says);
    world.refused(Follow::Beneath, "magic/x", "leads out of");
    world.refused(Follow::Beneath, "loop", "symbolic links");
    world.refused(Follow::Beneath, "sub", "not a regular file");
    world.refused(Follow::Beneath, "", "cannot open");
}

#[test]
#[cfg_attr(blkhash_portable, should_panic)] // links
fn beneath_allows_absolute_names_of_the_folder() {
    let world = World::new();
    for (image, name) in [
        ("image/disk", "image/base"),
        ("alias/disk", "image/base"),
        ("alias/disk", "alias/base"),
        ("image/disk", "image/sub/../base"),
    ] {
        let name = world.path(name);
        let content = world.follow(Follow::Beneath, image, name.as_os_str().as_bytes());
        assert_eq!(content.unwrap(), "image/base");
    }
    let out = world.path("image/../outside");
    world.refused(Follow::Beneath, out.as_os_str().as_bytes(), "leads out of");
    let folder = world.path("image");
    world.refused(Follow::Beneath, folder.as_os_str().as_bytes(), "leads out of");
}

#[test]
fn nested_references_start_at_the_folder_of_the_file_that_names_them() {
    let world = World::new();
    let opened = world.follow_opened(Follow::Beneath, "image/disk", b"sub/base").unwrap();
    let nested = |name| {
        let reference = Reference { what: "backing file", name };
        open(&OpenOptions::new(), &host_file(&opened.name), &opened.folder, reference)
    };
    assert_eq!(content(nested(b"base").unwrap().file), "image/sub/base");
    let error = nested(b"../base").err().unwrap();
    assert!(error.reason().contains("leads out of"), "{error}");
    assert_eq!(nested(b"base").unwrap().name, world.path("image/sub/base"));
}

#[test]
fn any_allows_regular_files_everywhere() {
    let world = World::new();
    for name in ["../outside", "outer-link", "up/outside"] {
        let content = world.follow(Follow::Any, "image/disk", name.as_bytes());
        assert_eq!(content.unwrap(), "outside");
    }
    let outside = world.path("outside");
    let content = world.follow(Follow::Any, "image/disk", outside.as_os_str().as_bytes());
    assert_eq!(content.unwrap(), "outside");
    world.refused(Follow::Any, "/dev/null", "not a regular file");
    world.refused(Follow::Any, "sub", "not a regular file");
    world.refused(Follow::Any, "missing", "cannot open its backing file \"missing\"");
}

#[test]
fn what_is_no_file_is_not_opened() {
    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

    let world = World::new();
    let fifo = world.path("image/fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let watch = inotify::init(CreateFlags::NONBLOCK).unwrap();
    inotify::add_watch(&watch, &fifo, WatchFlags::OPEN).unwrap();
    let mut events = [0; 256];
    for follow in [Follow::Beneath, Follow::Any] {
        world.refused(follow, "fifo", "not a regular file");
    }
    let error = crate::OpenOptions::default().open(&fifo).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Pipe);
    assert_eq!(rustix::io::read(&watch, &mut events), Err(Errno::AGAIN), "it was opened");
    let options = OFlags::RDONLY | OFlags::NONBLOCK;
    rustix::fs::open(&fifo, options, rustix::fs::Mode::empty()).unwrap();
    assert!(rustix::io::read(&watch, &mut events).unwrap() > 0, "nothing watches");
}

#[test]
#[cfg_attr(blkhash_portable, should_panic)] // made-up
fn files_generated_by_the_kernel_are_refused() {
    let world = World::new();
    symlink("/proc/version", world.path("image/version")).unwrap();
    for name in ["/proc/version", "/sys/kernel/uevent_seqnum", "version"] {
        world.refused(Follow::Any, name, "which the kernel makes up");
    }
    let error = crate::OpenOptions::default().open("/proc/version").err().unwrap();
    assert_eq!(error.kind(), ErrorKind::FileType);
    assert!(error.reason().contains("generated by the kernel"), "{error}");
}

#[test]
#[cfg_attr(blkhash_portable, should_panic)] // links
fn a_file_that_is_replaced_while_it_is_opened() {
    let world = World::new();
    let path = world.path("image/base");
    let found = sys::find(&path).unwrap();
    fs::rename(world.path("outside"), &path).unwrap();
    let file = OpenedFile::Local(found.open().unwrap());
    assert_eq!(content(file), "image/base", "what was looked at is opened");
}

#[test]
fn none_allows_nothing() {
    let world = World::new();
    world.refused(Follow::None, "base", "no reference is followed");
    let hint = |follow, name: &[u8]| world.follow(follow, "image/disk", name).unwrap_err().hint();
    assert_eq!(hint(Follow::None, b"base"), Some(Hint::Follow));
    assert_eq!(hint(Follow::Beneath, b"../outside"), Some(Hint::FollowAny));
    assert_eq!(hint(Follow::Beneath, b"sub"), None);
}

#[test]
fn names_that_are_never_followed() {
    let world = World::new();
    for follow in [Follow::Beneath, Follow::Any] {
        world.refused(follow, "json:{\"driver\":\"file\"}", "never followed");
        for name in ["nbd:localhost:10809", "http://host/x", "file:base", "a:b/c", ":base"] {
            world.refused(follow, name, "protocol");
        }
        world.refused(follow, "ba\0se", "NUL");
        world.refused(follow, "./a:b", "cannot open");
        world.refused(follow, "x\x1b[2J\n", "x\\u{1b}[2J\\n");
    }
}

#[test]
fn without_a_folder_references_are_refused() {
    let image = host_file(Path::new("-"));
    for follow in [Follow::Beneath, Follow::Any] {
        let reference = Reference { what: "backing file", name: b"base" };
        let options = OpenOptions::new().follow(follow);
        let error = open(&options, &image, &Folder::Unknown, reference).err().unwrap();
        assert!(error.reason().contains("name the image by its path"), "{error}");
    }
}

#[cfg(feature = "http")]
#[test]
fn objects_beneath_the_folder_of_a_url() {
    // Port 9 has no server: only names that pass the gate get so far.
    let url: Url = "http://127.0.0.1:9/images/disk.qcow2?token=secret".parse().unwrap();
    let image = host_file(Path::new("http://127.0.0.1:9/images/disk.qcow2?token=***"));
    let error = |follow, name: &[u8]| {
        let reference = Reference { what: "backing file", name };
        let mut options = OpenOptions::new().follow(follow);
        options.http.retries = 0;
        open(&options, &image, &Folder::Url(url.clone()), reference).err().unwrap()
    };
    for follow in [Follow::Beneath, Follow::Any] {
        for name in ["base.raw", "./base.raw", "sub/base.raw", "sub//base.raw"] {
            let error = error(follow, name.as_bytes());
            assert!(error.reason().starts_with("cannot open its backing file"), "{name}: {error}");
        }
        for (name, says) in [
            ("/images/base.raw", "leads out of"),
            ("../base.raw", "leads out of"),
            ("sub/../../base.raw", "leads out of"),
            ("%2e%2e/base.raw", "leads out of"),
            ("a%2f..%2fbase.raw", "leads out of"),
            ("http://127.0.0.1:9/images/base.raw", "protocol"),
            ("s3://bucket/base.raw", "protocol"),
            ("file:base.raw", "protocol"),
            ("nbd:127.0.0.1:9", "protocol"),
            ("json:{}", "never followed"),
        ] {
            let error = error(follow, name.as_bytes());
            assert_eq!((error.kind(), error.hint()), (ErrorKind::Reference, None), "{name}");
            assert!(error.reason().contains(says), "{name}: {error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        assert!(error(follow, b"\xff").reason().contains("UTF-8"));
    }
    let refused = error(Follow::None, b"base.raw");
    assert!(refused.reason().contains("no reference is followed"), "{refused}");
}

#[cfg(feature = "http")]
#[test]
fn files_and_objects_name_no_others_of_each_other() {
    let world = World::new();
    for follow in [Follow::Beneath, Follow::Any] {
        for name in ["http://127.0.0.1:9/base", "https://h/base", "s3://bucket/base"] {
            world.refused(follow, name, "protocol");
        }
    }
    let base = world.path("image/base");
    let url: Url = format!("http://127.0.0.1:9{}", base.display()).parse().unwrap();
    let image = host_file(Path::new("http://127.0.0.1:9/disk"));
    let name = base.as_os_str().as_bytes();
    let reference = Reference { what: "backing file", name };
    let options = OpenOptions::new().follow(Follow::Any);
    let error = open(&options, &image, &Folder::Url(url), reference).err().unwrap();
    assert!(error.reason().contains("leads out of"), "{error}");
}
