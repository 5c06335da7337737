//! Collects the permissions of a process before they are enforced.

mod images;
mod urls;

use std::collections::HashSet;
use std::error::Error;
use std::io;
use std::iter;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use blkconfine::Families;
use blkconfine::files::{self, list, open};
use blkhttp::HttpOptions;
use blkimage::{Follow, Location, Transport, Uri, container_of, is_container};
use landlock::{
    AccessFs, AccessNet, BitFlags, LandlockStatus, NetPort, PathBeneath, RulesetCreated,
    RulesetCreatedAttr, RulesetError,
};
use rustix::fs::{FileType, OFlags, Stat};
use rustix::io::Errno;

use crate::in_force::{InForce, Landlock, Readable, Reading};
use crate::layers;

/// Permissions that the process keeps after [`enforce`](Self::enforce). Everything else is refused.
pub struct Sandbox {
    /// Rules for Landlock, or the reason why there are none.
    ruleset: io::Result<RulesetCreated>,
    follow: Follow,
    reads_everything: bool,
    folders: HashSet<PathBuf>,
    ports: HashSet<u16>,
    loads_libraries: bool,
    runs_programs: bool,
    /// Whether an image of a format that a program reads allows running programs.
    programs_by_format: bool,
    /// Whether URIs may name files with keys.
    uris_name_files: bool,
    families: Families,
    /// Options for objects at URLs.
    http: HttpOptions,
    /// Whether URIs name sockets that may belong to other users.
    connects_to_others: bool,
    tells_uses: bool,
    shown: Shown,
}

impl Sandbox {
    /// Whether this system can restrict a process.
    pub const IS_SUPPORTED: bool = true;

    /// Creates a sandbox that allows nothing. `follow` is the rule for references of images.
    pub fn new(follow: Follow) -> Self {
        let mut sandbox = Self {
            ruleset: files::ruleset().map_err(reason),
            follow,
            reads_everything: false,
            folders: HashSet::new(),
            ports: HashSet::new(),
            loads_libraries: false,
            runs_programs: false,
            programs_by_format: false,
            uris_name_files: true,
            families: Families::default(),
            http: HttpOptions::default(),
            connects_to_others: false,
            tells_uses: false,
            shown: Shown::default(),
        };
        if follow == Follow::Any {
            sandbox.allow_reading_everything();
        }
        sandbox
    }

    /// Allows reading the image at `path` and the files that the gate may open for it.
    ///
    /// Ignores a path that cannot be found, because opening it later reports the error. A URI is allowed as
    /// [`allow_uri`](Self::allow_uri) does.
    pub fn allow_image(&mut self, path: &Path) {
        if Location::new(path.as_os_str()).is_uri() {
            return self.allow_uri(path.as_os_str().as_bytes());
        }
        if self.reads_everything || self.follow == Follow::None {
            return self.allow_alone(path);
        }
        if let Some(container) = container(path) {
            return self.allow_container(container);
        }
        let Ok(found) = rustix::fs::lstat(path) else { return };
        self.allow_uses(&found);
        let is_link = FileType::from_raw_mode(found.st_mode) == FileType::Symlink;
        // The rule for the folder includes the image. All images of a folder share one rule.
        if !is_link && may_refer(&found) && self.allow_references(path) {
            return;
        }
        let Ok((file, target)) = open_image(path) else { return };
        self.allow_uses(&target);
        if is_link && may_refer(&target) {
            self.allow_references(path);
        }
        self.allow_opened(&file, path);
    }

    /// Allows reading the image at `path`, which refers to no other file.
    pub fn allow_alone(&mut self, path: &Path) {
        if Location::new(path.as_os_str()).is_uri() {
            return self.allow_uri(path.as_os_str().as_bytes());
        }
        if self.reads_everything {
            return;
        }
        if let Some(container) = container(path) {
            return self.allow_container(container);
        }
        let Ok((file, found)) = open_image(path) else { return };
        self.allow_uses(&found);
        self.allow_opened(&file, path);
    }

    /// Allows reading a container: a file, or a folder and all in it. It refers to no other file.
    fn allow_container(&mut self, path: &Path) {
        if let Ok(folder) = open(path, OFlags::DIRECTORY)
            && !holds_devices(&folder)
        {
            self.shown.folder(path);
            self.add(&folder, list());
            self.allow_telling_uses();
        } else if let Ok((file, found)) = open_image(path) {
            self.allow_uses(&found);
            self.allow_opened(&file, path);
        }
    }

