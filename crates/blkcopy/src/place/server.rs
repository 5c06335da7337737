//! The processes that serve exports of NBD servers of this host, and the files that they have open, as far as procfs
//! shows them.

use std::ffi::OsStr;
use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use blkimage::{Identity, Uri};

/// What is done with an export, which decides which files of its server are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

/// The server of an export.
#[derive(Clone, Debug)]
pub struct Server {
    address: Address,
    export: String,
    /// The processes that listen there, on this host.
    pub processes: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Address {
    Socket(Identity),
    /// The host is empty for this one.
    Port(String, u16),
}

/// An open file.
pub struct OpenFile {
    pub identity: Identity,
    pub path: PathBuf,
}

impl Server {
    /// Returns whether both are one export of one server.
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.address, &self.export) == (&other.address, &other.export)
    }
}

/// Returns the server of an export. `None` if the transport tells nothing of it.
pub fn of_uri(uri: &Uri<'_>) -> Option<Server> {
    let export = uri.export().to_owned();
    if let Some(socket) = uri.socket() {
        let socket = fs::canonicalize(&socket).unwrap_or(socket);
        let address = Address::Socket(Identity::of(&socket)?);
        return Some(Server { processes: listeners_at(&socket), address, export });
    }
    let (host, port) = (uri.host()?.to_ascii_lowercase(), uri.port()?);
    let (host, inodes) = match is_here(&host) {
        true => (String::new(), listening_on(port)),
        false => (host, Vec::new()),
    };
    Some(Server { address: Address::Port(host, port), export, processes: holders(&inodes) })
}

/// Returns the regular files and block devices that a process has open: all of them, or those that it may write to.
pub fn files_of(process: u32, access: Access) -> Vec<OpenFile> {
    let place = PathBuf::from(format!("/proc/{process}"));
    let entries = fs::read_dir(place.join("fd")).into_iter().flatten().flatten();
    let files = entries.filter_map(|entry| {
        let path = fs::read_link(entry.path()).ok().filter(|path| path.is_absolute())?;
        let metadata = fs::metadata(entry.path()).ok()?;
        let identity = Identity::new(&metadata);
        if !metadata.is_file() && !matches!(identity, Identity::Device(_)) {
            return None;
        }
        if access == Access::Write {
            let info = fs::read_to_string(place.join("fdinfo").join(entry.file_name())).ok()?;
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
            let flags = u32::from_str_radix(flags.trim(), 8).ok()?;
            if flags & ACCESS == 0 {
                return None;
            }
        }
        Some(OpenFile { identity, path })
    });
    files.chain(files_to_open(process, access)).collect()
}

/// Returns the files that the command line of an nbdkit names, which opens them for each client.
fn files_to_open(process: u32, access: Access) -> Vec<OpenFile> {
    let place = PathBuf::from(format!("/proc/{process}"));
    let line = fs::read(place.join("cmdline")).unwrap_or_default();
    let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
    let is_nbdkit = Path::new(OsStr::from_bytes(words[0])).file_name() == Some("nbdkit".as_ref());
    let is_kept = words.iter().any(|word| READ_ONLY.contains(word));
    if !is_nbdkit || access == Access::Write && is_kept {
        return Vec::new();
    }
    let cwd = fs::read_link(place.join("cwd")).unwrap_or_default();
    let files = words[1..].iter().filter_map(|word| {
        let value = word.iter().position(|byte| *byte == b'=').map_or(0, |at| at + 1);
        let path = fs::canonicalize(cwd.join(OsStr::from_bytes(&word[value..]))).ok()?;
        let metadata = fs::metadata(&path).ok()?;
        let identity = Identity::new(&metadata);
        let is_stored = metadata.is_file() || matches!(identity, Identity::Device(_));
        is_stored.then_some(OpenFile { identity, path })
    });
    files.collect()
}

/// Returns the processes that listen at a Unix socket.
fn listeners_at(socket: &Path) -> Vec<u32> {
    let identity = Identity::of(socket);
    let lines = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let mut found = Vec::new();
    for line in lines.lines().skip(1) {
        let Some((flags, inode, path)) = unix_row(line) else { continue };
        if flags != LISTENS || path.file_name() != socket.file_name() {
            continue;
        }
        // The name is the server's, which may have another root and folder.
        found.extend(holders(&[inode]).into_iter().filter(|process| {
            let place = PathBuf::from(format!("/proc/{process}"));
            let relative = path.strip_prefix("/").unwrap_or(path);
            let folder = if path.is_absolute() { "root" } else { "cwd" };
            Identity::of(&place.join(folder).join(relative)) == identity
        }));
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Returns flags, inode and name of a row of the list of Unix sockets: the fourth, the seventh and what follows it.
fn unix_row(line: &str) -> Option<(&str, u64, &Path)> {
    let mut rest = line;
    let mut field = || {
        let (field, tail) = rest.trim_start().split_once(' ')?;
        rest = tail;
        Some(field)
    };
    let flags = (0..4).map(|_| field()).last()??;
    let inode = (0..3).map(|_| field()).last()??.parse().ok()?;
    Some((flags, inode, Path::new(rest)))
}

/// Returns the inodes of the sockets that listen on a TCP port.
fn listening_on(port: u16) -> Vec<u64> {
    let files = ["/proc/net/tcp", "/proc/net/tcp6"];
    let text: Vec<String> = files.iter().filter_map(|file| fs::read_to_string(file).ok()).collect();
    let rows = text.iter().flat_map(|text| text.lines().skip(1)).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (_, digits) = fields.get(1)?.rsplit_once(':')?;
        let is_wanted = u16::from_str_radix(digits, 16) == Ok(port) && fields.get(3) == Some(&"0A");
        fields.get(9)?.parse().ok().filter(|_| is_wanted)
    });
    rows.collect()
}

/// Returns the processes that have one of these sockets open.
fn holders(inodes: &[u64]) -> Vec<u32> {
    if inodes.is_empty() {
        return Vec::new();
    }
    let names: Vec<PathBuf> = inodes.iter().map(|it| format!("socket:[{it}]").into()).collect();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = processes.filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok());
    let holds = |process: &u32| {
        let files = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        files.filter_map(|it| fs::read_link(it.path()).ok()).any(|it| names.contains(&it))
    };
    processes.filter(holds).collect()
}

/// Returns whether a host is this one. Its name is not resolved, which may take long.
fn is_here(host: &str) -> bool {
    let own = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match host.parse::<IpAddr>() {
        Ok(address) => UdpSocket::bind((address, 0)).is_ok(),
        Err(_) => ["", "localhost"].contains(&host) || own.trim().eq_ignore_ascii_case(host),
    }
}

/// Options of nbdkit with which its files stay as they are.
const READ_ONLY: [&[u8]; 3] = [b"-r", b"--readonly", b"--filter=cow"];

/// Flags of a socket that listens.
const LISTENS: &str = "00010000";

/// Flags of a file that is open for writing: `O_WRONLY` and `O_RDWR`.
const ACCESS: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_unix_sockets() {
        let line = "ffff9: 00000002 00000000 00010000 0001 01 31415 /run/a b.sock";
        assert_eq!(unix_row(line), Some((LISTENS, 31415, Path::new("/run/a b.sock"))));
        assert_eq!(unix_row("ffff9: 00000003 00000000 00000000 0001 03  2718"), None);
        assert_eq!(unix_row(""), None);
    }
}
