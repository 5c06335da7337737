//! Authentication of servers, determined before a connection is made.
//!
//! libnbd checks a certificate if it has a host name to compare it with and finds a CA in a folder.
//! Without that CA, older versions load the system's CAs and check nothing (CVE-2024-7383), even with a
//! folder that does not exist. libnbd therefore never gets to choose the folder. The folder is checked
//! here and passed explicitly, and configurations that the installed version would not check are refused.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::library::{Fault, Handle, errno_text};
use super::options::NbdOptions;
use super::uri::Uri;

/// The credential that authenticates a server.
#[derive(Debug)]
pub(super) enum Trust {
    /// A key in this file, shared by the server and the client.
    Key(CString),
    /// A certificate for the host of the URI, signed by a CA of this folder.
    Authority(Authority),
    /// A certificate for the host of the URI, signed by a CA of the system.
    System,
}

/// A folder with the certificate of a CA. The file stays open for [`Trust::holds`].
#[derive(Debug)]
pub(super) struct Authority {
    folder: CString,
    path: PathBuf,
    file: File,
}

impl Trust {
    /// Chooses the credential for the server of `uri`. If there is none, the error gives
    /// the reason and advice.
    pub fn find(uri: &Uri, options: &NbdOptions, version: &str) -> Result<Self, String> {
        if !options.allow_local_files && (uri.keys.is_some() || uri.certificates.is_some()) {
            return Err("holds the name of a file of this host, which is not allowed here".into());
        }
        if let Some(keys) = &uri.keys {
            File::open(keys).map_err(|error| unreadable(keys, &error))?;
            return Ok(Self::Key(c_path(keys)?));
        }
        if !uri.has_host {
            return Err("names no host that a certificate could be checked for: use nbds://HOST, \
                        or a shared key with tls-psk-file=FILE"
                .into());
        }
        if let Some(folder) = uri.certificates.as_ref().or(options.tls_certificates.as_ref()) {
            let authority = Authority::open(folder).map_err(|error| {
                let reason = unreadable(&folder.join(CA), &error);
                format!("{reason}: it must hold the certificate of the server's CA")
            })?;
            return Ok(Self::Authority(authority));
        }
        for folder in default_folders() {
            match Authority::open(&folder) {
                Ok(authority) => return Ok(Self::Authority(authority)),
                Err(error) if is_absent(&error) => {}
                Err(error) => return Err(unreadable(&folder.join(CA), &error)),
            }
        }
        if !checks_system_authorities(version) {
            return Err(format!(
                "libnbd {version} does not check certificates with the CAs of the system: give \
                 --tls-certificates DIR with the certificate of the server's CA as DIR/{CA}"
            ));
        }
        Ok(Self::System)
    }

    /// Configures the library.
    pub fn apply(&self, handle: &Handle) -> Result<(), Fault> {
        match self {
            Self::Key(keys) => handle.set_tls_psk_file(keys),
            Self::Authority(authority) => handle.set_tls_certificates(&authority.folder),
            Self::System => Ok(()),
        }
    }

    /// Returns whether the library has loaded the same CA. Without the file it would have fallen back
    /// to the CAs of the system.
    pub fn holds(&self) -> bool {
        match self {
            Self::Key(_) | Self::System => true,
            Self::Authority(Authority { path, file, .. }) => {
                let identity = |found: std::fs::Metadata| (found.dev(), found.ino());
                let now = std::fs::metadata(path).map(identity);
                now.is_ok_and(|now| file.metadata().map(identity).is_ok_and(|then| then == now))
            }
        }
    }

    /// Returns the requirement on the server, for an error message.
    pub fn demand(&self) -> &'static str {
        match self {
            Self::Key(_) => "it must have the same shared key",
            Self::Authority(_) => {
                "its certificate must be current, for the host of the URI, and of a CA in ca-cert.pem"
            }
            Self::System => {
                "its certificate must be current, for the host of the URI, and of a CA of the system"
            }
        }
    }
}

impl Authority {
    fn open(folder: &Path) -> io::Result<Self> {
        let path = folder.join(CA);
        let mut file = File::open(&path)?;
        // A folder can be opened, but not read.
        let _ = file.read(&mut [0])?;
        let folder = c_path(folder).map_err(io::Error::other)?;
        Ok(Self { folder, path, file })
    }
}

fn c_path(path: &Path) -> Result<CString, String> {
    // libnbd takes "" for the root folder.
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    CString::new(path.as_os_str().as_bytes()).map_err(|_| "a name contains a NUL".into())
}