    /// Allows reading the file at `path`, such as a key, or the files beneath it if it is a folder.
    pub fn allow_file(&mut self, path: &Path) {
        if let Ok(file) = open(path, OFlags::empty()) {
            self.allow_opened(&file, path);
        }
    }

    /// Allows listing the folder at `path` and its subfolders, and reading the files beneath it.
    pub fn allow_listing(&mut self, path: &Path) {
        if !self.reads_everything
            && let Ok(folder) = open(path, OFlags::DIRECTORY)
        {
            self.shown.folder(path);
            self.add(&folder, list());
            self.allow_telling_uses();
        }
    }

    /// Allows opening standard input again if it is a file, and the files that the gate may open
    /// for it.
    pub fn allow_standard_input(&mut self) {
        let stdin = io::stdin();
        let Ok(found) = rustix::fs::fstat(&stdin) else { return };
        let kind = FileType::from_raw_mode(found.st_mode);
        if !matches!(kind, FileType::RegularFile | FileType::BlockDevice) {
            return;
        }
        self.allow_uses(&found);
        self.shown.file(Path::new("-"));
        self.add(&stdin, AccessFs::ReadFile.into());
        if self.follow == Follow::Beneath
            && may_refer(&found)
            && let Ok(path) = std::fs::read_link("/proc/self/fd/0")
            && rustix::fs::stat(&path).is_ok_and(|named| is_same(&named, &found))
        {
            self.allow_references(&path);
        }
    }

    /// Allows querying where an image is mounted, and how much was written to a device. This is not
    /// queried for files smaller than a file system.
    fn allow_uses(&mut self, found: &Stat) {
        let is_device = FileType::from_raw_mode(found.st_mode) == FileType::BlockDevice;
        if self.reads_everything || !is_device && found.st_size < MIN_FILE_SYSTEM {
            return;
        }
        self.allow_telling_uses();
        if is_device {
            let (major, minor) =
                (rustix::fs::major(found.st_rdev), rustix::fs::minor(found.st_rdev));
            let device = std::fs::canonicalize(format!("/sys/dev/block/{major}:{minor}"));
            let Ok(device) = device else { return };
            // Statistics of a partition are its disk's.
            let disk = device.parent().filter(|_| device.join("partition").exists());
            if let Ok(folder) = open(disk.unwrap_or(&device), OFlags::DIRECTORY) {
                self.add(&folder, list());
            }
        }
    }

    fn allow_telling_uses(&mut self) {
        if !std::mem::replace(&mut self.tells_uses, true) {
            for path in USES {
                self.allow_quietly(path, list());
            }
        }
    }

    /// Allows reading all files, for callers that do not know the names yet.
    pub fn allow_reading_everything(&mut self) {
        if !self.reads_everything
            && let Ok(root) = open(Path::new("/"), OFlags::DIRECTORY)
        {
            self.reads_everything = true;
            self.add(&root, list());
        }
    }

    /// Allows loading the system's libraries, for libnbd.
    pub fn allow_libraries(&mut self) {
        if std::mem::replace(&mut self.loads_libraries, true) {
            return;
        }
        self.families.unix = true;
        for (path, access) in files::for_loader() {
            self.allow_quietly(path, access);
        }
    }

    /// Allows running the system's programs within this sandbox, for qemu-nbd. The process connects to
    /// them with libnbd.
    pub fn allow_programs(&mut self) {
        if std::mem::replace(&mut self.runs_programs, true) {
            return;
        }
        self.allow_libraries();
        for (path, access) in files::for_starter() {
            self.allow_quietly(path, access);
        }
    }

    /// Allows running the program at `path`, which may be outside the system's folders.
    pub fn allow_program(&mut self, path: &Path) {
        self.allow_programs();
        if let Ok(program) = open(path, OFlags::empty()) {
            self.add(&program, AccessFs::ReadFile | AccessFs::Execute);
        }
    }

