//! The location of an image: the path of a file, the URI of an export of an NBD server, or the URL of an object on an HTTP or S3
//! server.
//!
//! Only this module examines schemes. A new scheme needs a row in [`SCHEMES`] and a line in
//! `storage/remote.rs` that opens it.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::archive_names;

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

    /// Returns whether the location is the URL of an object on an HTTP or S3 server. Such an object is read like a file, by its
    /// name and its content, and is never written.
    pub fn is_url(&self) -> bool {
        self.url().is_some()
    }

    /// Returns the container that is named by a URL and the name of a member after the path and a colon, and that
    /// member, decoded. The container is one by the end of its name.
    pub(crate) fn member_of_url(&self) -> Option<(String, Vec<u8>)> {
        let text = self.url()?;
        let uri = Uri::new(text)?;
        let (before, place, after) = uri.around_place(text)?;
        let path = place.find('/')?;
        let is_container = |at: &usize| has_archive_name(&place.as_bytes()[..*at]);
        let mut colons = place.match_indices(':').map(|(at, _)| at).filter(|at| *at > path);
        let at = colons.find(is_container)?;
        let member = &place[at + 1..];
        let member = if uri.is_bucket() { member.into() } else { decode(member) };
        (!member.is_empty()).then(|| (format!("{before}{}{after}", &place[..at]), member))
    }

    /// Returns the text of the URL of an object on an HTTP or S3 server. `None` for other locations, and without UTF-8.
    pub fn url(&self) -> Option<&'a str> {
        match self {
            Self::Uri(uri) => {
                uri.to_str().filter(|text| Uri::new(text).is_some_and(|it| it.is_url()))
            }
            Self::Path(_) => None,
        }
    }

    /// Returns the name for messages: for a URL without a password and without the values of its query.
    pub fn shown(&self) -> PathBuf {
        #[cfg(feature = "http")]
        if let Some(Ok(url)) = self.url().map(str::parse::<blkhttp::Url>) {
            return url.to_string().into();
        }
        match self {
            Self::Path(path) => path.to_path_buf(),
            Self::Uri(uri) => uri.into(),
        }
    }

    /// Returns the name of the file by itself, without folders: from the path, and for a URL the last part of its path,
    /// decoded and without the query. `None` if there is none, as for an export of an NBD server.
    pub fn file_name(&self) -> Option<OsString> {
        match self {
            Self::Path(path) => path.file_name().map(OsStr::to_owned),
            Self::Uri(_) => {
                let uri = Uri::new(self.url()?)?;
                let (_, path) = uri.place()?.split_once('/')?;
                let last = path.rsplit('/').next()?;
                let name = if uri.is_bucket() { last.into() } else { decode(last) };
                (!name.is_empty()).then(|| OsString::from_vec(name))
            }
        }
    }
}

/// Returns the parts of a relative name, joined by slashes. `None` if the name leads out of its folder or to none.
fn relative(name: &str) -> Option<String> {
    let is_part = |part: &&str| !matches!(*part, "" | ".");
    let parts: Vec<&str> = name.split('/').filter(is_part).collect();
    let is_inside = !name.starts_with('/') && !parts.is_empty() && !parts.contains(&"..");
    is_inside.then(|| parts.join("/"))
}

/// Returns the URL of the object with this name in the folder of another one, or beneath. `None` if the name leads out of the
/// folder.
#[cfg(feature = "http")]
pub(crate) fn join(url: &blkhttp::Url, name: &str) -> Option<blkhttp::Url> {
    url.join(&relative(name)?).ok()
}

/// Returns the URL of the file with this name in the folder of a URL, or beneath, as a list in that folder names it. `None` if
/// the name leads out of the folder or is no text, or the URL is none.
pub fn url_beside(url: &str, name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    #[cfg(feature = "http")]
    join(&url.parse().ok()?, name)?;
    let uri = Uri::new(url).filter(Uri::is_url)?;
    let name = relative(name)?;
    let name = if uri.is_bucket() { name } else { encode(name.as_bytes()) };
    let (before, place, _) = uri.around_place(url)?;
    let folder = place.rfind('/').map_or(place, |at| &place[..at]);
    Some(format!("{before}{folder}/{name}"))
}

