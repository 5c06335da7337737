//! A temporary file for a map, which stays in memory while it is small.

use std::fs::File;
use std::io;

use blkmap::{Output, ReadAt};

/// The content of the file.
pub(crate) enum Spool {
    Memory(Vec<u8>),
    /// A file without a name.
    File(File),
}

impl Spool {
    pub fn new() -> Self {
        Self::Memory(Vec::new())
    }
}

impl Output for Spool {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::File(file) => file.append(bytes),
            Self::Memory(memory) if memory.len() + bytes.len() <= MAX_MEMORY => {
                memory.extend_from_slice(bytes);
                Ok(())
            }
            Self::Memory(memory) => {
                let mut file = tempfile::tempfile()?;
                file.append(memory)?;
                file.append(bytes)?;
                *self = Self::File(file);
                Ok(())
            }
        }
    }

    /// Returns at once: the file ends with the process.
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn written(&self) -> Option<&dyn ReadAt> {
        Some(self)
    }
}

impl ReadAt for Spool {
    fn length(&self) -> io::Result<u64> {
        match self {
            Self::Memory(memory) => memory.length(),
            Self::File(file) => file.length(),
        }
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        match self {
            Self::Memory(memory) => memory.read_exact_at(buf, offset),
            Self::File(file) => ReadAt::read_exact_at(file, buf, offset),
        }
    }
}

/// Maximum size of the map of an index in memory. A larger one is a temporary file.
/// Limit in bytes.
const MAX_MEMORY: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_content_goes_to_a_file() {
        let mut spool = Spool::new();
        spool.append(&vec![1; MAX_MEMORY]).unwrap();
        assert!(matches!(spool, Spool::Memory(_)));
        spool.append(&[2; 3]).unwrap();
        spool.append(&[3; 2]).unwrap();
        assert!(matches!(spool, Spool::File(_)));
        assert_eq!(spool.length().unwrap(), MAX_MEMORY as u64 + 5);
        let mut end = [0; 6];
        spool.read_exact_at(&mut end, MAX_MEMORY as u64 - 1).unwrap();
        assert_eq!(end, [1, 2, 2, 2, 3, 3]);
    }
}
