//! The objects of `blkhash btrfs`.

use std::collections::BTreeMap;

use blkrecord::{Name, record};

use super::common::Named;

record! {
    /// An error.
    pub struct Finding<'a> {
        /// `error`
        pub r#type: &'static str,
        /// the first image of the file system, as it was named on the command line
        pub name: Name<'a>,
        /// what is wrong: `superblock`, `tree block`, `data`, `parity`, `device`, `chunk`, `tree`, `inode`, `file system` or
        /// `block`
        pub subject: &'static str,
        /// number of the superblock, from 0; null for anything else
        pub copy: Option<u64>,
        /// the tree that a tree block, tree or inode belongs to
        pub tree: Option<TreeOf>,
        /// the inode, if the subject is one
        pub inode: Option<u64>,
        /// one of the [categories](#categories)
        pub category: &'static str,
        /// what is wrong, in words
        pub problem: String,
        /// logical address in bytes, if it has one
        pub logical: Option<u64>,
        /// bytes that are wrong
        pub length: u64,
        /// tree blocks or sectors side by side that the object is about
        pub blocks: u64,
        /// the reference that led to a tree block
        pub parent: Option<Parent>,
        /// the mirror that is wrong, from 1
        pub mirror: Option<u32>,
        /// mirrors that there are; 0 if the subject has none
        pub mirrors: u32,
        /// mirrors that are good, from 1
        pub good_mirrors: &'a [u32],
        /// whether it can be rebuilt from parity; null without parity, or if that is unknown
        pub rebuildable: Option<bool>,
        /// number of the device
        pub device: Option<u64>,
        /// name of the image of the device as it was named on the command line, and its partition
        pub device_name: Option<Name<'a>>,
        /// offset on the device in bytes
        pub physical: Option<u64>,
        /// the checksum that is stored, in hexadecimal after `0x`
        pub expected: Option<String>,
        /// the checksum that was computed, in the same form
        pub computed: Option<String>,
        /// files and trees that are hit
        pub owners: Vec<Owner<'a>>,
        /// false if there may be more owners than are listed
        pub owners_complete: bool,
        /// why owners are not known
        pub owners_problem: Option<&'a str>,
    }
}

record! {
    /// The tree that something belongs to.
    pub struct TreeOf {
        /// its number, negative for those at the end of the range; 0 if it is not known
        pub number: i64,
        /// the level of the tree block, 0 is a leaf; null if the subject is none
        pub level: Option<u8>,
    }
}

record! {
    /// A reference to a tree block.
    pub struct Parent {
        /// `superblock`, `root item` or `pointer`
        pub kind: &'static str,
        /// logical address of the tree block with the reference
        #[absent("for `superblock`")]
        pub logical: Option<u64>,
        /// place of the reference within it, from 0
        #[absent("for `superblock`")]
        pub slot: Option<u32>,
    }
}

record! {
    /// A file or tree that is hit.
    #[derive(Default)]
    pub struct Owner<'a> {
        /// number of the subvolume of a file
        #[absent("for trees")]
        pub subvolume: Option<u64>,
        /// inode of a file
        #[absent("for trees")]
        pub inode: Option<u64>,
        /// offset in the file
        #[absent("for trees")]
        pub offset: Option<u64>,
        /// names of the file from the root of its subvolume
        #[absent("for trees")]
        pub paths: Option<Vec<Named<'a>>>,
        /// number of a tree, negative for those at the end of the range
        #[absent("for files")]
        pub tree: Option<i64>,
        /// its name
        #[absent("for files")]
        pub tree_name: Option<&'a str>,
        /// the path of a subvolume
        #[absent("for files")]
        pub path: Option<Option<Named<'a>>>,
    }
}

record! {
    /// The end of a verification.
    pub struct Verification<'a> {
        /// `summary`
        pub r#type: &'static str,
        /// the first image of the file system, as it was named on the command line
        pub name: Name<'a>,
        /// UUID of the file system
        pub fsid: String,
        /// its label
        pub label: Name<'a>,
        /// its checksum: `crc32c`, `xxhash`, `sha256` or `blake2b`
        pub checksum: &'static str,
        /// superblocks that were verified
        pub superblocks: u64,
        /// tree blocks that were verified, all mirrors
        pub tree_blocks: u64,
        /// bytes of these
        pub tree_bytes: u64,
        /// bytes of data that were verified by checksums, all mirrors
        pub data_bytes: u64,
        /// bytes of data without checksums that were read, all mirrors
        pub unchecked_bytes: u64,
        /// checksums that were computed
        pub checksums: u64,
        /// bytes of missing devices that were computed from parity
        pub rebuilt_bytes: u64,
        /// bytes of parity that were verified
        pub parity_bytes: u64,
        /// blocks with an error, by [category](#categories)
        pub errors: BTreeMap<&'static str, u64>,
        /// the part of `errors` that `--max-errors` kept from being printed
        pub errors_not_printed: BTreeMap<&'static str, u64>,
        /// tree blocks that cannot be reached; what is below them may not be verified
        pub lost_blocks: u64,
        /// numbers of missing devices, the first 1024
        pub missing_devices: Vec<u64>,
        /// missing devices
        pub missing_device_count: usize,
        /// bytes on missing devices that were not verified
        pub missing_bytes: u64,
        /// whether the trees were compared with each other
        pub compared: bool,
        /// what is in use, also where it cannot be read; null if the trees that say so are damaged
        pub used: Option<Used>,
        /// `used.unprotected` by reason; null if `used` is
        pub unprotected: Option<Unprotected>,
        /// how long it took
        pub seconds: f64,
    }
}

