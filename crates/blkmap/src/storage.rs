//! The storage of a map.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Bytes that can be read at any offset.
pub trait ReadAt: Send + Sync {
    /// Returns the number of bytes.
    ///
    /// # Errors
    ///
    /// Fails if the system cannot say.
    fn length(&self) -> io::Result<u64>;

    /// Fills all of `buf` with the bytes from `offset` on.
    ///
    /// # Errors
    ///
    /// Fails if they cannot be read, or end earlier.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;
}

/// A file that a map is appended to.
pub trait Output {
    /// Appends bytes.
    ///
    /// # Errors
    ///
    /// Fails if they cannot be written.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Returns when everything is on the disk.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be brought there.
    fn sync(&mut self) -> io::Result<()>;

    /// Returns what was written, or `None` if it cannot be read again, as in a pipe.
    fn written(&self) -> Option<&dyn ReadAt>;
}

/// An output that cannot be read again. The writer keeps 32 bytes for each page that it wrote.
#[derive(Debug)]
pub struct Pipe<W>(pub W);

impl ReadAt for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        FileExt::read_exact_at(self, buf, offset)
    }
}

impl ReadAt for Vec<u8> {
    fn length(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let start = usize::try_from(offset).ok();
        let bytes = start.and_then(|start| self.get(start..)?.get(..buf.len()));
        buf.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

impl<R: ReadAt + ?Sized> ReadAt for Arc<R> {
    fn length(&self) -> io::Result<u64> {
        (**self).length()
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        (**self).read_exact_at(buf, offset)
    }
}

impl Output for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn written(&self) -> Option<&dyn ReadAt> {
        Some(self)
    }
}

impl Output for Vec<u8> {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn written(&self) -> Option<&dyn ReadAt> {
        Some(self)
    }
}

impl<W: Write> Output for Pipe<W> {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.flush()
    }

    fn written(&self) -> Option<&dyn ReadAt> {
        None
    }
}
