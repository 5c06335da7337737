//! Access that a process still has in the sandbox. Each test restricts a thread of its own.

#![allow(missing_docs, reason = "a test program")]
#![cfg(not(blkhash_portable))] // sandbox

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind::PermissionDenied, Read};
use std::net::{TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use blkimage::{Follow, NbdOptions, OpenOptions as BlkimageOptions};
use blksandbox::{InForce, Landlock, Readable, Reading, Sandbox, SystemCalls};
use rustix::process::{Pid, test_kill_process};
use tempfile::TempDir;

/// `inside/image`, `inside/base`, `inside/sub/base`, `outside`, and links.
struct World(TempDir);

impl World {
    fn new() -> Self {
        let world = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(world.path("inside/sub")).unwrap();
        for name in ["inside/image", "inside/base", "inside/sub/base", "outside", "target"] {
            fs::write(world.path(name), name).unwrap();
        }
        symlink("../target", world.path("inside/link")).unwrap();
        symlink("gone", world.path("inside/dangling")).unwrap();
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Returns the files that can be opened in a sandbox with `follow` and `allow`.
    fn readable(&self, follow: Follow, allow: impl FnOnce(&mut Sandbox) + Send) -> Vec<&str> {
        let names = ["inside/image", "inside/base", "inside/sub/base", "target", "outside"];
        restricted(follow, allow, |_| {
            let opened = names.into_iter().filter(|name| match File::open(self.path(name)) {
                Ok(mut file) => io::copy(&mut file, &mut io::sink()).unwrap() == name.len() as u64,
                Err(error) => {
                    assert_eq!(error.kind(), PermissionDenied, "{name}");
                    false
                }
            });
            opened.collect()
        })
    }
}

/// Runs `work` in a sandbox, and passes it what is in force.
fn restricted<T: Send>(
    follow: Follow,
    allow: impl FnOnce(&mut Sandbox) + Send,
    work: impl FnOnce(&InForce) -> T + Send,
) -> T {
    let restricted = || {
        let mut sandbox = Sandbox::new(follow);
        allow(&mut sandbox);
        let in_force = sandbox.enforce();
        assert!(in_force.landlock.is_restricted(), "these tests need Landlock: {in_force:?}");
        work(&in_force)
    };
    thread::scope(|scope| scope.spawn(restricted).join().unwrap())
}

fn denied<T>(result: io::Result<T>) -> bool {
    result.is_err_and(|error| error.kind() == PermissionDenied)
}

#[test]
fn nothing_is_allowed_unless_it_is() {
    let world = World::new();
    assert_eq!(world.readable(Follow::Beneath, |_| {}), [""; 0]);
}

#[test]
fn an_image_may_name_what_lies_beneath_its_folder() {
    let world = World::new();
    let beneath = ["inside/image", "inside/base", "inside/sub/base"];
    let image = world.path("inside/image");
    assert_eq!(world.readable(Follow::Beneath, |sandbox| sandbox.allow_image(&image)), beneath);
    // An image that may not refer to others is allowed alone.
    assert_eq!(
        world.readable(Follow::None, |sandbox| sandbox.allow_image(&image)),
        ["inside/image"]
    );
    assert_eq!(
        world.readable(Follow::Beneath, |sandbox| sandbox.allow_alone(&image)),
        ["inside/image"]
    );
    let all = [&beneath[..], &["target", "outside"]].concat();
    assert_eq!(world.readable(Follow::Any, |_| {}), all);
}

#[test]
fn a_link_is_allowed_with_its_own_folder_and_not_that_of_its_target() {
    let world = World::new();
    let (link, dangling) = (world.path("inside/link"), world.path("inside/dangling"));
    assert_eq!(
        world.readable(Follow::Beneath, |sandbox| sandbox.allow_image(&link)),
        ["inside/image", "inside/base", "inside/sub/base", "target"]
    );
    assert_eq!(world.readable(Follow::None, |sandbox| sandbox.allow_image(&link)), ["target"]);
    assert_eq!(world.readable(Follow::Beneath, |sandbox| sandbox.allow_image(&dangling)), [""; 0]);
}

#[test]
fn folder_is_not_an_image() {
    let world = World::new();
    symlink("/", world.path("root")).unwrap();
    for name in ["inside", "inside/", "inside/..", "root", "/"] {
        let path = world.path(name);
        for follow in [Follow::Beneath, Follow::None] {
            let readable = world.readable(follow, |sandbox| {
                sandbox.allow_image(&path);
                sandbox.allow_alone(&path);
            });
            assert_eq!(readable, [""; 0], "{name}");
        }
    }
}

#[test]
fn file_without_references_is_allowed_alone() {
    let world = World::new();
    fs::write(world.path("inside/image"), "").unwrap();
    let image = world.path("inside/image");
    restricted(
        Follow::Beneath,
        |sandbox| sandbox.allow_image(&image),
        |_| {
            File::open(&image).unwrap();
            assert!(denied(File::open(world.path("inside/base"))));
        },
    );
    restricted(
        Follow::Beneath,
        |sandbox| sandbox.allow_image(Path::new("/dev/zero")),
        |_| {
            File::open("/dev/zero").unwrap().read_exact(&mut [0]).unwrap();
            assert!(denied(File::open("/dev/urandom")));
        },
    );
}

#[test]
fn a_folder_is_listed_only_where_that_was_asked_for() {
    let world = World::new();
    let image = world.path("inside/image");
    restricted(
        Follow::Beneath,
        |sandbox| sandbox.allow_image(&image),
        |_| assert!(denied(fs::read_dir(world.path("inside")))),
    );
    restricted(
        Follow::None,
        |sandbox| sandbox.allow_listing(&world.path("inside")),
        |_| {
            assert_eq!(fs::read_dir(world.path("inside")).unwrap().count(), 5);
            assert_eq!(fs::read_dir(world.path("inside/sub")).unwrap().count(), 1);
            assert!(denied(fs::read_dir(world.path("."))));
        },
    );
}

#[test]
fn nothing_is_written_created_or_removed() {
    let world = World::new();
    for follow in [Follow::Beneath, Follow::Any] {
        restricted(
            follow,
            |sandbox| {
                sandbox.allow_image(&world.path("inside/image"));
                sandbox.allow_listing(&world.path("."));
                sandbox.allow_programs();
            },
            |_| {
                let image = world.path("inside/image");
                assert!(denied(OpenOptions::new().write(true).open(&image)));
                assert!(denied(OpenOptions::new().append(true).open(&image)));
                assert!(denied(File::create(world.path("inside/new"))));
                assert!(denied(fs::create_dir(world.path("inside/new"))));
                assert!(denied(symlink("image", world.path("inside/new"))));
                assert!(denied(fs::remove_file(&image)));
                assert!(denied(fs::remove_dir_all(world.path("inside/sub"))));
                assert!(denied(fs::rename(&image, world.path("inside/new"))));
                let linked = fs::hard_link(&image, world.path("inside/sub/new"));
                assert!(linked.is_err());
            },
        );
    }
    assert_eq!(fs::read(world.path("inside/image")).unwrap(), b"inside/image");
}

#[test]
fn programs_run_only_where_that_was_asked_for_and_behind_the_same_rules() {
    let world = World::new();
    let cat = |path: &Path| {
        let mut command = Command::new("/bin/cat");
        command.arg(path).stdin(Stdio::null()).stderr(Stdio::null()).output()
    };
    let image = world.path("inside/image");
    restricted(
        Follow::None,
        |sandbox| sandbox.allow_image(&image),
        |_| assert!(denied(cat(&image))),
    );
    restricted(
        Follow::None,
        |sandbox| {
            sandbox.allow_image(&image);
            sandbox.allow_programs();
        },
        |_| {
            assert_eq!(cat(&image).unwrap().stdout, b"inside/image");
            let other = cat(&world.path("outside")).unwrap();
            assert_eq!((other.status.success(), &other.stdout[..]), (false, &b""[..]));
        },
    );
}

#[test]
fn a_child_can_be_killed() {
    restricted(Follow::None, Sandbox::allow_programs, |_| {
        let mut child = Command::new("/bin/sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
        child.kill().unwrap();
        assert!(!child.wait().unwrap().success());
    });
}

#[test]
fn only_the_servers_of_uris_are_connected_to() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, other) = (server.local_addr().unwrap(), other.local_addr().unwrap());
    let uri = format!("nbd://127.0.0.1:{}/export", address.port());
    let has_network = restricted(
        Follow::Beneath,
        |_| {},
        |in_force| {
            // Landlock restricts no sockets in kernels before 6.7.
            let has_network = abi(in_force) >= 4;
            assert_eq!(denied(TcpStream::connect(address)), has_network);
            assert_eq!(denied(TcpListener::bind("127.0.0.1:0")), has_network);
            has_network
        },
    );
    restricted(
        Follow::Beneath,
        |sandbox| sandbox.allow_uri(uri.as_bytes()),
        |in_force| {
            assert!(in_force.ports.contains(&address.port()), "{in_force:?}");
            TcpStream::connect(address).unwrap();
            assert_eq!(denied(TcpStream::connect(other)), has_network);
            assert_eq!(denied(TcpListener::bind("127.0.0.1:0")), has_network);
            // Needed to resolve host names.
            File::open("/etc/nsswitch.conf").unwrap();
            assert!(denied(File::open("/etc/passwd")));
        },
    );
}

#[test]
fn a_url_opens_ports_and_no_libraries() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, other) = (server.local_addr().unwrap(), other.local_addr().unwrap());
    let world = World::new();
    let files = format!("?tls-psk-file={}", world.path("outside").display());
    let url = format!("http://127.0.0.1:{}/disk.qcow2{files}", address.port());
    restricted(
        Follow::Beneath,
        |sandbox| sandbox.allow_image(Path::new(&url)),
        |in_force| {
            for port in [53, 80, 443, address.port()] {
                assert!(in_force.ports.contains(&port), "{port} {in_force:?}");
            }
            TcpStream::connect(address).unwrap();
            // Landlock restricts no sockets in kernels before 6.7.
            assert_eq!(denied(TcpStream::connect(other)), abi(in_force) >= 4);
            File::open("/etc/nsswitch.conf").unwrap();
            std::fs::read_dir("/etc/ssl/certs").unwrap();
            for path in ["/etc/passwd", "/usr/bin/env", "/etc/ld.so.cache"] {
                assert!(denied(File::open(path)), "{path}");
            }
            assert!(denied(File::open(world.path("outside"))));
        },
    );
}

