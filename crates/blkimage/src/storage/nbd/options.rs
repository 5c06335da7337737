//! How patient a client of NBD servers is, and what it tells them.

use std::num::NonZero;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// How to talk to NBD servers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NbdOptions {
    /// The most connections to one export. Servers that do not say that more than one is safe get
    /// one.
    pub connections: usize,
    /// How long a server may say nothing where it owes an answer, and how long connecting may take
    /// in all. In ten times as long it must send a KiB for each second. None waits for ever. Looking up the name of a host has the resolver's own limits.
    pub timeout: Option<Duration>,
    /// The folder with the certificates for TLS; None takes libnbd's own.
    pub tls_certificates: Option<PathBuf>,
    /// Whether a URI may name files of this host: `tls-certificates` and `tls-psk-file`.
    pub allow_local_files: bool,
}

impl NbdOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Limits the connections to one export.
    #[must_use]
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections;
        self
    }

    /// Limits how long a server may owe an answer; `None` waits for ever.
    #[must_use]
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.timeout = timeout.into();
        self
    }

    /// Names the folder with the certificates for TLS.
    #[must_use]
    pub fn tls_certificates(mut self, tls_certificates: impl Into<Option<PathBuf>>) -> Self {
        self.tls_certificates = tls_certificates.into();
        self
    }

    /// Says whether a URI may name files of this host.
    #[must_use]
    pub fn allow_local_files(mut self, allow_local_files: bool) -> Self {
        self.allow_local_files = allow_local_files;
        self
    }
}

impl Default for NbdOptions {
    /// A connection for each processor, a timeout of a minute, no local files.
    fn default() -> Self {
        Self {
            connections: thread::available_parallelism().map_or(1, NonZero::get),
            timeout: Some(Duration::from_secs(60)),
            tls_certificates: None,
            allow_local_files: false,
        }
    }
}
