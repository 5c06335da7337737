//! What every reader of a kind of file systems does.

use crate::error::Result;
use crate::kind::Kind;
use crate::visitor::{ObjectId, Visitor, Wanted};

/// A reader of one kind of file systems.
pub(crate) trait Reader: Send + Sync {
    /// Returns the kind.
    fn kind(&self) -> Kind;

    /// Returns the number of bytes that the file system covers, from offset 0 on.
    fn size(&self) -> u64;

    /// Returns the label as stored, if it has one.
    fn label(&self) -> Option<Vec<u8>>;

    /// Returns the UUID or serial number as `blkid` prints it, if it has one.
    fn uuid(&self) -> Option<String>;

    /// Returns what a user should know of the state, such as a journal that was not replayed: one sentence each, without
    /// a full stop.
    fn remarks(&self) -> Vec<String>;

    /// Returns whether the state that is read is the one that the next mount shows. If not, what is free may be in use then.
    fn is_settled(&self) -> bool {
        true
    }

    /// Returns the number of the top directory.
    fn root(&self) -> ObjectId;

    /// Reports to `visitor` what is wanted.
    fn walk(&self, wanted: Wanted, visitor: &mut dyn Visitor) -> Result<()>;
}
