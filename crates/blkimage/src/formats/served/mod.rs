//! Images of other formats, served by a private `qemu-nbd`.
//!
//! The files that an image names are opened through the gate first, as for other images. QEMU gets
//! descriptors of open files, with an explicit driver for every node ([`node`]), over connections that
//! are made before it starts. The program runs confined ([`confined`]) and is killed when this process
//! ends. It creates nothing with a name, so nothing remains.

mod command;
// The only system that can confine a server.
#[cfg(all(target_os = "linux", not(blkhash_portable)))]
mod confined;
#[cfg(not(all(target_os = "linux", not(blkhash_portable))))]
#[path = "unconfined.rs"]
mod confined;
mod node;
mod whole;

use std::ffi::{CString, OsStr};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use self::command::Command;
use self::confined::{Filter, Process};
use self::node::{FileNode, Node};

use crate::chain::{Candidate, Chain, OpenedLayer};
use crate::error::{Error, ErrorKind, Result, excerpt};
use crate::formats::raw::Raw;
use crate::formats::vmdk;
use crate::hint::Hint;
use crate::layer::{GuestRange, Layer, Mapping, Purpose};
use crate::options::{DEFAULT_MAX_ZEROS, OpenOptions, Reader, VpcSize};
use crate::probe::Format;
use crate::storage::nbd::Nbd;
use crate::storage::{HostFile, ReadMethod, Storage};
use crate::{Extent, sys};

/// An image that a server reads, with everything beneath it. The last layer of a chain.
pub(crate) struct Served {
    /// The guest content, over the connections.
    raw: Raw,
    /// Files that the server reads: the image, the files that it names, and so on down the chain.
    files: Vec<Arc<HostFile>>,
}

/// Opens a file as an image that a server reads, with everything beneath it.
///
/// QEMU reads zeros where an image was cut off. An image of a native format is therefore opened first
/// like any other, which also finds the files that it names, and its tables are walked.
pub(crate) fn open(chain: &mut Chain<'_>, top: &Candidate) -> Result<OpenedLayer> {
    if let Err(reason) = confined::check() {
        return Err(top.file.error(ErrorKind::Unsupported, reason));
    }
    let mut export = Export::new(chain.options);
    let mut below: Option<Candidate> = None;
    loop {
        let image = below.as_ref().unwrap_or(top);
        chain.check_length(&image.file, export.depth())?;
        if let Some(member) = chain.members.last_mut() {
            member.is_served = true;
        }
        let backing = match super::open_native(chain, image) {
            None => {
                whole::check(&image.file, image.format)?;
                None
            }
            Some(opened) => {
                let OpenedLayer { layer, backing } = opened?;
                check_complete(&*layer)?;
                backing
            }
        };
        let others = chain.members.last().map_or(&[][..], |member| &member.files[1..]);
        let vpc_sizes = chain.members.last().and_then(|member| member.vpc_sizes);
        export.push(image, others, vpc_sizes.map(|sizes| sizes.read))?;
        let Some(backing) = backing else { break };
        let image = chain.follow_backing(image, backing)?;
        chain.add_image(&image);
        below = Some(image);
    }
    let served = export.start(chain.bytes_read.clone())?;
    if !top.format.is_native() {
        served.check_zeros(&top.file, chain.options.max_zeros)?;
    }
    Ok(OpenedLayer { layer: Box::new(served), backing: None })
}

impl Served {
    /// Fails if an image whose empty ranges are unknown, and which is therefore read in full, has far
    /// more content than its files can hold.
    fn check_zeros(&self, top: &HostFile, limit: Option<u64>) -> Result<()> {
        let stored: u64 = self.files.iter().map(|file| file.size()).fold(0, u64::saturating_add);
        let size = self.raw.size();
        if size.saturating_sub(stored) <= limit.unwrap_or(DEFAULT_MAX_ZEROS) {
            return Ok(());
        }
        let reason = format!(
            "has {size} bytes of content and stores {stored}: all of it would be read, since its \
             format does not tell where it is empty"
        );
        Err(top.error(ErrorKind::Size, reason).with_hint(Hint::MaxZeros))
    }
}

impl Layer for Served {
    fn size(&self) -> u64 {
        self.raw.size()
    }

