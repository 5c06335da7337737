//! URIs, split into the part for libnbd and the parameters of TLS.
//!
//! This module and [`tls`](super::tls) decide which servers are trusted. Versions of libnbd treat the
//! parameters of TLS differently, so these are removed from the URI, and unknown ones are refused.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use crate::error::excerpt;
use crate::location::{self, CERTIFICATES, KEYS, Transport};

/// A URI of a scheme that libnbd supports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Uri {
    /// The URI without the parameters of TLS.
    pub text: CString,
    /// Whether the URI requires TLS.
    pub is_encrypted: bool,
    /// Whether the URI has a host name or address, for which a certificate can be checked.
    pub has_host: bool,
    /// Value of `tls-certificates`, a folder.
    pub certificates: Option<PathBuf>,
    /// Value of `tls-psk-file`.
    pub keys: Option<PathBuf>,
}

impl Uri {
    /// Parses a URI. The error is the reason why it cannot be used.
    pub fn new(uri: &str) -> Result<Self, String> {
        if !uri.contains(':') {
            return Err("is not a URI".into());
        }
        let uri = location::Uri::new(uri).filter(|uri| !uri.is_url());
        let uri = uri.ok_or("is not a URI of a network block device")?;
        let location::Scheme { name: scheme, transport, is_encrypted, .. } = *uri.scheme();
        if let Some(plain) = scheme.strip_suffix("+tcp") {
            return Err(format!("{scheme}: is not known, use {plain}://HOST:PORT/EXPORT"));
        }
        if transport == Transport::Ssh {
            return Err(format!(
                "{scheme}: is not supported, forward a socket with ssh -L and use \
                 nbd+unix:///EXPORT?socket=PATH"
            ));
        }
        let place = uri.place().ok_or("has no // after its scheme")?;
        let authority = uri.authority().unwrap_or_default();
        if authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':')) {
            return Err("holds a password, which NBD has no use for: use tls-psk-file".into());
        }
        let (mut certificates, mut keys, mut others) = (None, None, Vec::new());
        for location::Parameter { text, name, value } in uri.parameters() {
            let file = match &name[..] {
                CERTIFICATES => &mut certificates,
                KEYS => &mut keys,
                _ if !name.starts_with(b"tls-") => {
                    others.push(text);
                    continue;
                }
                b"tls-verify-peer" => {
                    return Err("holds tls-verify-peer: a server's certificate is checked in any \
                                case"
                        .into());
                }
                _ => return Err(format!("holds {}, which is not supported", excerpt(&name))),
            };
            let name = String::from_utf8_lossy(&name);
            if !is_encrypted {
                return Err(format!("holds {name}, which is for nbds: {scheme}: has no TLS"));
            }
            if value.is_empty() || value.contains(&0) {
                return Err(format!("holds a {name} without a name"));
            }
            *file = Some(OsString::from_vec(value).into());
        }
        let mark = if others.is_empty() { "" } else { "?" };
        let text = format!("{scheme}://{place}{mark}{}", others.join("&"));
        let text = CString::new(text).map_err(|_| "contains a NUL")?;
        let has_host = transport == Transport::Tcp;
        Ok(Self { text, is_encrypted, has_host, certificates, keys })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes() {
        for uri in ["nbd://host", "NBD://h:1/e", "nbd+unix:///e?socket=s", "nbd+vsock://2:1/"] {
            assert!(!Uri::new(uri).unwrap().is_encrypted, "{uri}");
        }
        for uri in ["nbds://host", "Nbds+Unix://me@/?socket=s", "nbds+vsock://2"] {
            assert!(Uri::new(uri).unwrap().is_encrypted, "{uri}");
        }
        let uri = Uri::new("NBD+UNIX:///E?socket=S").unwrap();
        assert_eq!(&*uri.text, c"nbd+unix:///E?socket=S");
    }

    #[test]
    fn only_tcp_has_a_host() {
        for uri in ["nbd://host", "NBDS://127.0.0.1", "nbds:///"] {
            assert!(Uri::new(uri).unwrap().has_host, "{uri}");
        }
        for uri in ["nbds+unix://host/?socket=s", "nbds+vsock://host"] {
            assert!(!Uri::new(uri).unwrap().has_host, "{uri}");
        }
    }

    #[test]
    fn refused() {
        let reason = |uri| Uri::new(uri).unwrap_err();
        assert!(reason("nbd+tcp://host").contains("use nbd://HOST:PORT/EXPORT"));
        assert!(reason("nbds+tcp://host").contains("use nbds://HOST:PORT/EXPORT"));
        assert!(reason("nbd+ssh://host").contains("ssh -L"));
        assert!(reason("nbd:host").contains("//"));
        assert!(reason("http://host").contains("not a URI of a network block device"));
        assert!(reason("nbds://me:secret@host/e").contains("password"));
        assert!(reason("nbd://host/\0").contains("NUL"));
        assert!(Uri::new("nbd://host/a:b@c").is_ok());
    }

    #[test]
    fn parameters_of_tls_are_taken_out() {
        let uri = "nbds+unix://me@/e?tls-certificates=/a%20b%2&socket=/s;1&%74ls-psk-file=c&x#y";
        let parsed = Uri::new(uri).unwrap();
        assert_eq!(&*parsed.text, c"nbds+unix://me@/e?socket=/s;1&x");
        assert_eq!(parsed.certificates, Some("/a b%2".into()));
        assert_eq!(parsed.keys, Some("c".into()));
        let parsed = Uri::new("nbds://h/?tls-psk-file=a;tls-psk-file=b").unwrap();
        assert_eq!((&*parsed.text, parsed.keys), (c"nbds://h/", Some("b".into())));
    }

    #[test]
    fn other_parameters_of_tls_are_refused() {
        for (uri, words) in [
            ("nbds://h/?tls-verify-peer=false", "checked in any case"),
            ("nbds://h/?x=1;tls%2Dverify-peer=0", "checked in any case"),
            ("nbds://h/?tls-hostname=other", "tls-hostname, which is not supported"),
            ("nbd://h/?tls-psk-file=x", "nbd: has no TLS"),
            ("nbds://h/?tls-psk-file", "without a name"),
            ("nbds://h/?tls-certificates=", "without a name"),
            ("nbds://h/?tls-certificates=a%00b", "without a name"),
        ] {
            let reason = Uri::new(uri).unwrap_err();
            assert!(reason.contains(words), "{uri}: {reason}");
        }
    }
}
