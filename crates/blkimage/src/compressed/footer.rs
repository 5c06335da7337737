//! Images that have their header at the end, in content whose end is not read first.

use std::io;

use crate::compression::Compression;
use crate::probe::{self, Format};

/// The last bytes of content.
#[derive(Default)]
pub(super) struct Tail(Vec<u8>);

impl Tail {
    /// Number of bytes that are kept: an image has its header in the last sector.
    pub const LENGTH: u64 = FOOTER as u64;

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Takes the bytes that follow the last ones.
    pub fn push(&mut self, bytes: &[u8]) {
        let last = &bytes[bytes.len().saturating_sub(FOOTER)..];
        let surplus = (self.0.len() + last.len()).saturating_sub(FOOTER);
        self.0.drain(..surplus);
        self.0.extend_from_slice(last);
    }

    /// Fails if the content ends like an image.
    ///
    /// Without a compression, it is a member of a container.
    pub fn check(&self, compression: Option<Compression>) -> io::Result<()> {
        let undone = compression.map_or_else(String::new, |compression| format!("+{compression}"));
        let reason = match probe::probe_footer(&self.0) {
            None => return Ok(()),
            Some(Format::Vpc) => format!(
                "ends like a vpc image, whose end is read first only if the format is given: vpc{undone}, or raw{undone} for a raw disk"
            ),
            Some(found) => format!(
                "ends like a {found} image, which is read only without compression: decompress it, or give the format raw{undone} for a raw disk"
            ),
        };
        Err(io::Error::new(io::ErrorKind::Unsupported, reason))
    }
}

/// Length of the footers of images.
const FOOTER: usize = 512;
