//! Images that have their header at the end, in content whose end is not read first.

use std::io;

use crate::probe;

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
    pub fn check(&self) -> io::Result<()> {
        if probe::probe_footer(&self.0).is_none() {
            return Ok(());
        }
        let reason = "ends like a vpc or dmg image, whose end must be read first: decompress it, or say what it is";
        Err(io::Error::new(io::ErrorKind::Unsupported, reason))
    }
}

/// Length of the footers of images.
const FOOTER: usize = 512;