#[test]
fn only_a_bucket_opens_the_keys_for_it() {
    let world = World::new();
    let authorities = world.path("outside");
    for (url, allowed) in [("https://host/disk", false), ("s3://bucket/disk", true)] {
        thread::scope(|scope| {
            let restricted = || {
                let mut open = BlkimageOptions::new();
                open.http.tls_ca = Some(authorities.clone());
                open.http.s3.endpoint = Some("https://minio.example:9000".to_owned());
                let mut sandbox = Sandbox::for_images(&open);
                sandbox.allow_name(OsStr::new(url));
                let in_force = sandbox.enforce();
                assert!(in_force.landlock.is_restricted(), "{in_force:?}");
                assert_eq!(in_force.ports.contains(&9000), allowed, "{url} {in_force:?}");
                File::open(&authorities).unwrap();
                assert!(denied(File::open(world.path("inside/image"))));
            };
            scope.spawn(restricted).join().unwrap();
        });
    }
}

#[test]
fn keys_named_by_a_uri_are_readable() {
    let world = World::new();
    let (file, folder) = (world.path("outside"), world.path("inside/sub"));
    let uri = format!(
        "nbds+unix:///?socket=/s&tls-psk-file={}&tls-certificates={}",
        file.display(),
        folder.display()
    );
    let readable = world.readable(Follow::Beneath, |sandbox| sandbox.allow_uri(uri.as_bytes()));
    assert_eq!(readable, ["inside/sub/base", "outside"]);
}

