//! Options of clients.

use std::path::PathBuf;
use std::time::Duration;

/// Options for opening objects.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpOptions {
    /// Maximum time that a server may be silent while it owes bytes, and that connecting may take. `None` waits forever.
    pub timeout: Option<Duration>,
    /// Maximum number of requests in a row that are sent again without progress, because the server is unreachable, busy or failing.
    pub retries: u32,
    /// PEM file of the certificate authorities that are trusted instead of the system's.
    pub tls_ca: Option<PathBuf>,
    /// Options of `s3://` URLs.
    pub s3: S3Options,
}

/// Options of `s3://` URLs. What is `None` comes from the environment and the configuration files of the AWS tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct S3Options {
    /// URL of the server, as in `https://minio.example:9000`. `None` means AWS in the region.
    pub endpoint: Option<String>,
    /// Region of the bucket.
    pub region: Option<String>,
    /// Profile of the configuration files.
    pub profile: Option<String>,
    /// Whether the bucket is in the path of requests instead of the name of the host. `None` is true with an endpoint.
    pub path_style: Option<bool>,
}

impl Default for HttpOptions {
    /// Returns options with a timeout of a minute and 8 retries.
    fn default() -> Self {
        Self {
            timeout: Some(Duration::from_secs(60)),
            retries: 8,
            tls_ca: None,
            s3: S3Options::default(),
        }
    }
}
