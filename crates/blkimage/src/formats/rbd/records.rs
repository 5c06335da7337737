//! The records of an export: a tag, the length of the body, and the body.

use crate::error::Result;
use crate::formats::fields::{array, check_inside};
use crate::storage::HostFile;

/// Reads records one after another.
pub(super) struct Records<'a> {
    file: &'a HostFile,
    /// Offset of the next byte.
    offset: u64,
    /// Number of records so far.
    count: u32,
    /// Bytes from `window_start` on, so that a record is read at once.
    window: Vec<u8>,
    window_start: u64,
}

/// A record, whose body is next.
pub(super) struct Record {
    pub tag: u8,
    /// Offset of its tag.
    pub offset: u64,
    /// Length that it states of its body.
    length: u64,
}

/// The body of a record that writes data or zeros.
pub(super) struct Extent {
    pub guest: u64,
    pub length: u64,
    /// Offset of the data in the file. `None` for zeros.
    pub data: Option<u64>,
}

impl<'a> Records<'a> {
    pub fn new(file: &'a HostFile) -> Self {
        Self { file, offset: 0, count: 0, window: Vec::new(), window_start: 0 }
    }

    pub fn file(&self) -> &'a HostFile {
        self.file
    }

    /// Offset of the next byte.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads a line that begins a part of the export.
    pub fn banner(&mut self, banner: &[u8]) -> Result<()> {
        let offset = self.offset;
        if self.bytes(banner.len())? != banner {
            let text = banner.trim_ascii_end().escape_ascii();
            let reason = format!("has something else in place of \"{text}\"");
            return Err(self.file.corrupt(reason).at(offset));
        }
        Ok(())
    }

    /// Returns the next record, or `None` if it is the one with the tag `end`. Its body must be read before the next call.
    pub fn next(&mut self, end: u8) -> Result<Option<Record>> {
        let offset = self.offset;
        self.count += 1;
        if self.count > MAX_RECORDS {
            let reason = format!("has more than {MAX_RECORDS} records");
            return Err(self.file.corrupt(reason).at(offset));
        }
        let [tag] = array(self.bytes(1)?, 0);
        if tag == end {
            return Ok(None);
        }
        Ok(Some(Record { tag, offset, length: self.number()? }))
    }

    /// Fails unless this is the end of the file.
    pub fn end(&self) -> Result<()> {
        match self.file.size() - self.offset {
            0 => Ok(()),
            left => {
                let reason = format!("has {left} bytes after its last difference");
                Err(self.file.corrupt(reason).at(self.offset))
            }
        }
    }

    /// Reads a number that is not in a record.
    pub fn number(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(array(self.bytes(8)?, 0)))
    }

    /// Reads the body of a record that is a number.
    pub fn value(&mut self, record: &Record) -> Result<u64> {
        self.check_length(record, 8)?;
        self.number()
    }

    /// Reads the body of a record that is the name of a snapshot.
    pub fn name(&mut self, record: &Record) -> Result<Vec<u8>> {
        let length = self.text_length()?;
        self.check_length(record, 4 + u64::from(length))?;
        if length > MAX_NAME {
            let reason = format!("has a name of a snapshot of more than {MAX_NAME} bytes");
            return Err(self.file.corrupt(reason).at(record.offset));
        }
        self.bytes(length as usize).map(<[u8]>::to_vec)
    }

    /// Skips the body of a record that says whether a snapshot is protected. It has one byte, and `rbd` states a length of 8.
    pub fn protection(&mut self, record: &Record) -> Result<()> {
        if record.length != 1 {
            self.check_length(record, 8)?;
        }
        self.skip(1)
    }

    /// Skips the body of a record with a key and a value of metadata.
    pub fn metadata(&mut self, record: &Record) -> Result<()> {
        let key = self.text_length()?;
        self.skip(key.into())?;
        let value = self.text_length()?;
        self.skip(value.into())?;
        self.check_length(record, 8 + u64::from(key) + u64::from(value))
    }

    /// Reads the body of a record that writes data or zeros, and skips the data.
    pub fn extent(&mut self, record: &Record) -> Result<Extent> {
        let bytes = self.bytes(16)?;
        let number = |at| u64::from_le_bytes(array(bytes, at));
        let (guest, length) = (number(0), number(8));
        if record.tag == b'z' {
            self.check_length(record, 16)?;
            return Ok(Extent { guest, length, data: None });
        }
        self.check_length(record, length.saturating_add(16))?;
        let data = self.offset;
        self.skip(length)?;
        Ok(Extent { guest, length, data: Some(data) })
    }

    fn text_length(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(array(self.bytes(4)?, 0)))
    }

    /// Fails unless a record states that it has this many bytes.
    fn check_length(&self, record: &Record, length: u64) -> Result<()> {
        if record.length == length {
            return Ok(());
        }
        let (tag, stated) = (record.tag.escape_ascii(), record.length);
        let reason =
            format!("has a record of the kind \"{tag}\" with {stated} bytes, not {length}");
        Err(self.file.corrupt(reason).at(record.offset))
    }

    fn bytes(&mut self, length: usize) -> Result<&[u8]> {
        let offset = self.offset;
        self.skip(length as u64)?;
        if self.offset > self.window_start + self.window.len() as u64 {
            let left = self.file.size() - offset;
            self.window.resize(WINDOW.min(left).max(length as u64) as usize, 0);
            self.file.read_exact_at(&mut self.window, offset)?;
            self.window_start = offset;
        }
        let at = (offset - self.window_start) as usize;
        Ok(&self.window[at..at + length])
    }

    fn skip(&mut self, length: u64) -> Result<()> {
        check_inside(self.file, self.offset, length, "record")?;
        self.offset += length;
        Ok(())
    }
}

/// Number of bytes that are read at once, more than a record has without its data.
const WINDOW: u64 = 512;

/// Maximum number of records of an rbd export, each of which is read when the export is opened.
/// Limit in records.
const MAX_RECORDS: u32 = 1 << 24;

/// Maximum length of the name of a snapshot in an rbd export, as in `rbd import`.
/// Limit in bytes.
const MAX_NAME: u32 = 4096;