    fn map(&self, range: GuestRange, purpose: Purpose) -> Result<Mapping<'_>> {
        self.raw.map(range, purpose)
    }

    fn files(&self) -> Vec<&HostFile> {
        self.files.iter().map(|file| &**file).collect()
    }

    fn granularity(&self) -> u64 {
        let files = self.files.iter().map(|file| file.granularity());
        files.fold(self.raw.granularity(), u64::max)
    }

    fn queue_depth(&self) -> usize {
        let files = self.files.iter().map(|file| file.queue_depth());
        files.fold(self.raw.queue_depth(), usize::max)
    }

    fn check_unchanged(&self) -> Result<()> {
        self.raw.check_unchanged()?;
        self.files.iter().try_for_each(|file| file.check_unchanged())
    }
}

/// Fails if an image leads to bytes that its files do not have, where QEMU would read zeros.
fn check_complete(layer: &dyn Layer) -> Result<()> {
    let mut offset = 0;
    while offset < layer.size() {
        let left = layer.size() - offset;
        // Runs that lead to no bytes may be joined.
        let range = GuestRange { offset, limit: left, far: left, is_lowest: true };
        offset += layer.map(range, Purpose::Read)?.length;
    }
    Ok(())
}

/// The files and nodes for a server, from the image down.
struct Export<'a> {
    options: &'a OpenOptions,
    nodes: Vec<Node>,
    files: Vec<Arc<HostFile>>,
    /// Descriptors that the server inherits.
    given: Vec<Given>,
}

struct Given {
    fd: OwnedFd,
    /// Name of the file, or `None` for a file in memory.
    name: Option<PathBuf>,
}

impl<'a> Export<'a> {
    pub fn new(options: &'a OpenOptions) -> Self {
        Self { options, nodes: Vec::new(), files: Vec::new(), given: Vec::new() }
    }

    /// Returns the number of images.
    pub fn depth(&self) -> usize {
        self.nodes.len()
    }

    /// Adds an image beneath the existing ones. `others` are the other files that hold it, each once, in the
    /// order in which it names them. `vpc_size` is the size that a vpc image has, if there is a choice.
    pub fn push(
        &mut self,
        image: &Candidate,
        others: &[Arc<HostFile>],
        vpc_size: Option<VpcSize>,
    ) -> Result<()> {
        let (file, format) = (&image.file, image.format);
        let nodes = others.iter().map(|file| self.give_file(file)).collect::<Result<Vec<_>>>()?;
        let description = match format {
            Format::Vmdk => vmdk::description_of_others(file)?,
            _ => None,
        };
        let node = match description {
            None => {
                let data_file = nodes.first().copied();
                Node { data_file, ..Node::new(format, self.give_file(file)?) }
            }
            Some(description) => {
                // One file may hold several extents.
                let mut names: Vec<&[u8]> = Vec::new();
                let extents = description.extents.iter().map(|extent| {
                    let known = names.iter().position(|name| *name == extent.name);
                    nodes[known.unwrap_or_else(|| {
                        names.push(&extent.name);
                        names.len() - 1
                    })]
                });
                let extents: Vec<_> = extents.collect();
                let paths: Vec<_> = extents.iter().map(FileNode::path).collect();
                let given = self.give_bytes("descriptor", description.render(&paths).as_bytes());
                let given = given.map_err(|error| cannot_start(file).because(error))?;
                Node { extents, ..Node::new(format, given) }
            }
        };
        self.nodes.push(Node { vpc_size, ..node });
        self.files.push(file.clone());
        self.files.extend_from_slice(others);
        Ok(())
    }

