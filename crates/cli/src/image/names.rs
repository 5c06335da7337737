//! What was meant by the name of a file that does not exist.

use std::ffi::OsStr;

use blkimage::Location;

use crate::messages;

/// Returns what to do about the name of an image that does not exist, if it is a URI or is meant as one.
pub fn missing(name: &OsStr) -> Option<String> {
    if Location::new(name).is_url() {
        return None;
    }
    let text = name.to_string_lossy();
    let (scheme, rest) = text.split_once(':')?;
    if scheme == "nbd" {
        return Some(format!("as a URI it is {}", nbd_uri(rest)));
    }
    let place = rest.strip_prefix("//").filter(|_| is_scheme(scheme))?;
    let other = || format!("only URIs of NBD, HTTP and S3 servers can be read, such as {READ}");
    let pipe = match messages::program() {
        "blkcopy" => "| blkcopy - DESTINATION copies it, if it is raw",
        "blksum" => "| blksum hashes it, if it is raw",
        _ => "> FILE downloads it",
    };
    Some(match scheme.to_ascii_lowercase().as_str() {
        "file" => match place.find('/') {
            Some(at) => format!("give the path, {}", &place[at..]),
            None => "give the path alone".into(),
        },
        "ftp" => format!("{}: curl -L URL {pipe}", other()),
        "gs" => format!("{}: gcloud storage cat URL {pipe}", other()),
        "ssh" | "sftp" => format!("{}: ssh HOST cat FILE {pipe}", other()),
        "docker" | "oci" => {
            "skopeo copy docker://NAME oci-archive:vm.oci.tar fetches an image".into()
        }
        _ => other(),
    })
}

/// Returns what to do about the name of a destination whose folder does not exist, if it is a URI.
pub fn missing_destination(name: &OsStr) -> Option<String> {
    let text = name.to_string_lossy();
    let (scheme, _) = text.split_once("://").filter(|(scheme, _)| is_scheme(scheme))?;
    Some(match scheme.to_ascii_lowercase().as_str() {
        "file" => return missing(name),
        "s3" => "blkcopy SOURCE - | aws s3 cp - URL copies to it".into(),
        "gs" => "blkcopy SOURCE - | gcloud storage cp - URL copies to it".into(),
        "http" | "https" => {
            "curl --upload-file FILE URL uploads a copy, where the server allows it".into()
        }
        _ => format!("only URIs of NBD servers can be written to, such as {URI}"),
    })
}

/// Returns the URI for what follows `nbd:` in QEMU's old syntax, `HOST:PORT` or `unix:SOCKET`, each
/// with an optional `:exportname=NAME`.
fn nbd_uri(rest: &str) -> String {
    let (server, export) = rest.split_once(":exportname=").unwrap_or((rest, ""));
    let export = encode(export, "/");
    match server.strip_prefix("unix:") {
        Some(socket) => format!("'nbd+unix:///{export}?socket={}'", encode(socket, "/")),
        None if export.is_empty() => format!("nbd://{}", encode(server, ":[]")),
        None => format!("nbd://{}/{export}", encode(server, ":[]")),
    }
}

/// Encodes text for a URI. The characters in `literal` stand for themselves.
fn encode(text: &str, literal: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        let char = char::from(byte);
        if char.is_ascii_alphanumeric() || "-._~".contains(char) || literal.contains(char) {
            out.push(char);
        } else {
            out += &format!("%{byte:02X}");
        }
    }
    out
}

fn is_scheme(text: &str) -> bool {
    let is_part = |char: char| char.is_ascii_alphanumeric() || "+-.".contains(char);
    !text.is_empty() && text.chars().all(is_part)
}

const READ: &str = "nbd://host/export, https://host/disk.qcow2 and s3://bucket/key";

const URI: &str = "nbd://host/export and nbd+unix:///export?socket=path";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_for_names_that_failed() {
        let hint = |name: &str| missing(OsStr::new(name)).unwrap_or_default();
        assert_eq!(hint("nbd:h:1"), "as a URI it is nbd://h:1");
        let uris = [
            ("unix:/p/n.sock:exportname=vm1", "'nbd+unix:///vm1?socket=/p/n.sock'"),
            ("unix:/p/n.sock", "'nbd+unix:///?socket=/p/n.sock'"),
            (
                "unix:/p/a b&c.sock:exportname=a/b?c",
                "'nbd+unix:///a/b%3Fc?socket=/p/a%20b%26c.sock'",
            ),
            ("h:10809:exportname=x", "nbd://h:10809/x"),
            ("[::1]:10809:exportname=é'", "nbd://[::1]:10809/%C3%A9%27"),
        ];
        for (name, uri) in uris {
            let hint = hint(&format!("nbd:{name}"));
            assert_eq!(hint, format!("as a URI it is {uri}"));
        }
        assert!(hint("ftp://x").contains(READ));
        for name in ["x", "a:b", "://x", "a b://x", "\x1b://x"] {
            assert_eq!(hint(name), "", "{name}");
        }
        assert_eq!(hint("file:///srv/disk.img"), "give the path, /srv/disk.img");
        assert_eq!(hint("file://localhost/disk.img"), "give the path, /disk.img");
        assert!(hint("gs://bucket/disk.img").contains("gcloud storage cat URL"));
        assert!(hint("docker://fedora").starts_with("skopeo copy docker://"));
    }
}
