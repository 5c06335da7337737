//! The location of an image: the path of a file, or the URI of an export of a server.
//!
//! Only this module examines schemes. A new scheme needs a row in [`SCHEMES`] and a line in
//! `storage/remote.rs` that opens it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The location of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Location<'a> {
    /// A file or block device of this host.
    Path(&'a Path),
    /// A URI, well-formed or not.
    Uri(&'a OsStr),
}

impl<'a> Location<'a> {
    /// Classifies `name` by its prefix. A name with the prefix of a URI is never treated as a file.
    pub fn new(name: &'a OsStr) -> Self {
        let lower = name.as_bytes().to_ascii_lowercase();
        let is_uri = SCHEMES.iter().any(|scheme| {
            let rest = lower.strip_prefix(scheme.name.as_bytes());
            rest.is_some_and(|rest| rest.starts_with(scheme.mark.as_bytes()))
        });
        if is_uri { Self::Uri(name) } else { Self::Path(Path::new(name)) }
    }

    /// Returns whether the location is a URI.
    pub fn is_uri(&self) -> bool {
        matches!(self, Self::Uri(_))
    }
}

/// A parsed URI, which may lack some parts.
#[derive(Clone, Copy, Debug)]
pub struct Uri<'a> {
    scheme: &'static Scheme,
    /// The part after the scheme and its colon.
    rest: &'a str,
}

/// The transport to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// TCP, to a host and a port.
    Tcp,
    /// A Unix socket of this host.
    Unix,
    /// A vsock socket of the hypervisor.
    Vsock,
    /// A program on a remote host, through SSH.
    Ssh,
}

/// The protocol of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Nbd,
}

/// The scheme of a URI.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Scheme {
    pub name: &'static str,
    pub protocol: Protocol,
    /// The characters after the name that make it a URI: `nbd:x` may be a file.
    mark: &'static str,
    pub transport: Transport,
    /// Whether TLS is required.
    pub is_encrypted: bool,
}

impl<'a> Uri<'a> {
    /// Parses `text`. Returns `None` if its scheme is unknown.
    pub fn new(text: &'a str) -> Option<Self> {
        let (name, rest) = text.split_once(':')?;
        let scheme = SCHEMES.iter().find(|scheme| scheme.name.eq_ignore_ascii_case(name))?;
        Some(Self { scheme, rest })
    }

    /// Returns the transport to the server.
    pub fn transport(&self) -> Transport {
        self.scheme.transport
    }

    /// Returns whether the URI requires TLS.
    pub fn is_encrypted(&self) -> bool {
        self.scheme.is_encrypted
    }

    /// Returns the port of `//[USER@]HOST[:PORT][/EXPORT]`, if the transport is TCP.
    pub fn port(&self) -> Option<u16> {
        if self.transport() != Transport::Tcp {
            return None;
        }
        let after_user = self.authority()?.rsplit('@').next()?;
        // An IPv6 address contains colons, inside brackets.
        let after_address = after_user.rsplit(']').next()?;
        match after_address.split_once(':') {
            None | Some((_, "")) => Some(DEFAULT_PORT),
            Some((_, digits)) => digits.parse().ok(),
        }
    }

    /// Returns the local files and folders with keys for TLS that the URI names.
    pub fn files(&self) -> Vec<PathBuf> {
        let parameters = self.parameters();
        let files = parameters.filter(|it| matches!(&it.name[..], CERTIFICATES | KEYS));
        files.map(|it| OsString::from_vec(it.value).into()).collect()
    }

    /// Returns the path of the Unix socket, if the transport is that.
    pub fn socket(&self) -> Option<PathBuf> {
        let mut parameters = self.parameters().filter(|_| self.transport() == Transport::Unix);
        let socket = parameters.find(|it| it.name == b"socket")?;
        Some(OsString::from_vec(socket.value).into())
    }

    /// Returns the host of `//[USER@]HOST[:PORT][/EXPORT]` without brackets, if the transport is TCP. It may be empty.
    pub fn host(&self) -> Option<&'a str> {
        self.port()?;
        let after_user = self.authority()?.rsplit('@').next()?;
        match after_user.strip_prefix('[') {
            Some(rest) => rest.split(']').next(),
            None => after_user.split(':').next(),
        }
    }

    /// Returns the name of the export, as it is encoded in the URI.
    pub fn export(&self) -> &'a str {
        self.place().and_then(|place| place.split_once('/')).map_or("", |(_, export)| export)
    }

    pub(crate) fn scheme(&self) -> &'static Scheme {
        self.scheme
    }

    /// Returns the part between `//` and the query or fragment. Returns `None` without `//`.
    pub(crate) fn place(&self) -> Option<&'a str> {
        let place = self.rest.strip_prefix("//")?;
        place.split(['?', '#']).next()
    }

    /// Returns the server, and the user, if any.
    pub(crate) fn authority(&self) -> Option<&'a str> {
        self.place()?.split('/').next()
    }

    /// Returns the parameters of the query, split as in libnbd: at each `&`, and at `;`
    /// after the last `&`.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = Parameter<'a>> {
        let text = self.rest.split('#').next().unwrap_or_default();
        let mut rest = text.split_once('?').map(|(_, query)| query);
        std::iter::from_fn(move || {
            let query = rest?;
            let end = query.find('&').or_else(|| query.find(';'));
            rest = end.map(|end| &query[end + 1..]);
            Some(&query[..end.unwrap_or(query.len())])
        })
        .filter(|parameter| !parameter.is_empty())
        .map(|text| {
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            Parameter { text, name: decode(name), value: decode(value) }
        })
    }
}