    /// Allows connecting to the server of an NBD URI or of the URL of an object, and reading the files needed to resolve its
    /// name and to authenticate it. Also allows reading the files that the URI names, if images are
    /// opened with `allow_local_files`.
    pub fn allow_uri(&mut self, text: &[u8]) {
        let uri = std::str::from_utf8(text).ok().and_then(Uri::new);
        if let Some(url) = uri.filter(Uri::is_url) {
            return self.allow_url(url);
        }
        self.allow_libraries();
        // An invalid URI is not opened later either.
        let Some(uri) = uri else { return };
        self.families.hypervisor |= uri.transport() == Transport::Vsock;
        self.connects_to_others |= uri.transport() == Transport::Unix;
        if let Some(port) = uri.port() {
            self.families.internet = true;
            self.allow_connecting(port);
            // Name servers use TCP for answers that are too long for a datagram.
            self.allow_connecting(DNS);
            for path in RESOLVER {
                self.allow_quietly(path, list());
            }
        }
        if uri.is_encrypted() {
            for path in CERTIFICATES {
                self.allow_quietly(path, list());
            }
            let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
            for folder in home.iter().flat_map(|home| HOME_CERTIFICATES.map(|name| (home, name))) {
                self.allow_file(&Path::new(folder.0).join(folder.1));
            }
        }
        if self.uris_name_files {
            for path in uri.files() {
                self.allow_file(&path);
            }
        }
    }

    /// Restricts the process to the files that are open. `None` on a system with rules for files, like this one.
    pub fn keep_open_files() -> Option<io::Result<()>> {
        None
    }

    /// Puts all restrictions in force, and returns the layers in force.
    pub fn enforce(self) -> InForce {
        // All layers need this.
        let no_new_privileges = rustix::thread::set_no_new_privs(true).is_ok();
        let landlock = match self.ruleset.map(restrict) {
            Ok(landlock) => landlock,
            Err(reason) => Landlock::Failed(reason),
        };
        let (system_calls, capabilities) =
            layers::enter(self.families, self.runs_programs, self.connects_to_others);
        let reading = match self.reads_everything {
            true => Reading::Everything,
            false => Reading::Files { names: self.shown.names, others: self.shown.others },
        };
        let mut ports: Vec<u16> = self.ports.into_iter().collect();
        ports.sort_unstable();
        InForce {
            landlock,
            no_new_privileges,
            system_calls,
            capabilities,
            reading,
            runs_programs: self.runs_programs,
            ports,
        }
    }

    /// Allows reading the files beneath the folder of the image at `path`. Returns false if the
    /// folder cannot be opened or contains devices.
    fn allow_references(&mut self, path: &Path) -> bool {
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        if self.folders.contains(folder) {
            return true;
        }
        let Ok(opened) = open(folder, OFlags::DIRECTORY) else { return false };
        if holds_devices(&opened) {
            return false;
        }
        self.shown.folder(folder);
        self.folders.insert(folder.to_owned());
        self.add(&opened, AccessFs::ReadFile.into());
        true
    }

    fn allow_opened(&mut self, file: &OwnedFd, path: &Path) {
        self.shown.file(path);
        self.add(file, AccessFs::ReadFile.into());
    }

    /// Adds a rule for a system file, which is not shown to the user.
    fn allow_quietly(&mut self, path: &str, access: BitFlags<AccessFs>) {
        self.update(|rules| files::allow(rules, Path::new(path), access));
    }

    /// Adds a rule for a file or folder that the user or the environment names, which is not shown.
    fn allow_quietly_at(&mut self, path: &Path) {
        self.update(|rules| files::allow(rules, path, list()));
    }

    fn allow_connecting(&mut self, port: u16) {
        if self.ports.insert(port) {
            self.update(|rules| {
                rules.add_rule(NetPort::new(port, AccessNet::ConnectTcp)).map(|_| ())
            });
        }
    }

    fn add(&mut self, file: impl AsFd, access: BitFlags<AccessFs>) {
        self.update(|rules| rules.add_rule(PathBeneath::new(file, access)).map(|_| ()));
    }

    /// Adds a rule. A missing rule must not block a file that was allowed. If there is no memory
    /// for the rule, Landlock is not used.
    fn update(&mut self, add: impl FnOnce(&mut RulesetCreated) -> Result<(), RulesetError>) {
        let Ok(ruleset) = &mut self.ruleset else { return };
        if let Err(error) = add(ruleset)
            // A file outside any folder, such as a pipe, is never refused and needs no rule.
            && errno(&error) != Some(Errno::BADFD)
        {
            self.ruleset = Err(reason(error));
        }
    }
}

