//! What is looked at in a URI before libnbd takes it apart.

use std::ffi::CString;

/// A URI of a scheme that libnbd knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Uri {
    pub text: CString,
    /// It asks for TLS, and is not read without.
    pub is_encrypted: bool,
}

impl Uri {
    /// The error is the reason that it cannot be used.
    pub fn new(uri: &str) -> Result<Self, String> {
        let (scheme, rest) = uri.split_once(':').ok_or("is not a URI")?;
        let scheme = scheme.to_ascii_lowercase();
        let is_encrypted = match scheme.as_str() {
            "nbd" | "nbd+unix" | "nbd+vsock" => false,
            "nbds" | "nbds+unix" | "nbds+vsock" => true,
            "nbd+tcp" | "nbds+tcp" => {
                let plain = &scheme[..scheme.len() - "+tcp".len()];
                return Err(format!("{scheme}: is not known, use {plain}://HOST:PORT/EXPORT"));
            }
            "nbd+ssh" | "nbds+ssh" => {
                return Err(format!(
                    "{scheme}: is not supported, forward a socket with ssh -L and use \
                     nbd+unix:///EXPORT?socket=PATH"
                ));
            }
            _ => return Err("is not a URI of a network block device".into()),
        };
        let authority = rest.strip_prefix("//").ok_or("has no // after its scheme")?;
        let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':')) {
            return Err("holds a password, which NBD has no use for: use tls-psk-file".into());
        }
        let text = CString::new(format!("{scheme}:{rest}")).map_err(|_| "contains a NUL")?;
        Ok(Self { text, is_encrypted })
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
}