/// One parameter of a query.
pub(crate) struct Parameter<'a> {
    /// The parameter before percent-decoding.
    pub text: &'a str,
    pub name: Vec<u8>,
    pub value: Vec<u8>,
}

/// Decodes percent-encoding.
fn decode(text: &str) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let digit = |index: usize| char::from(*tail.get(index)?).to_digit(16);
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high << 4 | low) as u8);
                rest = &tail[2..];
            }
            _ => {
                decoded.push(first);
                rest = tail;
            }
        }
    }
    decoded
}

/// Parameter that names a folder of certificates.
pub(crate) const CERTIFICATES: &[u8] = b"tls-certificates";

/// Parameter that names a file of pre-shared keys.
pub(crate) const KEYS: &[u8] = b"tls-psk-file";

/// All schemes that mark a URI. Some of them cannot be opened, and the error gives the reason.
const SCHEMES: [Scheme; 10] = [
    nbd("nbd", "://", Transport::Tcp, false),
    nbd("nbds", "://", Transport::Tcp, true),
    nbd("nbd+tcp", ":", Transport::Tcp, false),
    nbd("nbds+tcp", ":", Transport::Tcp, true),
    nbd("nbd+unix", ":", Transport::Unix, false),
    nbd("nbds+unix", ":", Transport::Unix, true),
    nbd("nbd+vsock", ":", Transport::Vsock, false),
    nbd("nbds+vsock", ":", Transport::Vsock, true),
    nbd("nbd+ssh", ":", Transport::Ssh, false),
    nbd("nbds+ssh", ":", Transport::Ssh, true),
];

/// Creates a row for a network block device.
const fn nbd(
    name: &'static str,
    mark: &'static str,
    transport: Transport,
    is_encrypted: bool,
) -> Scheme {
    Scheme { name, protocol: Protocol::Nbd, mark, transport, is_encrypted }
}

/// Default port of NBD servers.
const DEFAULT_PORT: u16 = 10809;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris() {
        for uri in ["nbd://host", "NBD://host", "nbds://h/e", "nbd+unix:///e?socket=s"] {
            assert!(Location::new(OsStr::new(uri)).is_uri(), "{uri}");
        }
        for name in ["nbd", "nbd:", "nbd:x", "nbd+", "nbdx://", "./nbd://host", "nbd+unix", "-"] {
            assert_eq!(Location::new(OsStr::new(name)), Location::Path(Path::new(name)));
        }
        assert!(Location::new(OsStr::from_bytes(b"nbd://\xff")).is_uri());
    }

    #[test]
    fn servers() {
        let of = |uri| Uri::new(uri).map(|uri| (uri.socket(), uri.host(), uri.export())).unwrap();
        let socket = |path: &str| Some(PathBuf::from(path));
        assert_eq!(of("nbd+unix:///e%20x?socket=/a%20b"), (socket("/a b"), None, "e%20x"));
        assert_eq!(of("nbds+unix://me@/?x=1&socket=s#f"), (socket("s"), None, ""));
        assert_eq!(of("nbd://me@host:1/e/f?socket=s"), (None, Some("host"), "e/f"));
        assert_eq!(of("nbd://[::1]:1"), (None, Some("::1"), ""));
        assert_eq!(of("nbd:///e"), (None, Some(""), "e"));
        assert_eq!(of("nbd+vsock://2/e"), (None, None, "e"));
    }

    #[test]
    fn ports() {
        for (uri, port) in [
            ("nbd://host", Some(10809)),
            ("NBD://host:10810", Some(10810)),
            ("nbds://alice@host:2/export:3", Some(2)),
            ("nbds://alice@host/export:3?x=:4", Some(10809)),
            ("nbd://[::1]", Some(10809)),
            ("nbd://[fe80::1]:99/", Some(99)),
            ("nbd://host:port", None),
            ("nbd://host:65536", None),
            ("nbd+unix:///export?socket=/run/s", None),
            ("nbds+unix://host:1/export?socket=/run/s", None),
            ("nbd+vsock://3:10809", None),
        ] {
            assert_eq!(Uri::new(uri).unwrap().port(), port, "{uri}");
        }
        for text in ["host:1", "", "https://host"] {
            assert!(Uri::new(text).is_none(), "{text}");
        }
    }

    #[test]
    fn files() {
        let uri = "nbds+unix:///?socket=/s&tls-psk-file=/a%20b%2&%74ls-certificates=c;x=y#?tls-psk-file=d";
        let uri = Uri::new(uri).unwrap();
        assert_eq!(uri.files(), [PathBuf::from("/a b%2"), PathBuf::from("c")]);
        assert!(uri.is_encrypted());
        assert_eq!(Uri::new("nbd://host").unwrap().files(), [""; 0].map(PathBuf::from));
    }
}