#[test]
fn the_uri_of_a_check_file_names_no_keys() {
    let world = World::new();
    let uri = format!("nbds+unix:///?socket=/s&tls-certificates={}", world.path("").display());
    for allow_local_files in [true, false] {
        let readable = thread::scope(|scope| {
            let restricted = || {
                let nbd = NbdOptions::new().allow_local_files(allow_local_files);
                let mut sandbox = Sandbox::for_images(&BlkimageOptions::new().nbd(nbd));
                sandbox.allow_name(OsStr::new(&uri));
                let in_force = sandbox.enforce();
                assert!(
                    in_force.landlock.is_restricted(),
                    "these tests need Landlock: {in_force:?}"
                );
                File::open(world.path("outside")).is_ok()
            };
            scope.spawn(restricted).join().unwrap()
        });
        assert_eq!(readable, allow_local_files);
    }
}

#[test]
fn no_new_privileges() {
    restricted(
        Follow::None,
        |sandbox| sandbox.allow_file(Path::new("/proc/thread-self/status")),
        |_| {
            let status = fs::read_to_string("/proc/thread-self/status").unwrap();
            assert!(status.contains("NoNewPrivs:\t1\n"), "{status}");
        },
    );
}

/// Runs `tests/helpers/forbidden.py` in a sandbox. Returns the result of each call by its name.
fn tried(allow: impl FnOnce(&mut Sandbox) + Send) -> BTreeMap<String, String> {
    let world = World::new();
    let image = world.path("inside/image");
    let output = restricted(
        Follow::None,
        |sandbox| {
            sandbox.allow_image(&image);
            sandbox.allow_programs();
            allow(sandbox);
        },
        |in_force| {
            assert!(matches!(in_force.system_calls, SystemCalls::Filtered), "{in_force:?}");
            assert!(in_force.no_new_privileges && in_force.capabilities.is_ok(), "{in_force:?}");
            let mut python = Command::new("/usr/bin/python3");
            python.args(["-I", "-c", include_str!("../../../tests/helpers/forbidden.py")]);
            python.arg(&image).stdin(Stdio::null()).output().unwrap()
        },
    );
    let lines = String::from_utf8(output.stdout).unwrap();
    let split = |line: &str| line.split_once(": ").map(|(a, b)| (a.to_owned(), b.to_owned()));
    let tried: BTreeMap<_, _> = lines.lines().map(|line| split(line).unwrap()).collect();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    tried
}

