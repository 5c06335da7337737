//! Keys of encrypted images.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

/// The secret that unlocks an encrypted image: all bytes of a file, as in QEMU.
///
/// [`Debug`] does not print it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<[u8]>);

impl Secret {
    /// Reads the file at `path`, which may be a pipe.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or holds more than 8 MiB.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut bytes = Vec::new();
        File::open(path)?.take(MAX_SECRET + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_SECRET {
            return Err(io::Error::other(format!("a secret has at most {MAX_SECRET} bytes")));
        }
        Ok(Self::new(&bytes))
    }

    /// Creates a secret from these bytes.
    pub fn new(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }

    #[cfg(feature = "qemu-nbd")]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Maximum size of a secret: as of the largest key file of cryptsetup. Limit in bytes.
const MAX_SECRET: u64 = 8 << 20;