/// Returns whether a URL is what [`url_beside`] returns for some name in the folder of another one, or a member of that.
pub fn is_beside_url(url: &str, name: &OsStr) -> bool {
    let location = Location::new(name);
    if location.member_of_url().is_some_and(|(container, _)| container == url) {
        return true;
    }
    let folder = |uri: Uri<'_>, text| {
        let (before, place, _) = uri.around_place(text)?;
        let folder = place.rfind('/').map_or(place, |at| &place[..at]);
        Some(format!("{before}{folder}/"))
    };
    let is_beside = || {
        let text = location.url()?;
        let folder = folder(Uri::new(url).filter(Uri::is_url)?, url)?;
        let rest = text.strip_prefix(&folder)?;
        let rest = if Uri::new(text)?.is_bucket() { rest.into() } else { decode(rest) };
        url_beside(url, &rest).map(|beside| beside == text)
    };
    is_beside().unwrap_or(false)
}

/// Returns the URL of a member of the container at a URL, which [`Location::member_of_url`] splits.
pub(crate) fn url_of_member(container: &str, member: &[u8]) -> Option<String> {
    let uri = Uri::new(container).filter(Uri::is_url)?;
    let (before, place, after) = uri.around_place(container)?;
    let member = match uri.is_bucket() {
        true => String::from_utf8_lossy(member).into_owned(),
        false => encode(member),
    };
    Some(format!("{before}{place}:{member}{after}"))
}

/// Returns whether a name on a server belongs to an archive with disks.
pub(crate) fn has_archive_name(name: &[u8]) -> bool {
    archive_names::ALL.iter().copied().flatten().any(|end| has_extension(name, end))
}

/// Returns whether a name ends in `extension`, in any case, and has something before it.
pub(crate) fn has_extension(name: &[u8], extension: &[u8]) -> bool {
    name.len().checked_sub(extension.len()).is_some_and(|at| {
        at > 0 && name[at - 1] != b'/' && name[at..].eq_ignore_ascii_case(extension)
    })
}

/// Encodes what means something else in the path of a URL.
fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        let is_plain = byte.is_ascii_alphanumeric() || b"/-._~:+,=@".contains(byte);
        match is_plain {
            true => text.push(char::from(*byte)),
            false => text += &format!("%{byte:02X}"),
        }
    }
    text
}