/// Calls that are allowed if a URI names a server of that kind.
const NETWORK: [&str; 5] = ["udp", "tcp", "route", "vsock", "unix"];

#[test]
fn no_call_changes_files_the_system_or_other_processes() {
    let mut tried = tried(|_| {});
    for name in NETWORK.iter().chain(&["socketpair", "capabilities"]) {
        tried.remove(*name).unwrap();
    }
    assert!(tried.len() > 75, "{tried:?}");
    for (name, result) in tried {
        let expected = match &name[..] {
            // Fails as in a kernel without these calls.
            "clone3" | "a call of the future" => "ENOSYS",
            _ => "EPERM",
        };
        assert_eq!(result, expected, "{name}");
    }
}

#[test]
fn sockets_are_those_of_the_uris() {
    for (uri, allowed) in [
        ("", &["unix"][..]),
        ("nbd+unix:///?socket=/s", &["unix"]),
        ("nbd+vsock://2", &["unix", "vsock"]),
        ("nbd://host", &["unix", "udp", "tcp", "route"]),
        ("https://host/disk", &["unix", "udp", "tcp", "route"]),
    ] {
        let tried = tried(|sandbox| sandbox.allow_uri(uri.as_bytes()));
        for name in NETWORK {
            let found = tried[name] != "EPERM";
            assert_eq!(found, allowed.contains(&name), "{uri:?} {name}: {}", tried[name]);
        }
    }
}