    /// Starts the server and connects to it. There is at least one image.
    pub fn start(mut self, bytes_read: Arc<AtomicU64>) -> Result<Served> {
        let top = self.files[0].clone();
        let failed = |error: io::Error| cannot_start(&top).because(error);
        let program = find_program(self.options, &top)?;
        let mut arguments = vec!["--read-only".to_owned()];
        if let Some(encrypted) = self.nodes.iter().position(|node| node.format == Format::Luks) {
            let Some(secret) = self.options.secret.clone() else {
                let what = if encrypted == 0 { "is" } else { "has a backing file that is" };
                let reason = format!("{what} encrypted (luks), and there is no secret");
                return Err(top.error(ErrorKind::Unsupported, reason).with_hint(Hint::Secret));
            };
            let file = self.give_bytes("secret", secret.bytes()).map_err(failed)?;
            arguments.push("--object".into());
            arguments.push(format!("secret,id={},file={}", node::SECRET_ID, file.path()));
        }

        let connections = self.options.nbd.connections.clamp(1, MAX_CONNECTIONS);
        let sockets = confined::connected(connections).map_err(failed)?;
        arguments.push(format!("--shared={connections}"));
        let image = self.nodes.drain(..).rev().reduce(|below, mut node| {
            node.backing = Some(Box::new(below));
            node
        });
        let image = image.map_or_else(String::new, |node| node.to_argument());
        arguments.push(image.clone());

        let on_disk = self.given.iter().filter(|given| given.name.is_some());
        let rules = confined::rules(&program, on_disk.map(|given| &given.fd))
            .map_err(|error| failed(io::Error::other(error)))?;
        let (files, names) = self
            .given
            .into_iter()
            .map(|Given { fd, name }| {
                let path = format!("/dev/fd/{}", fd.as_raw_fd());
                (fd, (path, name))
            })
            .unzip();
        let process = Process::start(Command {
            arguments: c_strings(&program, arguments).map_err(failed)?,
            program: CString::new(program.as_os_str().as_bytes())
                .map_err(io::Error::from)
                .map_err(failed)?,
            environment: environment(),
            listener: sockets.listener,
            files,
            rules,
            filter: Filter::for_server(),
        })
        .map_err(|error| {
            let reason = format!("cannot run {}", excerpt(program.as_os_str().as_bytes()));
            top.error(ErrorKind::Server, reason).because(error)
        })?;
        let server = Server { process, program, image, names };
        let nbd = Nbd::from_sockets(top.name(), sockets.clients, &self.options.nbd);
        let nbd = nbd.map_err(|error| {
            let reason = match (server.last_words(LAST_WORDS), error.io_error()) {
                (Some(words), _) => words,
                (None, Some(source)) => format!("{}: {source}", error.reason()),
                (None, None) => error.reason().to_owned(),
            };
            top.error(ErrorKind::Server, format!("cannot be opened: {reason}"))
        })?;
        let storage = Box::new(Connected { nbd, server });
        let file = HostFile::new(top.name().into(), storage, bytes_read);
        Ok(Served { raw: Raw::new(Arc::new(file), 0), files: self.files })
    }

    fn give_file(&mut self, file: &HostFile) -> Result<FileNode> {
        let Some(descriptor) = file.descriptor() else {
            if file.read_method() == ReadMethod::Http {
                let reason = "has a format that qemu-nbd reads, which needs a file of this host";
                let error = file.error(ErrorKind::Unsupported, reason);
                return Err(error.with_hint(Hint::Download));
            }
            let reason = "cannot be passed to qemu-nbd, because it is not a file of its own";
            return Err(file.error(ErrorKind::Format, reason));
        };
        self.give(descriptor, Some(file.name())).map_err(|error| cannot_start(file).because(error))
    }

    /// Creates a file in memory that can no longer be changed.
    fn give_bytes(&mut self, name: &str, bytes: &[u8]) -> io::Result<FileNode> {
        let mut file = confined::memory(name, bytes.len())?;
        file.write_all(bytes)?;
        confined::seal(&file)?;
        self.give(file.as_fd(), None)
    }

    fn give(&mut self, file: BorrowedFd<'_>, name: Option<&Path>) -> io::Result<FileNode> {
        let fd = confined::out_of_the_way(file)?;
        let is_device = sys::stamp(&fd)?.node_type == sys::NodeType::BlockDevice;
        let node = FileNode { fd: fd.as_raw_fd(), is_device, is_direct: sys::is_direct(&fd) };
        self.given.push(Given { fd, name: name.map(Path::to_path_buf) });
        Ok(node)
    }
}

/// A connection and the server at its other end.
struct Connected {
    // First, so that it is closed before the server is killed.
    nbd: Nbd,
    server: Server,
}

impl Connected {
    fn explain(&self, error: io::Error) -> io::Error {
        match self.server.last_words(LAST_WORDS) {
            Some(words) => io::Error::new(error.kind(), format!("{error}: {words}")),
            None => error,
        }
    }
}

impl Storage for Connected {
    fn size(&self) -> u64 {
        self.nbd.size()
    }

    fn read_at_most(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.nbd.read_at_most(buf, offset).map_err(|error| self.explain(error))
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.nbd.read_exact_at(buf, offset).map_err(|error| self.explain(error))
    }

    fn extent(&self, offset: u64, limit: u64) -> io::Result<Extent> {
        self.nbd.extent(offset, limit).map_err(|error| self.explain(error))
    }

    fn changed(&self) -> Option<String> {
        self.nbd.changed()
    }

    fn granularity(&self) -> u64 {
        self.nbd.granularity()
    }

    fn queue_depth(&self) -> usize {
        self.nbd.queue_depth()
    }

    fn will_need(&self, offset: u64, length: u64) {
        self.nbd.will_need(offset, length);
    }

    fn read_ahead(&self) -> u64 {
        self.nbd.read_ahead()
    }
}