record! {
    /// What is in use.
    pub struct Used {
        /// bytes of metadata, one mirror
        pub metadata: u64,
        /// bytes of data, one mirror
        pub data: u64,
        /// bytes of data without checksums, one mirror
        pub unprotected: u64,
    }
}

record! {
    /// Data without checksums.
    pub struct Unprotected {
        /// bytes of files that have no checksums
        pub nodatasum: u64,
        /// bytes that are allocated and not written
        pub preallocated: u64,
        /// bytes of the free space cache
        pub internal: u64,
        /// bytes of extents that no file uses any more
        pub other: u64,
    }
}

record! {
    /// A file system.
    pub struct FileSystem<'a> {
        /// UUID of the file system
        pub fsid: String,
        /// its label
        pub label: Name<'a>,
        /// the last transaction
        pub generation: u64,
        /// its checksum: `crc32c`, `xxhash`, `sha256` or `blake2b`
        pub checksum: &'static str,
        /// bytes of a checksum
        pub checksum_size: usize,
        /// bytes of data that a checksum is for
        pub sector_size: u32,
        /// bytes of a tree block
        pub node_size: u32,
        /// bytes of all devices
        pub total_bytes: u64,
        /// bytes in use
        pub bytes_used: u64,
        /// the implementation that `blkhash btrfs verify` computes checksums with
        pub implementation: String,
        /// what the kernel computes checksums with, from /sys/fs/btrfs; null if no mount point was named
        pub kernel: Option<&'a str>,
        /// what to do if the kernel has something faster; null if there is nothing to do
        pub kernel_advice: Option<String>,
        /// what chunks are allocated for
        pub allocations: Vec<Allocation>,
        /// devices that were named
        pub devices: Vec<Device<'a>>,
        /// devices that were not named, the first 256
        pub missing_devices: Vec<MissingDevice>,
        /// devices that were not named
        pub missing_device_count: usize,
        /// features of the file system
        pub features: Vec<&'static str>,
    }
}

record! {
    /// Chunks of a kind.
    pub struct Allocation {
        /// `data`, `metadata`, `system` or `data+metadata`
        pub kind: String,
        /// `single`, `DUP`, `RAID1` and so on
        pub profile: &'static str,
        /// bytes of the chunks, one mirror
        pub size: u64,
        /// bytes of these in use; null if it is not known
        pub used: Option<u64>,
        /// copies of each byte
        pub mirrors: u32,
    }
}

record! {
    /// A device that was named.
    pub struct Device<'a> {
        /// number of the device
        pub id: u64,
        /// name of its image as it was named on the command line, and the partition
        pub name: Name<'a>,
        /// bytes of the image or partition
        pub size: u64,
    }
}

record! {
    /// A device that was not named.
    pub struct MissingDevice {
        /// number of the device
        pub id: u64,
        /// UUID of the device
        pub uuid: String,
        /// bytes of the device
        pub size: u64,
    }
}

record! {
    /// A mount point whose devices cannot be read.
    pub struct Kernel<'a> {
        /// what the kernel computes checksums with, from /sys/fs/btrfs
        pub kernel: &'a str,
    }
}

record! {
    /// A checksum that btrfs offers.
    pub struct Checksum<'a> {
        /// the checksum, as mkfs.btrfs names it
        pub checksum: &'static str,
        /// the same, as `blkhash algorithms` names it
        pub algorithm: &'static str,
        /// bytes of a checksum
        pub bytes: usize,
        /// whether it is infeasible to make two blocks with the same checksum
        pub collisions_are_hard: bool,
        /// the FIPS standard that defines it; null if none does
        pub standard: Option<&'static str>,
        /// what the kernel computes it with, from /proc/crypto; null if no driver is loaded
        pub kernel_driver: Option<&'a str>,
        /// the implementation here that resembles the driver, and was measured in its place; null if none does
        pub kernel_like: Option<&'a str>,
        /// MiB in a second of that implementation, one block at a time, median
        pub kernel_mib_per_second: Option<f64>,
        /// ticks for 4 KiB in a batch, median: cycles of the time stamp counter on x86-64, otherwise nanoseconds
        pub ticks: f64,
        /// these ticks in proportion to ticks of crc32c
        pub ratio: f64,
        /// MiB in a second in batches, median
        pub mib_per_second: f64,
        /// the implementation that was measured in batches
        pub implementation: String,
        /// the size that `--data` gives; null without
        pub data_bytes: Option<u64>,
        /// bytes of the checksums of that much data, one mirror; null without `--data`
        pub space_bytes: Option<u64>,
    }
}
