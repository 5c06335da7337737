//! The object of `blkhash info`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use blkrecord::{Name, record};

use super::chain::ChainImage;

record! {
    /// An image.
    pub struct Info<'a> {
        /// name of the image
        pub name: Name<'a>,
        /// format of the image
        pub format: &'static str,
        /// bytes of its content
        pub virtual_size: u64,
        /// the image and its backing files, top first
        pub chain: Vec<ChainImage>,
        /// the internal snapshots; null if the format has none that can be read
        pub snapshots: Option<Vec<Snapshot<'a>>>,
        /// `gpt` or `mbr`; null without a table
        pub partition_table: Option<&'static str>,
        /// the partitions, by number
        pub partitions: Vec<Partition<'a>>,
        /// what is wrong with the table, of which then nothing, a part, or the backup of a GPT is listed
        pub partition_problem: Option<String>,
    }
}

record! {
    /// An internal snapshot.
    pub struct Snapshot<'a> {
        /// its id, for `--snapshot`
        pub id: Name<'a>,
        /// its name, for `--snapshot`
        pub name: Name<'a>,
        /// when it was taken, in UTC, as in `2026-11-25T12:00:00Z`
        pub created: String,
        /// bytes of its content
        pub virtual_size: u64,
        /// bytes of the saved state of the virtual machine, 0 without
        pub vm_state_size: u64,
    }
}

record! {
    /// A partition.
    pub struct Partition<'a> {
        /// its number, for `--partition`
        pub number: u32,
        /// offset of its first byte
        pub offset: u64,
        /// its bytes
        pub length: u64,
        /// its type: a GUID, or in an MBR a byte in hexadecimal
        pub r#type: String,
        /// the name of a common type
        pub type_name: Option<&'static str>,
        /// its unique id; null in an MBR
        pub uuid: Option<String>,
        /// its name in a GPT; empty without one
        pub label: &'a str,
    }
}

impl<'a> Snapshot<'a> {
    /// Describes a snapshot.
    pub fn new(snapshot: &'a blkimage::Snapshot) -> Self {
        Self {
            id: Name::new(OsStr::from_bytes(&snapshot.id)),
            name: Name::new(OsStr::from_bytes(&snapshot.name)),
            created: blksys::utc(snapshot.created),
            virtual_size: snapshot.virtual_size,
            vm_state_size: snapshot.vm_state_size,
        }
    }
}

impl<'a> Partition<'a> {
    /// Describes a partition.
    pub fn new(
        part: &blkimage::partition::Partition,
        details: &'a blkimage::partition::Details,
    ) -> Self {
        Self {
            number: part.number,
            offset: part.offset,
            length: part.length,
            r#type: details.kind.to_string(),
            type_name: details.kind.name(),
            uuid: details.uuid.map(|uuid| uuid.to_string()),
            label: &details.name,
        }
    }
}
