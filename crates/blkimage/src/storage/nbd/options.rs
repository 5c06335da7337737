//! Options of NBD clients.

use std::path::PathBuf;
use std::time::Duration;

/// Options of connections to NBD servers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NbdOptions {
    /// Maximum number of connections to one export. There is only one if the server does not announce
    /// that more are safe.
    pub connections: usize,
    /// Maximum time that a server may be silent while it owes a reply, and that connecting may take in
    /// all. Within ten times as long, the server must send 1 KiB per second on average. `None` waits
    /// forever. Host names are looked up with the resolver's own timeout.
    pub timeout: Option<Duration>,
    /// Folder with the certificates for TLS. `None` uses libnbd's default folders, or
    /// else the CAs of the system.
    pub tls_certificates: Option<PathBuf>,
    /// Whether a URI may name files of this host, in `tls-certificates` and `tls-psk-file`.
    pub allow_local_files: bool,
    /// Bitmap of changed blocks that is read besides the content, from the context `qemu:dirty-bitmap:NAME`.
    pub bitmap: Option<String>,
}

impl NbdOptions {
    /// Returns the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Limits the number of connections to one export.
    #[must_use]
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections;
        self
    }

    /// Limits the time that a server may be silent while it owes a reply. `None` waits forever.
    #[must_use]
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.timeout = timeout.into();
        self
    }

    /// Sets the folder with the certificates for TLS.
    #[must_use]
    pub fn tls_certificates(mut self, tls_certificates: impl Into<Option<PathBuf>>) -> Self {
        self.tls_certificates = tls_certificates.into();
        self
    }

    /// Sets the name of the bitmap of changed blocks that is read.
    #[must_use]
    pub fn bitmap(mut self, bitmap: impl Into<Option<String>>) -> Self {
        self.bitmap = bitmap.into();
        self
    }

    /// Sets whether a URI may name files of this host.
    #[must_use]
    pub fn allow_local_files(mut self, allow_local_files: bool) -> Self {
        self.allow_local_files = allow_local_files;
        self
    }
}

impl Default for NbdOptions {
    /// Returns options with a connection for each processor, a timeout of a minute and no local files.
    fn default() -> Self {
        Self {
            connections: blksys::processors(),
            timeout: Some(Duration::from_secs(60)),
            tls_certificates: None,
            allow_local_files: false,
            bitmap: None,
        }
    }
}
