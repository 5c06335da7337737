//! gzip: members one after the other, and zeros or the metadata of OpenWrt after them. `bgzip` states the size of each.

use std::io::{self, Read};

use flate2::{Decompress, FlushDecompress, Status};

use super::input::Input;
use super::openwrt;
use super::unit::{Unit, Units};
use crate::storage::Storage;

/// Decodes members.
pub(super) struct Gzip<R> {
    input: Input<R>,
    inflate: Decompress,
    place: Place,
    takes_padding: bool,
}

enum Place {
    Member,
    /// After a member.
    Between,
    End,
}

impl<R: Read> Gzip<R> {
    pub fn new(reader: R, start: u64, takes_padding: bool) -> Self {
        Self {
            input: Input::new(reader, start),
            inflate: Decompress::new_gzip(WINDOW_BITS),
            place: Place::Member,
            takes_padding,
        }
    }

    /// Continues with the next member, or to the end.
    fn next_member(&mut self) -> io::Result<()> {
        match self.input.fill()?.first() {
            None => self.place = Place::End,
            Some(&first) if first == MAGIC[0] => {
                self.inflate = Decompress::new_gzip(WINDOW_BITS);
                self.place = Place::Member;
            }
            Some(_) if self.takes_padding => {
                self.skip_trailer()?;
                self.place = Place::End;
            }
            Some(_) => return Err(self.input.trailing("gzip")),
        }
        Ok(())
    }

    /// Tapes have zeros after the last member, and images of OpenWrt have metadata.
    fn skip_trailer(&mut self) -> io::Result<()> {
        let other = self.input.trailing("gzip");
        let mut zeros = 0;
        loop {
            let bytes = self.input.fill()?;
            let (count, length) =
                (bytes.iter().take_while(|byte| **byte == 0).count(), bytes.len());
            self.input.consume(count);
            zeros += count as u64;
            match length {
                0 => return Ok(()),
                _ if count < length => break,
                _ => {}
            }
        }
        if zeros > openwrt::MAX_LENGTH {
            return Err(other);
        }
        // Metadata may begin with zeros.
        let mut rest = vec![0; zeros as usize];
        (&mut self.input).take(openwrt::MAX_LENGTH).read_to_end(&mut rest)?;
        let is_all = self.input.fill()?.is_empty();
        if is_all && openwrt::is_metadata(&rest) { Ok(()) } else { Err(other) }
    }
}

impl<R: Read> Read for Gzip<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while !buf.is_empty() {
            match self.place {
                Place::End => break,
                Place::Between => {
                    self.next_member()?;
                    continue;
                }
                Place::Member => {}
            }
            let bytes = self.input.fill()?;
            let is_over = bytes.is_empty();
            let before = (self.inflate.total_in(), self.inflate.total_out());
            let status = self.inflate.decompress(bytes, buf, FlushDecompress::None);
            self.input.consume((self.inflate.total_in() - before.0) as usize);
            let count = (self.inflate.total_out() - before.1) as usize;
            match status {
                Ok(Status::StreamEnd) => self.place = Place::Between,
                Ok(_) if count == 0 && is_over => return Err(self.input.truncated("gzip")),
                Ok(_) => {}
                Err(_) => return Err(self.input.damaged("gzip stream is damaged")),
            }
            if count > 0 {
                return Ok(count);
            }
        }
        Ok(0)
    }
}

/// Returns the members of a file by `bgzip`. `None` if a member does not state its size.
pub(super) fn units(storage: &dyn Storage, mut units: Units) -> io::Result<Option<Vec<Unit>>> {
    let (mut offset, size) = (0, storage.size());
    let mut header = [0; BGZIP_HEADER];
    while offset < size {
        if size - offset < MIN_BGZIP {
            return Ok(None);
        }
        storage.read_exact_at(&mut header, offset)?;
        let is_bgzip =
            header[..4] == [MAGIC[0], MAGIC[1], 8, 4] && header[10..16] == [6, 0, b'B', b'C', 2, 0];
        let length = u64::from(u16::from_le_bytes([header[16], header[17]])) + 1;
        if !is_bgzip || length < MIN_BGZIP || length > size - offset {
            return Ok(None);
        }
        let mut content = [0; 4];
        storage.read_exact_at(&mut content, offset + length - 4)?;
        let content = u64::from(u32::from_le_bytes(content));
        if content > MAX_BGZIP {
            return Ok(None);
        }
        units.push(length, content)?;
        offset += length;
    }
    Ok(Some(units.finish()))
}

pub(super) const MAGIC: [u8; 2] = [0x1f, 0x8b];
const WINDOW_BITS: u8 = 15;
const BGZIP_HEADER: usize = 18;
/// A header, an empty block and a trailer.
const MIN_BGZIP: u64 = 28;
const MAX_BGZIP: u64 = 1 << 16;