fn unreadable(path: &Path, error: &io::Error) -> String {
    let name = crate::error::excerpt(path.as_os_str().as_bytes());
    let reason = error.raw_os_error().map_or_else(|| error.to_string(), errno_text);
    format!("cannot read {name}: {reason}")
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Returns the folders that libnbd searches, in this order.
fn default_folders() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    match home.filter(|_| !rustix::process::geteuid().is_root()) {
        Some(home) => {
            [".pki/libnbd", ".config/pki/libnbd"].map(|name| Path::new(&home).join(name)).into()
        }
        None => vec!["/etc/pki/libnbd".into()],
    }
}

/// Returns whether this version of libnbd also checks certificates with the CAs of the system. Some
/// distributions backport the fix without changing the version, which cannot be detected.
fn checks_system_authorities(version: &str) -> bool {
    let mut numbers = version.split('.').map(str::parse::<u32>);
    match (numbers.next(), numbers.next(), numbers.next(), numbers.next()) {
        (Some(Ok(1)), Some(Ok(minor)), Some(Ok(patch)), None) => match minor {
            18 => patch >= 5,
            20 => patch >= 3,
            _ => minor >= 22,
        },
        (Some(Ok(major)), Some(Ok(_)), Some(Ok(_)), None) => major > 1,
        _ => false,
    }
}

/// Name of the CA file in a folder of certificates.
const CA: &str = "ca-cert.pem";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_check() {
        for version in
            ["1.18.5", "1.18.10", "1.20.3", "1.22.0", "1.22.2", "1.24.3", "1.25.1", "2.0.0"]
        {
            assert!(checks_system_authorities(version), "{version}");
        }
        for version in [
            "1.0.0", "1.14.2", "1.17.5", "1.18.4", "1.19.9", "1.20.2", "1.21.5", "0.99.9", "0.22.5",
        ] {
            assert!(!checks_system_authorities(version), "{version}");
        }
        for version in
            ["", "1", "1.22", "1.22.x", "1.22.2.1", "1.22.2-1", "v1.22.2", "1.22.-2", "a.b.c"]
        {
            assert!(!checks_system_authorities(version), "{version}");
        }
    }

    fn find(uri: &str, options: &NbdOptions, version: &str) -> Result<Trust, String> {
        Trust::find(&Uri::new(uri).unwrap(), options, version)
    }

    #[test]
    fn without_a_host_only_keys_are_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("keys");
        std::fs::write(&keys, "me:00\n").unwrap();
        std::fs::write(folder.path().join(CA), "-").unwrap();
        let mut options = NbdOptions { allow_local_files: true, ..NbdOptions::default() };
        options.tls_certificates = Some(folder.path().into());
        for place in ["nbds+unix://me@/?socket=s", "nbds+vsock://me@2/?x=y"] {
            assert!(find(place, &options, "1.22.0").unwrap_err().contains("no host"), "{place}");
            let uri = format!("{place}&tls-psk-file={}", keys.display());
            assert!(matches!(find(&uri, &options, "1.6.0"), Ok(Trust::Key(_))), "{uri}");
        }
        assert!(matches!(find("nbds://h/", &options, "1.6.0"), Ok(Trust::Authority(_))));
    }

    #[test]
    fn local_files_are_refused_unless_allowed() {
        for parameter in ["tls-psk-file=/dev/null", "tls-certificates=/"] {
            let uri = format!("nbds://h/?{parameter}");
            let reason = find(&uri, &NbdOptions::default(), "1.22.0").unwrap_err();
            assert!(reason.contains("not allowed"), "{reason}");
        }
    }

    #[test]
    fn a_removed_or_replaced_ca_is_detected() {
        let folder = tempfile::tempdir().unwrap();
        let (ca, other) = (folder.path().join(CA), folder.path().join("other"));
        std::fs::write(&ca, "-").unwrap();
        std::fs::write(&other, "-").unwrap();
        let options =
            NbdOptions { tls_certificates: Some(folder.path().into()), ..NbdOptions::default() };
        let trust = find("nbds://h/", &options, "1.14.2").unwrap();
        assert!(trust.holds());
        std::fs::rename(&other, &ca).unwrap();
        assert!(!trust.holds());
        std::fs::remove_file(&ca).unwrap();
        assert!(!trust.holds());
        let reason = find("nbds://h/", &options, "1.22.0").unwrap_err();
        assert!(reason.contains("ca-cert.pem: No such file or directory"), "{reason}");
        std::fs::create_dir(&ca).unwrap();
        let reason = find("nbds://h/", &options, "1.22.0").unwrap_err();
        assert!(reason.contains("Is a directory"), "{reason}");
    }
}
