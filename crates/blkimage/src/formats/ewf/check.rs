//! Reads all chunks and compares their Adler-32, for `blkhash check`.

use super::Ewf;
use crate::check::{Finding, Reason, Severity, Summary, Visitor};
use crate::error::{ErrorKind, Result};
use crate::layer::Layer;

impl Ewf {
    /// Passes each chunk that is damaged to `visitor`.
    pub(super) fn check(&self, visitor: &mut dyn Visitor) -> Result<Summary> {
        let mut summary = Summary {
            unit: self.chunks.chunk,
            units: self.acquisition.chunks,
            verified: "Adler-32",
            is_complete: true,
            ..Summary::default()
        };
        let mut buf =
            vec![0; (self.chunks.chunk.max(STEP) / self.chunks.chunk * self.chunks.chunk) as usize];
        let mut offset = 0;
        while offset < self.chunks.size {
            let length = (self.chunks.size - offset).min(buf.len() as u64);
            if self.readers.read(&self.chunks, &mut buf[..length as usize], offset).is_err() {
                self.check_each(offset, length, &mut buf, &mut summary, visitor)?;
            }
            if visitor.advance(length).is_break() {
                return Ok(summary);
            }
            offset += length;
        }
        self.check_unchanged()?;
        Ok(summary)
    }

    /// Reads each chunk alone.
    fn check_each(
        &self,
        start: u64,
        length: u64,
        buf: &mut [u8],
        summary: &mut Summary,
        visitor: &mut dyn Visitor,
    ) -> Result<()> {
        for offset in (start..start + length).step_by(self.chunks.chunk as usize) {
            let length = (self.chunks.size - offset).min(self.chunks.chunk);
            let Err(error) = self.readers.read(&self.chunks, &mut buf[..length as usize], offset)
            else {
                continue;
            };
            let severity = match error.kind() {
                ErrorKind::Corrupt => Severity::Error,
                _ if error.is_of_bytes() => Severity::Unchecked,
                _ => return Err(error),
            };
            let finding = Finding {
                severity,
                structure: "chunk",
                offset: error.offset().unwrap_or(0),
                length: 0,
                guest: Some(offset),
                reason: Reason::Invalid(error.reason().to_owned()),
                count: 1,
            };
            summary.add(&finding);
            visitor.finding(finding);
        }
        Ok(())
    }
}

/// Number of bytes of content that are read at once, or a chunk if that is larger.
const STEP: u64 = 1 << 20;