#[test]
fn only_capabilities_for_reading_are_left() {
    const READING: u64 = 1 << 2 | 1 << 3;
    const ANY_SOCKET: u64 = 1 << 1;
    for (uri, kept) in [("", READING), ("nbd+unix:///?socket=/s", READING | ANY_SOCKET)] {
        let tried = tried(|sandbox| sandbox.allow_uri(uri.as_bytes()));
        let sets: Vec<_> = tried["capabilities"]
            .split(' ')
            .map(|set| u64::from_str_radix(set, 16).unwrap())
            .collect();
        // Capabilities of an executed program. Without the sandbox, root would gain some here.
        let [effective, permitted, inheritable, ambient] = sets[..] else { panic!("{sets:?}") };
        let is_root = rustix::process::geteuid().is_root();
        let expected = if is_root { kept } else { 0 };
        assert_eq!((effective, permitted), (expected, expected));
        assert_eq!((inheritable, ambient), (0, 0));
    }
}

/// Returns the version of Landlock's interface that is in force.
fn abi(in_force: &InForce) -> i32 {
    let Landlock::Restricted(abi) = in_force.landlock else { panic!("{in_force:?}") };
    abi
}

#[test]
fn other_processes_have_no_signals_and_no_connections_from_here() {
    let mut other = Command::new("/bin/sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
    let pid = Pid::from_child(&other);
    let name = format!("blkhash-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(name).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    restricted(Follow::None, Sandbox::allow_programs, |in_force| {
        let is_scoped = abi(in_force) >= 6;
        assert_eq!(denied(UnixStream::connect_addr(&address)), is_scoped);
        assert_eq!(denied(test_kill_process(pid).map_err(Into::into)), is_scoped);
    });
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn devices_take_no_requests() {
    restricted(
        Follow::None,
        |sandbox| {
            sandbox.allow_image(Path::new("/dev/zero"));
            sandbox.allow_programs();
        },
        |in_force| {
            // TCGETS, which a terminal supports and this device does not.
            let code = "import fcntl; fcntl.ioctl(open('/dev/zero'), 0x5401, bytes(64))";
            let mut python = Command::new("/usr/bin/python3");
            let output = python.args(["-I", "-c", code]).stdin(Stdio::null()).output().unwrap();
            let errors = String::from_utf8(output.stderr).unwrap();
            let expected = if abi(in_force) >= 5 { "PermissionError" } else { "OSError" };
            assert!(errors.contains(expected), "{errors}");
        },
    );
}

/// docs/reference/security.md lists these.
#[test]
fn what_stays_open() {
    let world = World::new();
    let path = world.path("socket");
    let _listener = UnixListener::bind(&path).unwrap();
    restricted(Follow::None, Sandbox::allow_programs, |_| {
        assert_eq!(fs::metadata(world.path("outside")).unwrap().len(), 7);
        UnixStream::connect(&path).unwrap();
    });
    // If programs and servers are not allowed, sockets are refused.
    restricted(Follow::None, |_| {}, |_| assert!(denied(UnixStream::connect(&path))));
}

#[test]
fn only_the_first_names_are_shown() {
    let world = World::new();
    for number in 0..1000 {
        fs::write(world.path(&format!("inside/{number}")), "x").unwrap();
    }
    restricted(
        Follow::None,
        |sandbox| (0..1000).for_each(|n| sandbox.allow_image(&world.path(&format!("inside/{n}")))),
        |in_force| {
            let Reading::Files { names, others } = &in_force.reading else {
                panic!("{in_force:?}")
            };
            let first = Readable::File(world.path("inside/0"));
            assert_eq!((names.len(), &names[0], *others), (8, &first, 992));
            File::open(world.path("inside/999")).unwrap();
            assert!(denied(File::open(world.path("inside/base"))));
        },
    );
}
