//! The objects of `blkhash map`.

use blkrecord::{Flat, Name, record};
use serde_json::Value;

use super::common::{Files, Reason};

record! {
    /// A map, with its last commit or the one that was asked for.
    pub struct Map<'a> {
        /// `map`
        pub r#type: &'static str,
        /// the map as it was named on the command line
        pub name: Name<'a>,
        /// the digest algorithm, as `--digest` takes it
        pub digest: &'static str,
        /// bytes of a block
        pub block_size: usize,
        /// the salt in hexadecimal; empty without one
        pub salt: String,
        /// the random id of the file in hexadecimal
        pub file_id: String,
        /// pages of the image, stored or not
        pub pages: u64,
        /// the commit
        pub commit: Flat<Known>,
        /// what the program that made the map wrote into it. Any program may have written anything:
        /// [the fields of blkhash](map-format.md#info)
        pub info: Value,
    }
}

record! {
    /// What a commit knows of an image.
    pub struct Known {
        /// number of the commit in the file, from 1
        pub sequence: u64,
        /// true for a final commit, false for a checkpoint
        pub r#final: bool,
        /// bytes of the content that the guest sees
        pub virtual_size: u64,
        /// blocks of the image
        pub blocks: u64,
        /// blocks that the commit has digests of, with zeros; a checkpoint has those that came since the commit before
        pub known_blocks: u64,
        /// blocks in pages that are not stored because all of their blocks are zeros. There may be other zero blocks
        pub zero_blocks: u64,
        /// pages that are stored
        pub stored_pages: u64,
        /// the [root](map-format.md#root) in hexadecimal; null if the commit does not know every block
        pub root: Option<String>,
        /// the [content id](map-format.md#content-id) in hexadecimal; null if the commit does not know every block
        pub content_id: Option<String>,
        /// the id of the key of the seal in hexadecimal, not checked; null without a seal
        pub sealed_with: Option<String>,
    }
}

record! {
    /// A commit in a map.
    pub struct Commit<'a> {
        /// `commit`
        pub r#type: &'static str,
        /// the map as it was named on the command line
        pub name: Name<'a>,
        /// offset of the commit in the file
        pub offset: u64,
        /// the commit
        pub commit: Flat<Known>,
    }
}

record! {
    /// Pages of the same kind side by side.
    pub struct Pages<'a> {
        /// `run`
        pub r#type: &'static str,
        /// the map as it was named on the command line
        pub name: Name<'a>,
        /// `digests` for stored pages, or `zeros`
        pub kind: &'static str,
        /// number of the first page, from 0
        pub first_page: u64,
        /// number of pages
        pub pages: u64,
        /// offset of the first block
        pub offset: u64,
        /// bytes of the blocks
        pub length: u64,
    }
}

record! {
    /// A state of an image in the history of its map.
    pub struct State<'a> {
        /// `state`
        pub r#type: &'static str,
        /// the map as it was named on the command line
        pub name: Name<'a>,
        /// number of the commit that ends the state
        pub sequence: u64,
        /// the time at which the state was made, as the map says; null if it does not
        pub created: Option<String>,
        /// bytes of the content that the guest sees
        pub virtual_size: u64,
        /// blocks of the image
        pub blocks: u64,
        /// blocks that differ from the state before, with those that only one of both has; null for the first state
        pub changed_blocks: Option<u64>,
        /// bytes in these blocks; null for the first state
        pub changed_bytes: Option<u64>,
        /// extents that hold them; null for the first state
        pub ranges: Option<u64>,
    }
}

record! {
    /// Blocks side by side that differ in the same way.
    pub struct Difference<'a> {
        /// `range`
        pub r#type: &'static str,
        /// offset of the first block
        pub offset: u64,
        /// bytes of the blocks
        pub length: u64,
        /// number of blocks
        pub blocks: u64,
        /// `changed`, `written` (zeros on the left side), `zeroed` (zeros on the right side), `left-only`, `right-only` (the
        /// other side ends before), `unreadable` (the blocks of an image cannot be read), or `unknown` (a map has no digests of
        /// these blocks; they are no difference)
        pub kind: &'static str,
        /// number of the first partition with some of these bytes; null if there is none
        pub partition: Option<u32>,
        /// offset in this partition of the first of these bytes that it has; null without one
        pub partition_offset: Option<u64>,
        /// what the blocks hold
        pub files: Flat<Files<'a>>,
    }
}

