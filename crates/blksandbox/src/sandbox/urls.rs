//! Permissions for reading objects on HTTP and S3 servers.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use blkconfine::files::list;
use blkhttp::{HttpOptions, s3_files, s3_ports};
use blkimage::Uri;

use super::{RESOLVER, Sandbox};

impl Sandbox {
    /// Allows connecting to the server of a URL, and to servers of redirects, and reading the files that are needed to
    /// resolve names and to authenticate servers. With a bucket, allows reading the files with keys as well. No library
    /// is loaded.
    pub(super) fn allow_url(&mut self, url: Uri<'_>) {
        self.families.internet = true;
        let ports = [url.port(), Some(HTTP), Some(HTTPS), Some(DNS)];
        let proxies = PROXIES.iter().filter_map(|name| env::var(name).ok());
        let proxies: Vec<u16> = proxies.filter_map(|proxy| port_of(&proxy)).collect();
        for port in ports.into_iter().flatten().chain(proxies) {
            self.allow_connecting(port);
        }
        for path in RESOLVER.iter().chain(&AUTHORITIES) {
            self.allow_quietly(path, list());
        }
        for name in AUTHORITIES_FROM {
            self.allow_quietly_from(name);
        }
        let HttpOptions { tls_ca, s3, .. } = self.http.clone();
        if let Some(path) = tls_ca {
            self.allow_quietly_at(&path);
        }
        if url.is_bucket() {
            for port in s3_ports(&s3) {
                self.allow_connecting(port);
            }
            for path in s3_files(&s3) {
                self.allow_quietly_at(&path);
            }
        }
    }

    /// Allows reading the files that a variable of the environment names, or those beneath the folder.
    fn allow_quietly_from(&mut self, variable: &str) {
        let paths: Vec<PathBuf> = match env::var_os(variable) {
            Some(value) if value == OsString::new() => return,
            Some(value) => env::split_paths(&value).collect(),
            None => return,
        };
        for path in paths {
            self.allow_quietly_at(&path);
        }
    }
}

/// Returns the port of a server or proxy: `[SCHEME://][USER@]HOST[:PORT][/PATH]`.
fn port_of(server: &str) -> Option<u16> {
    let (scheme, rest) = server.split_once("://").unwrap_or(("http", server));
    let authority = rest.split(['/', '?']).next()?;
    let host = authority.rsplit('@').next()?.rsplit(']').next()?;
    match host.split_once(':') {
        Some((_, digits)) if !digits.is_empty() => digits.parse().ok(),
        _ if scheme.eq_ignore_ascii_case("https") => Some(HTTPS),
        _ => Some(HTTP),
    }
}

const HTTP: u16 = 80;
const HTTPS: u16 = 443;

/// Name servers use TCP for answers that are too long for a datagram.
const DNS: u16 = 53;

/// Variables that name proxies.
const PROXIES: [&str; 6] =
    ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];

/// Certificates of authorities. Some of the folders have links to others.
const AUTHORITIES: [&str; 12] = [
    "/etc/ssl/certs",
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/ca-trust",
    "/etc/ca-certificates",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
    "/usr/share/pki",
    "/var/lib/ca-certificates",
];

/// Variables that name files or folders of certificates of authorities.
const AUTHORITIES_FROM: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_servers() {
        for (server, port) in [
            ("https://minio.example:9000", Some(9000)),
            ("https://minio.example", Some(443)),
            ("http://minio.example/", Some(80)),
            ("http://me:word@proxy:3128/x:1", Some(3128)),
            ("proxy:8080", Some(8080)),
            ("proxy", Some(80)),
            ("http://[::1]:3128", Some(3128)),
            ("http://[::1]", Some(80)),
            ("http://proxy:x", None),
        ] {
            assert_eq!(port_of(server), port, "{server}");
        }
    }
}