/// Returns a name whose end tells what the file is: the name itself, or the name of the file of a URL.
pub(crate) fn telling(name: &Path) -> Cow<'_, Path> {
    let location = Location::new(name.as_os_str());
    match location.is_url() {
        true => Cow::Owned(location.file_name().unwrap_or_default().into()),
        false => Cow::Borrowed(name),
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
    Http,
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
    /// The port of a server whose URI has none.
    port: u16,
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

    /// Returns whether this is the URL of an object on an HTTP or S3 server.
    pub fn is_url(&self) -> bool {
        self.scheme.protocol == Protocol::Http
    }

    /// Returns whether this is the URL of an object in a bucket, `s3://BUCKET/KEY`. It has no host and no port.
    pub fn is_bucket(&self) -> bool {
        self.scheme.name == S3
    }

    /// Returns whether the URI requires TLS.
    pub fn is_encrypted(&self) -> bool {
        self.scheme.is_encrypted
    }

    /// Returns the port of `//[USER@]HOST[:PORT][/EXPORT]`, if the transport is TCP.
    pub fn port(&self) -> Option<u16> {
        if self.transport() != Transport::Tcp || self.is_bucket() {
            return None;
        }
        let after_user = self.authority()?.rsplit('@').next()?;
        // An IPv6 address contains colons, inside brackets.
        let after_address = after_user.rsplit(']').next()?;
        match after_address.split_once(':') {
            None | Some((_, "")) => Some(self.scheme.port),
            Some((_, digits)) => digits.parse().ok(),
        }
    }

    /// Returns the local files and folders with keys for TLS that the URI names. A URL names none.
    pub fn files(&self) -> Vec<PathBuf> {
        let parameters = self.parameters().filter(|_| self.scheme.protocol == Protocol::Nbd);
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

    /// Returns the part between `//` and the query or fragment. Returns `None` without `//`. The key of an object in a bucket is
    /// any text.
    pub(crate) fn place(&self) -> Option<&'a str> {
        let place = self.rest.strip_prefix("//")?;
        match self.is_bucket() {
            true => Some(place),
            false => place.split(['?', '#']).next(),
        }
    }

    /// Splits the text of this URI into what comes before [`place`](Self::place), that, and what follows it.
    fn around_place(&self, text: &'a str) -> Option<(&'a str, &'a str, &'a str)> {
        let place = self.place()?;
        let start = text.len().checked_sub(self.rest.len())? + "//".len();
        Some((&text[..start], place, &text[start + place.len()..]))
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
const SCHEMES: [Scheme; 13] = [
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
    url("http", false, 80),
    url("https", true, 443),
    url(S3, true, 443),
];

/// Creates a row for a network block device.
const fn nbd(
    name: &'static str,
    mark: &'static str,
    transport: Transport,
    is_encrypted: bool,
) -> Scheme {
    let port = 10809;
    Scheme { name, protocol: Protocol::Nbd, mark, transport, is_encrypted, port }
}

/// Creates a row for objects on servers.
const fn url(name: &'static str, is_encrypted: bool, port: u16) -> Scheme {
    let (protocol, mark, transport) = (Protocol::Http, "://", Transport::Tcp);
    Scheme { name, protocol, mark, transport, is_encrypted, port }
}

/// Scheme of objects in buckets.
const S3: &str = "s3";

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
    fn urls() {
        for url in ["http://h/x", "HTTPS://h:8/x?y", "s3://bucket/key"] {
            let location = Location::new(OsStr::new(url));
            assert!(location.is_uri() && location.is_url(), "{url}");
        }
        for name in ["nbd://h", "http:x", "https:/h/x", "./http://h/x", "s3:", "httpx://h/x"] {
            assert!(!Location::new(OsStr::new(name)).is_url(), "{name}");
        }
        assert!(!Location::new(OsStr::from_bytes(b"http://h/\xff")).is_url());
        assert!(Location::new(OsStr::from_bytes(b"http://h/\xff")).is_uri());
    }

    #[test]
    fn file_names() {
        for (name, file) in [
            ("http://h/a/b.qcow2", Some("b.qcow2")),
            ("https://h/a/b.qcow2?x=/y.raw#/z", Some("b.qcow2")),
            ("https://h/a%20b.raw.xz", Some("a b.raw.xz")),
            ("s3://bucket/folder/key.img", Some("key.img")),
            ("s3://bucket/a%20b?c.img", Some("a%20b?c.img")),
            ("https://h/a/", None),
            ("https://h", None),
            ("nbd://h/x.qcow2", None),
            ("folder/x.qcow2", Some("x.qcow2")),
        ] {
            let found = Location::new(OsStr::new(name)).file_name();
            assert_eq!(found, file.map(OsString::from), "{name}");
        }
        assert_eq!(telling(Path::new("a/b.raw")), Path::new("a/b.raw"));
        assert_eq!(telling(Path::new("http://h/b.raw?c.xz")), Path::new("b.raw"));
    }

    #[test]
    fn members_of_containers_at_urls() {
        let of = |name: &str| Location::new(OsStr::new(name)).member_of_url();
        for (container, member, name) in [
            ("https://h/x.ova", &b"disk1"[..], "https://h/x.ova:disk1"),
            ("https://me:pw@h:8/a/x.OVA", b"d/1.vmdk", "https://me:pw@h:8/a/x.OVA:d/1.vmdk"),
            (
                "http://h/vm.oci.tar?t=1:2",
                b"a b?%\xff:c",
                "http://h/vm.oci.tar:a%20b%3F%25%FF:c?t=1:2",
            ),
            ("s3://bucket/x.ova", b"disk 1?", "s3://bucket/x.ova:disk 1?"),
            ("http://h/x.ova", b"h", "http://h/x.ova:h"),
        ] {
            assert_eq!(of(name), Some((container.to_owned(), member.to_vec())), "{name}");
            assert_eq!(url_of_member(container, member).as_deref(), Some(name));
        }
        for name in
            ["https://h/x.ova", "https://h/x.ova:", "https://h/x:1.raw", "https://x.ova:1/d"]
        {
            assert_eq!(of(name), None, "{name}");
        }
        assert_eq!(of("nbd://h/x.ova:disk"), None);
        assert_eq!(url_of_member("folder/x.ova", b"disk"), None);
    }

    #[test]
    fn names_in_the_folder_of_a_url() {
        for (url, name, beside) in [
            ("https://h/a/SHA256SUMS", "disk.raw", Some("https://h/a/disk.raw")),
            (
                "https://me:pw@h:8/a/SUMS?x=/y",
                "./b//c d?.raw",
                Some("https://me:pw@h:8/a/b/c%20d%3F.raw"),
            ),
            ("https://h", "x", Some("https://h/x")),
            ("s3://bucket/a/SUMS", "c d.raw", Some("s3://bucket/a/c d.raw")),
            ("https://h/a/SUMS", "-", Some("https://h/a/-")),
            ("https://h/a/SUMS", "/etc/passwd", None),
            ("https://h/a/SUMS", "../x", None),
            ("https://h/a/SUMS", "b/../../x", None),
            ("https://h/a/SUMS", "", None),
            ("nbd://h/a/SUMS", "x", None),
        ] {
            assert_eq!(url_beside(url, name.as_bytes()).as_deref(), beside, "{url} {name}");
            if let Some(beside) = beside {
                assert!(is_beside_url(url, OsStr::new(beside)), "{url} {name}");
            }
        }
        for name in [
            "https://other/a/x",
            "http://h/a/x",
            "https://h/x",
            "https://h/a/../x",
            "https://h/a/%2e%2e/x",
            "https://h/a/x?y",
            "https://h/ab/x",
            "x",
            "/a/x",
            "nbd://h/a/x",
        ] {
            assert!(!is_beside_url("https://h/a/SUMS", OsStr::new(name)), "{name}");
        }
        assert!(is_beside_url("https://h/x.ova", OsStr::new("https://h/x.ova:disk")));
        assert_eq!(url_beside("https://h/a/SUMS", b"\xff"), None);
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
            ("http://host/x:1", Some(80)),
            ("https://me:word@host/x", Some(443)),
            ("https://[::1]:8443/x", Some(8443)),
            ("s3://bucket/key:1", None),
        ] {
            assert_eq!(Uri::new(uri).unwrap().port(), port, "{uri}");
        }
        for text in ["host:1", "", "ftp://host"] {
            assert!(Uri::new(text).is_none(), "{text}");
        }
    }

    #[test]
    fn files() {
        let uri = "nbds+unix:///?socket=/s&tls-psk-file=/a%20b%2&%74ls-certificates=c;x=y#?tls-psk-file=d";
        let uri = Uri::new(uri).unwrap();
        assert_eq!(uri.files(), [PathBuf::from("/a b%2"), PathBuf::from("c")]);
        assert!(uri.is_encrypted());
        for text in ["nbd://host", "https://host/x?tls-psk-file=/etc/shadow"] {
            assert_eq!(Uri::new(text).unwrap().files(), [""; 0].map(PathBuf::from));
        }
    }
}