/// Opens an image for a rule. Fails for a folder, because a rule for it would allow all files
/// beneath.
fn open_image(path: &Path) -> rustix::io::Result<(OwnedFd, Stat)> {
    let file = open(path, OFlags::empty())?;
    let found = rustix::fs::fstat(&file)?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory => Err(Errno::ISDIR),
        _ => Ok((file, found)),
    }
}

/// Returns whether a file may be an image that refers to others beneath its folder. Such a file is
/// not empty, as files of procfs appear to be, and can be read at any offset.
fn may_refer(found: &Stat) -> bool {
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => found.st_size > 0,
        FileType::BlockDevice => true,
        _ => false,
    }
}

/// Returns the container of the disk with this name, or the path of a folder that is a container.
fn container(path: &Path) -> Option<&Path> {
    container_of(path).or_else(|| (path.is_dir() && is_container(path)).then_some(path))
}

/// Returns whether a folder contains devices or links to descriptors. An image on a device must not
/// refer to other devices.
fn holds_devices(folder: &OwnedFd) -> bool {
    let path = std::fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    path.is_ok_and(|path| {
        path.starts_with("/dev") && !path.starts_with("/dev/shm") || path.starts_with("/proc")
    })
}

fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

fn restrict(ruleset: RulesetCreated) -> Landlock {
    match ruleset.restrict_self().map(|status| status.landlock) {
        Ok(LandlockStatus::Available { effective_abi, kernel_abi }) => {
            Landlock::Restricted(kernel_abi.unwrap_or(effective_abi as i32))
        }
        Ok(LandlockStatus::NotEnabled) => Landlock::NotEnabled,
        Ok(LandlockStatus::NotImplemented) => Landlock::NotImplemented,
        Err(error) => Landlock::Failed(reason(error)),
    }
}

/// Returns the error number if the failure came from the system, or the whole error.
fn reason(error: RulesetError) -> io::Error {
    errno(&error).map_or_else(|| io::Error::other(error), io::Error::from)
}

fn errno(error: &RulesetError) -> Option<Errno> {
    let first: &dyn Error = error;
    let chain = iter::successors(Some(first), |&error| error.source());
    let mut causes = chain.filter_map(|error| error.downcast_ref::<io::Error>());
    causes.find_map(Errno::from_io_error)
}

/// Readable names to show to the user, limited to the first few.
#[derive(Default)]
struct Shown {
    names: Vec<Readable>,
    others: usize,
}

impl Shown {
    fn folder(&mut self, path: &Path) {
        self.push(|| Readable::Beneath(path.to_owned()));
    }

    fn file(&mut self, path: &Path) {
        self.push(|| Readable::File(path.to_owned()));
    }

    fn push(&mut self, name: impl FnOnce() -> Readable) {
        if self.names.len() == MAX_SHOWN {
            self.others += 1;
        } else {
            self.names.push(name());
        }
    }
}

/// Paths that show how the system uses devices and files: mounts, swap, loop devices and other
/// virtual devices, and the devices of each btrfs.
const USES: [&str; 5] = [
    "/proc/self/mountinfo",
    "/proc/swaps",
    "/sys/block",
    "/sys/devices/virtual/block",
    "/sys/fs/btrfs",
];

/// Smallest file that blkimage checks for a mounted file system.
const MIN_FILE_SYSTEM: i64 = 1 << 20;

/// Files needed to resolve host names.
const RESOLVER: [&str; 7] = [
    "/etc/nsswitch.conf",
    "/etc/host.conf",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/gai.conf",
    "/etc/resolv.conf",
    "/etc/services",
];

/// Certificates of authorities and of libnbd, and the user's name for a shared key.
const CERTIFICATES: [&str; 7] = [
    "/etc/ssl/certs",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust",
    "/etc/pki/libnbd",
    "/etc/passwd",
    "/proc/self/loginuid",
    "/run/utmp",
];

/// Folders for libnbd's certificates in the user's home.
const HOME_CERTIFICATES: [&str; 2] = [".pki/libnbd", ".config/pki/libnbd"];

const DNS: u16 = 53;

/// Maximum number of names to show. A longer list would not help the user.
const MAX_SHOWN: usize = 8;
