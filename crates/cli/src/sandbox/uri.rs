//! What the URI of a network block device needs: the sandbox must know before libnbd does.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// What a URI says of its server. What is wrong in it is for libnbd to tell.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Uri {
    /// The port, if it is reached by TCP.
    pub port: Option<u16>,
    /// It is reached by a socket of this host.
    pub is_unix: bool,
    /// It is reached by a socket to the hypervisor.
    pub is_hypervisor: bool,
    /// TLS.
    pub is_encrypted: bool,
    /// Files and folders with keys.
    pub files: Vec<PathBuf>,
}

impl Uri {
    /// Takes `text` apart.
    pub fn new(text: &[u8]) -> Self {
        let Some(colon) = text.iter().position(|&byte| byte == b':') else {
            return Self::default();
        };
        let (scheme, rest) = (text[..colon].to_ascii_lowercase(), &text[colon + 1..]);
        let (place, query) = split(rest, b'?');
        let is_tcp = matches!(&scheme[..], b"nbd" | b"nbds" | b"nbd+tcp" | b"nbds+tcp");
        let parameters = query.split(|byte| matches!(byte, b'&' | b';'));
        let files = parameters.filter_map(|parameter| {
            let (key, value) = split(parameter, b'=');
            let is_file = matches!(key, b"tls-certificates" | b"tls-psk-file");
            is_file.then(|| PathBuf::from(OsString::from_vec(decode(value))))
        });
        Self {
            port: if is_tcp { port(place) } else { None },
            is_unix: scheme.ends_with(b"+unix"),
            is_hypervisor: scheme.ends_with(b"+vsock"),
            is_encrypted: scheme.starts_with(b"nbds"),
            files: files.collect(),
        }
    }
}

/// The port of `//[USER@]HOST[:PORT][/EXPORT]`.
fn port(place: &[u8]) -> Option<u16> {
    let (authority, _) = split(place.strip_prefix(b"//")?, b'/');
    let after_user = authority.rsplit(|&byte| byte == b'@').next()?;
    // An IPv6 address has colons of its own, in brackets.
    let after_address = after_user.rsplit(|&byte| byte == b']').next()?;
    match split(after_address, b':').1 {
        b"" => Some(DEFAULT_PORT),
        digits => std::str::from_utf8(digits).ok()?.parse().ok(),
    }
}

fn split(text: &[u8], at: u8) -> (&[u8], &[u8]) {
    match text.iter().position(|&byte| byte == at) {
        Some(position) => (&text[..position], &text[position + 1..]),
        None => (text, b""),
    }
}

/// Undoes percent-encoding.
fn decode(text: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, tail)) = rest.split_first() {
        let code = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = code.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match code.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if first == b'%' => {
                decoded.push(byte);
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

const DEFAULT_PORT: u16 = 10809;

#[cfg(test)]
mod tests {
    use super::*;

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
            ("host:1", None),
            ("", None),
        ] {
            assert_eq!(Uri::new(uri.as_bytes()).port, port, "{uri}");
        }
    }

    #[test]
    fn files() {
        let uri = Uri::new(b"nbds+unix:///?socket=/s&tls-psk-file=/a%20b%2&tls-certificates=c;x=y");
        assert_eq!(uri.files, [PathBuf::from("/a b%2"), PathBuf::from("c")]);
        assert!(uri.is_encrypted);
        assert_eq!(Uri::new(b"nbd://host").files, [""; 0].map(PathBuf::from));
    }
}
