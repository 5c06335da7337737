//! Internal snapshots as users see them.

use std::time::Duration;

/// An internal snapshot of an image.
///
/// The texts come from the image, which may be hostile. They are usually UTF-8, and may be 65535 bytes long.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// Id, by which [`OpenOptions::snapshot`](crate::OpenOptions::snapshot) finds it first.
    pub id: Vec<u8>,
    /// Name.
    pub name: Vec<u8>,
    /// Time since 1970 in UTC at which it was taken, as the image states it.
    pub created: Duration,
    /// Size of the content in bytes.
    pub virtual_size: u64,
    /// Size of the saved state of the virtual machine in bytes, 0 without one.
    pub vm_state_size: u64,
}
