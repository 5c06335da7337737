//! Numbers in headers and tables.

use crate::error::{ErrorKind, Result};
use crate::storage::HostFile;

/// Consecutive bytes of a file, usually the first ones, all of them present.
pub(crate) struct Head<'a> {
    file: &'a HostFile,
    bytes: Vec<u8>,
}

impl<'a> Head<'a> {
    /// Reads `length` bytes from `offset` on.
    pub fn read(file: &'a HostFile, offset: u64, length: usize) -> Result<Self> {
        check_inside(file, offset, length as u64, "header")?;
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, offset)?;
        Ok(Self { file, bytes })
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn starts_with(&self, magic: &[u8]) -> bool {
        self.bytes.starts_with(magic)
    }

    fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut array = [0; N];
        array.copy_from_slice(&self.bytes[at..at + N]);
        array
    }

    pub fn le32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }

    pub fn le64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }

    pub fn be32(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.array(at))
    }

    pub fn be64(&self, at: usize) -> u64 {
        u64::from_be_bytes(self.array(at))
    }

    /// Reads a name that is stored elsewhere in the file.
    pub fn name(&self, what: &str, offset: u64, length: u32) -> Result<Vec<u8>> {
        if length > MAX_NAME {
            let reason = format!("the name of its {what} is longer than {MAX_NAME} bytes");
            return Err(self.file.corrupt(reason));
        }
        check_inside(self.file, offset, u64::from(length), what)?;
        let mut name = vec![0; length as usize];
        self.file.read_exact_at(&mut name, offset)?;
        Ok(name)
    }
}

/// Returns `N` bytes at a constant offset of a buffer, which must be long enough.
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

/// The encoding of the entries of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Entry {
    Le32,
    Be32,
    Le64,
    Be64,
}

impl Entry {
    /// Returns the size of an entry in bytes.
    pub fn width(self) -> usize {
        match self {
            Self::Le32 | Self::Be32 => 4,
            Self::Le64 | Self::Be64 => 8,
        }
    }

    /// Decodes all entries of a part of a table.
    pub fn decode_all<T: FromIterator<u64>>(self, bytes: &[u8]) -> T {
        match self {
            Self::Le32 => {
                bytes.as_chunks().0.iter().map(|it| u32::from_le_bytes(*it).into()).collect()
            }
            Self::Be32 => {
                bytes.as_chunks().0.iter().map(|it| u32::from_be_bytes(*it).into()).collect()
            }
            Self::Le64 => bytes.as_chunks().0.iter().map(|it| u64::from_le_bytes(*it)).collect(),
            Self::Be64 => bytes.as_chunks().0.iter().map(|it| u64::from_be_bytes(*it)).collect(),
        }
    }
}

/// Fails unless the range is in the file. QEMU would read zeros past the end.
pub(crate) fn check_inside(file: &HostFile, offset: u64, length: u64, what: &str) -> Result<()> {
    if offset.checked_add(length).is_some_and(|end| end <= file.size()) {
        return Ok(());
    }
    let reason = format!("a {what} lies past the end of the file, which was probably cut off");
    Err(file.error(ErrorKind::Corrupt, reason).at(offset))
}

/// Maximum length of the name of another file in an image, as in qcow2.
/// Limit in bytes.
const MAX_NAME: u32 = 1023;

/// Calls `visit` with the index and the value of every entry of a table.
pub(crate) fn for_each_entry(
    file: &HostFile,
    offset: u64,
    count: u64,
    entry: Entry,
    mut visit: impl FnMut(u64, u64) -> Result<()>,
) -> Result<()> {
    let length = count.saturating_mul(entry.width() as u64);
    check_inside(file, offset, length, "table")?;
    let mut index = 0;
    for start in (0..length).step_by(WINDOW) {
        let mut window = vec![0; (length - start).min(WINDOW as u64) as usize];
        file.read_exact_at(&mut window, offset + start)?;
        for value in entry.decode_all::<Vec<_>>(&window) {
            visit(index, value)?;
            index += 1;
        }
    }
    Ok(())
}

/// Number of bytes of a table that are read at once.
const WINDOW: usize = 64 << 10;
