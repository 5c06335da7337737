//! Passes the content of a source on while it is hashed.

use blkhash::SinkError;

use crate::Error;
use crate::memory::Data;
use crate::plan::{Chunk, Piece};

/// Receives the content of a source in the pass that hashes it: each byte at least once, in any order and from several
/// threads at once.
///
/// Bytes come again if they changed after they were passed on. The last ones are those that are hashed.
pub trait Tee: Sync {
    /// Takes the bytes from `offset` on, which may be zeros as well.
    ///
    /// # Errors
    ///
    /// An error ends the pass, which fails with [`Error::Sink`].
    fn data(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError>;

    /// Takes zeros that the source does not store.
    ///
    /// # Errors
    ///
    /// An error ends the pass, which fails with [`Error::Sink`].
    fn zeros(&self, offset: u64, length: u64) -> Result<(), SinkError>;
}

/// Passes on a chunk whose data is in memory.
pub(crate) fn pass_on(tee: &dyn Tee, chunk: &Chunk, mut data: Data<'_>) -> Result<(), Error> {
    for piece in &chunk.pieces {
        match *piece {
            Piece::Zeros { offset, length } => tee.zeros(offset, length).map_err(Error::Sink)?,
            Piece::Data { offset, length } => {
                let (mut position, mut result) = (offset, Ok(()));
                data.next(length, |part| {
                    if result.is_ok() {
                        result = tee.data(position, part);
                    }
                    position += part.len() as u64;
                });
                result.map_err(Error::Sink)?;
            }
        }
    }
    Ok(())
}