record! {
    /// The end of a comparison.
    pub struct Comparison<'a> {
        /// `summary`
        pub r#type: &'static str,
        /// bytes of a block
        pub block_size: usize,
        /// blocks that were compared or are unknown, with those that only one side has
        pub blocks: u64,
        /// blocks that differ, with those that only one side has and those that cannot be read
        pub different: u64,
        /// bytes of these blocks
        pub bytes: u64,
        /// extents that differ
        pub ranges: u64,
        /// equal blocks; two maps may have zeros among them that are not counted in `zeros`
        pub equal: u64,
        /// blocks that are zeros on both sides
        pub zeros: u64,
        /// blocks that cannot be read
        pub unreadable: u64,
        /// blocks that a map has no digests of
        pub unknown: u64,
        /// bytes of these blocks
        pub unknown_bytes: u64,
        /// blocks that differ with content of files; this and the next four are null unless the image has a file system that is read
        pub in_files: Option<u64>,
        /// those with metadata, and none of files
        pub in_metadata: Option<u64>,
        /// those in a journal, and in neither
        pub in_journal: Option<u64>,
        /// those in free space alone
        pub in_free_space: Option<u64>,
        /// all others
        pub elsewhere: Option<u64>,
        /// blocks of free space that `--ignore-free` does not count as different
        pub ignored: u64,
        /// extents that `--max-errors` kept from being printed
        pub not_printed: u64,
        /// whether all of the content is equal; null if nothing else differs, and not everything was compared or could be read
        pub same_content: Option<bool>,
        /// why blocks cannot be read: the first place for each of at most 8 reasons
        pub reasons: Vec<Reason<'a>>,
        /// the left side; with `verify` the map
        pub left: Side<'a>,
        /// the right side; with `verify` the image
        pub right: Side<'a>,
    }
}

record! {
    /// The end of an audit.
    pub struct Audit<'a> {
        /// `summary`
        pub r#type: &'static str,
        /// bytes of a block
        pub block_size: usize,
        /// blocks that were compared or are unknown
        pub blocks: u64,
        /// blocks that changed and are not listed
        pub missed: u64,
        /// bytes of these blocks
        pub bytes: u64,
        /// extents that changed and are not listed
        pub ranges: u64,
        /// blocks that changed and are listed
        pub listed: u64,
        /// blocks that are listed and equal
        pub needless: u64,
        /// blocks that are not listed and equal
        pub clean: u64,
        /// blocks that a map has no digests of
        pub unknown: u64,
        /// bytes of the list
        pub listed_bytes: u64,
        /// bytes of the list that are in equal blocks
        pub needless_bytes: u64,
        /// extents that `--max-errors` kept from being printed
        pub not_printed: u64,
        /// the state before
        pub left: Side<'a>,
        /// the state after
        pub right: Side<'a>,
    }
}

record! {
    /// A side of a comparison.
    pub struct Side<'a> {
        /// its name on the command line
        pub name: Name<'a>,
        /// bytes of its content, of a map the bytes of its image
        pub size: u64,
    }
}

record! {
    /// A map that was updated.
    pub struct Update<'a> {
        /// `update`
        pub r#type: &'static str,
        /// name of the map
        pub name: Name<'a>,
        /// blocks of the image
        pub blocks: u64,
        /// blocks that were read because they may have changed
        pub read: u64,
        /// bytes of these blocks
        pub bytes: u64,
        /// other blocks that were read and compared with the map before
        pub sampled: u64,
        /// root of the map
        pub root: String,
        /// sequence number of the new commit
        pub commit: u64,
    }
}

record! {
    /// An extent that may have changed.
    pub struct Extent {
        /// `extent`
        pub r#type: &'static str,
        /// offset of the first byte
        pub offset: u64,
        /// number of bytes
        pub length: u64,
    }
}

record! {
    /// A bitmap of changes.
    pub struct Bitmap<'a> {
        /// `bitmap`
        pub r#type: &'static str,
        /// name of the image
        pub image: Name<'a>,
        /// name of the bitmap
        pub name: Name<'a>,
        /// bytes for each bit
        pub granularity: u64,
        /// `enabled`, `disabled`, or `in use` (not closed, so that its content is not complete)
        pub state: &'static str,
        /// bytes that it calls changed; null if it is in use
        pub dirty: Option<u64>,
    }
}

record! {
    /// Blocks that maps have in common.
    pub struct Duplicates {
        /// number of maps
        pub maps: usize,
        /// the digest algorithm of all maps
        pub digest: &'static str,
        /// bytes of a block
        pub block_size: usize,
        /// blocks that the maps have digests of, with zeros
        pub blocks: u64,
        /// zero blocks
        pub zero_blocks: u64,
        /// different blocks that are not zero
        pub different_blocks: u64,
        /// blocks that are not zero and equal another one that was counted before
        pub repeated_blocks: u64,
        /// bytes of the repeated blocks
        pub repeated_bytes: u64,
        /// blocks that the maps have no digests of
        pub unknown_blocks: u64,
        /// 1 if all digests were compared; otherwise one of this many, and the numbers of different and repeated blocks are
        /// estimates
        pub sampled: u64,
    }
}