/// A server process, with the names that its messages use.
struct Server {
    process: Process,
    program: PathBuf,
    /// Description of the image.
    image: String,
    /// Paths in the child, and the names of the files to which they refer.
    names: Vec<(String, Option<PathBuf>)>,
}

impl Server {
    /// Returns the last messages of the server, or its exit status if there are none. Waits up to
    /// `limit` for it to exit, and returns `None` if it is still running.
    fn last_words(&self, limit: Duration) -> Option<String> {
        let status = self.process.ended(limit)?;
        let words = String::from_utf8_lossy(&self.process.words()).into_owned();
        let program = self.program.file_name().unwrap_or(OsStr::new("")).to_string_lossy();
        let lines = words.lines().filter_map(|line| {
            let line = line
                .strip_prefix(&*program)
                .and_then(|rest| rest.strip_prefix(": "))
                .unwrap_or(line);
            let line = line
                .strip_prefix("Failed to blk_new_open '")
                .and_then(|rest| rest.strip_prefix(&*self.image))
                .and_then(|rest| rest.strip_prefix("': "))
                .unwrap_or(line);
            let is_noise = NOISE.iter().any(|noise| line.contains(noise));
            let line = line.trim();
            (!line.is_empty() && !is_noise).then_some(line)
        });
        let mut text = lines.collect::<Vec<_>>().join("; ");
        // Longer paths first, because one may be a prefix of another.
        for (path, name) in self.names.iter().rev() {
            let name = name.as_deref().map_or("its descriptor".into(), Path::to_string_lossy);
            text = text.replace(path.as_str(), &name);
        }
        let ending = format!("{program} ended with {status}");
        Some(if text.is_empty() {
            ending
        } else {
            excerpt(format!("{program}: {text}").as_bytes())
        })
    }
}

fn cannot_start(file: &HostFile) -> Error {
    file.error(ErrorKind::Server, "cannot be handed to qemu-nbd")
}

/// Returns the path of the requested program, or of the installed `qemu-nbd`.
fn find_program(options: &OpenOptions, file: &HostFile) -> Result<PathBuf> {
    let name = options.nbd_server.as_deref().unwrap_or(Path::new(DEFAULT_SERVER));
    let error = |reason: String| file.error(ErrorKind::Server, reason);
    let found = if name.as_os_str().as_bytes().contains(&b'/') {
        name.to_path_buf()
    } else {
        let path = std::env::var_os("PATH").unwrap_or(DEFAULT_PATH.into());
        let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
        let candidates =
            folders.filter(|folder| folder.is_absolute()).map(|folder| folder.join(name));
        candidates.into_iter().find(|path| sys::is_executable(path).is_ok()).ok_or_else(|| {
            let program = excerpt(name.as_os_str().as_bytes());
            let hint = match options.reader {
                Reader::Auto => Hint::Raw,
                Reader::Qemu => Hint::Reader,
            };
            error(format!(
                "needs {program}, which is not installed (Debian and Ubuntu have it in qemu-utils, \
                 Fedora in qemu-img)"
            ))
            .with_hint(hint)
        })?
    };
    let cannot = |e: io::Error| {
        error(format!("cannot run {}", excerpt(found.as_os_str().as_bytes()))).because(e)
    };
    sys::is_executable(&found).map_err(cannot)?;
    found.canonicalize().map_err(cannot)
}

fn c_strings(program: &Path, arguments: Vec<String>) -> io::Result<Vec<CString>> {
    let name = CString::new(program.as_os_str().as_bytes()).map_err(io::Error::from);
    let rest =
        arguments.into_iter().map(|argument| CString::new(argument).map_err(io::Error::from));
    std::iter::once(name).chain(rest).collect()
}

/// Returns the environment of the child, which needs only these variables.
fn environment() -> Vec<CString> {
    let mut path = b"PATH=".to_vec();
    path.extend(std::env::var_os("PATH").unwrap_or(DEFAULT_PATH.into()).as_bytes());
    [CString::new(path), CString::new("LC_ALL=C")].into_iter().flatten().collect()
}

/// Messages of QEMU to omit: about modules that are not installed, and about connections that failed
/// along with the first.
const NOISE: [&str; 2] = ["install qemu-block-extra", "Unable to write to socket"];

const DEFAULT_SERVER: &str = "qemu-nbd";
const DEFAULT_PATH: &str = "/usr/bin:/bin";

/// Maximum number of connections. More gain nothing, because the server answers from one thread.
const MAX_CONNECTIONS: usize = 8;

/// Time in which a server that closed its connections should exit.
const LAST_WORDS: Duration = Duration::from_millis(500);
