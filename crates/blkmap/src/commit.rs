//! The commit, which ends a map and says what it holds.

use crate::bytes::{array, is_zero, put, u32_at, u64_at};
use crate::page::{Hash, sha256};
use crate::{Error, Header, Key, MAX_INFO, PAGE, PageRun, Result};

/// An area of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Area {
    /// Offset in the file, a multiple of the page size.
    pub(crate) offset: u64,
    /// Number of entries, or of bytes.
    pub(crate) count: u64,
}

/// The content of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Whether the tables hold everything. Tables of a checkpoint hold what came since the commit before.
    pub(crate) is_final: bool,
    /// The id of the file, as in the header.
    pub(crate) file_id: [u8; 16],
    /// Number of the commit, from 1.
    pub(crate) sequence: u64,
    /// Offset of the commit before, 0 if there is none.
    pub(crate) previous: u64,
    /// Size of the image in bytes.
    pub(crate) image_size: u64,
    /// Number of blocks of the image.
    pub(crate) blocks: u64,
    /// Number of blocks that the directory of this commit has.
    pub(crate) known: u64,
    /// Number of blocks in its zero pages.
    pub(crate) zero_blocks: u64,
    /// Number of its stored pages.
    pub(crate) stored_pages: u64,
    /// The directory, in entries.
    pub(crate) directory: Area,
    /// The page hashes.
    pub(crate) page_hashes: Area,
    /// The info, in bytes.
    pub(crate) info: Area,
    /// Hashes of the header, the directory, the page hashes and the info.
    pub(crate) hashes: [Hash; 4],
    /// Root of the tree over the pages, `None` in a checkpoint and unless every block is known.
    pub(crate) root: Option<Hash>,
    /// Digest of a whole zero block, padded with zeros.
    pub(crate) zero_block: [u8; 64],
    /// Digest of the last block padded with zeros to a whole one, if it is short and known, otherwise zeros.
    pub(crate) padded_last: [u8; 64],
    /// The seal, if there is one.
    pub(crate) seal: Option<Seal>,
}

/// A seal, which only the owner of a key can make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Seal {
    /// Id of the key.
    pub key_id: [u8; 8],
    /// HMAC-SHA-256 of the record up to the tag.
    pub tag: Hash,
}

impl Commit {
    /// Returns whether the tables hold everything. Tables of a checkpoint hold what came since the commit before.
    pub fn is_final(&self) -> bool {
        self.is_final
    }

    /// Returns the number of the commit, from 1.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Returns the size of the image in bytes.
    pub fn image_size(&self) -> u64 {
        self.image_size
    }

    /// Returns the number of blocks of the image.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Returns the number of blocks that the directory of this commit has.
    pub fn known(&self) -> u64 {
        self.known
    }

    /// Returns the number of blocks in its zero pages.
    pub fn zero_blocks(&self) -> u64 {
        self.zero_blocks
    }

    /// Returns the number of its stored pages.
    pub fn stored_pages(&self) -> u64 {
        self.stored_pages
    }

    /// Returns the root of the tree over the pages, `None` in a checkpoint and unless every block is known.
    pub fn root(&self) -> Option<Hash> {
        self.root
    }

    /// Returns the seal, if there is one.
    pub fn seal(&self) -> Option<Seal> {
        self.seal
    }

    /// Returns the identity of the content and its parameters, `None` unless every block is known.
    pub fn content_id(&self, header: &Header) -> Option<Hash> {
        let root = self.root?;
        let mut bytes = CONTENT_ID.to_vec();
        bytes.resize(32, 0);
        bytes.extend(header.parameters());
        bytes.extend(self.image_size.to_le_bytes());
        bytes.extend(root);
        Some(sha256(&bytes))
    }

    /// Returns the bytes of the record.
    pub(crate) fn to_bytes(&self, header: &Header) -> [u8; PAGE] {
        let mut bytes = [0; PAGE];
        put(&mut bytes, 0, MAGIC);
        put(&mut bytes, 8, &VERSION.to_le_bytes());
        put(&mut bytes, 12, &(if self.is_final { FINAL } else { CHECKPOINT }).to_le_bytes());
        put(&mut bytes, 16, &self.file_id);
        let Area { offset: directory, count: entries } = self.directory;
        let Area { offset: page_hashes, count: hashes } = self.page_hashes;
        let Area { offset: info, count: length } = self.info;
        let fields = [
            self.sequence,
            self.previous,
            self.image_size,
            self.blocks,
            self.known,
            self.zero_blocks,
            self.stored_pages,
            directory,
            entries,
            page_hashes,
            hashes,
            info,
            length,
        ];
        for (index, field) in fields.iter().enumerate() {
            put(&mut bytes, 32 + 8 * index, &field.to_le_bytes());
        }
        for (index, hash) in self.hashes.iter().enumerate() {
            put(&mut bytes, 144 + 32 * index, hash);
        }
        put(&mut bytes, 272, &self.root.unwrap_or_default());
        put(&mut bytes, 304, &self.zero_block);
        put(&mut bytes, 368, &self.padded_last);
        put(&mut bytes, 432, &self.content_id(header).unwrap_or_default());
        if let Some(Seal { key_id, tag }) = &self.seal {
            put(&mut bytes, 464, &HMAC_SHA256.to_le_bytes());
            put(&mut bytes, 472, key_id);
            put(&mut bytes, TAG_AT, tag);
        }
        let hash = sha256(&bytes[..HASH_AT]);
        put(&mut bytes, HASH_AT, &hash);
        bytes
    }

    /// Seals the record with `key`.
    pub(crate) fn sealed(mut self, header: &Header, key: &Key) -> Self {
        self.seal = Some(Seal { key_id: key.id(), tag: Hash::default() });
        let tag = key.tag(&self.to_bytes(header)[..TAG_AT]);
        self.seal = Some(Seal { key_id: key.id(), tag });
        self
    }

    /// Fails unless the record is sealed with `key`.
    pub(crate) fn check_seal(&self, header: &Header, key: &Key) -> Result<()> {
        let seal = self.seal.ok_or(Error::Seal("is not sealed"))?;
        if seal.key_id != key.id() {
            return Err(Error::Seal("is sealed with another key"));
        }
        if !key.is_tag_of(&seal.tag, &self.to_bytes(header)[..TAG_AT]) {
            return Err(Error::Seal("has a wrong seal: it was not made with this key"));
        }
        Ok(())
    }

    /// Returns whether the tables follow each other, the commit before, and precede the commit at `at`.
    fn tables_are_in_place(&self, at: u64) -> bool {
        let end = |area: Area, size: u64| {
            let length = area.count.checked_mul(size)?.checked_next_multiple_of(PAGE as u64)?;
            area.offset.checked_add(length)
        };
        let before = self.previous.checked_add(PAGE as u64);
        self.previous.is_multiple_of(PAGE as u64)
            && self.directory.offset.is_multiple_of(PAGE as u64)
            && before.is_some_and(|before| before <= self.directory.offset)
            && end(self.directory, PageRun::SIZE as u64) == Some(self.page_hashes.offset)
            && end(self.page_hashes, HASH_SIZE) == Some(self.info.offset)
            && end(self.info, 1) == Some(at)
    }

    /// Parses the record at `at`.
    pub(crate) fn parse(bytes: &[u8; PAGE], at: u64, header: &Header) -> Result<Self> {
        if !bytes.starts_with(MAGIC) {
            return Err(Error::Unfinished);
        }
        if u32_at(bytes, 8) != VERSION {
            return Err(Error::Version(u32_at(bytes, 8)));
        }
        if sha256(&bytes[..HASH_AT]) != array::<32>(bytes, HASH_AT) {
            return Err(Error::damaged(at, "the commit has another hash"));
        }
        let is_final = match u32_at(bytes, 12) {
            CHECKPOINT => false,
            FINAL => true,
            kind => return Err(Error::damaged(at, format!("a commit of kind {kind}"))),
        };
        if array::<16>(bytes, 16) != header.file_id {
            return Err(Error::damaged(at, "the commit belongs to another file"));
        }
        let seal = match u32_at(bytes, 464) {
            0 => None,
            HMAC_SHA256 => Some(Seal { key_id: array(bytes, 472), tag: array(bytes, TAG_AT) }),
            kind => {
                return Err(Error::Unsupported(format!("has a seal of the unknown kind {kind}")));
            }
        };
        let field = |index: usize| u64_at(bytes, 32 + 8 * index);
        let area = |index: usize| Area { offset: field(index), count: field(index + 1) };
        let (root, known, blocks) = (array(bytes, 272), field(4), field(3));
        let commit = Self {
            is_final,
            file_id: header.file_id,
            sequence: field(0),
            previous: field(1),
            image_size: field(2),
            blocks,
            known,
            zero_blocks: field(5),
            stored_pages: field(6),
            directory: area(7),
            page_hashes: area(9),
            info: area(11),
            hashes: [144, 176, 208, 240].map(|place| array(bytes, place)),
            root: (is_final && known == blocks).then_some(root),
            zero_block: array(bytes, 304),
            padded_last: array(bytes, 368),
            seal,
        };
        // Reserved bytes and the content id have one value each.
        if commit.to_bytes(header) != *bytes {
            return Err(Error::damaged(at, "a field of the commit has another value"));
        }
        let block_size = u64::from(header.block_size);
        let is_consistent = commit.image_size <= MAX_IMAGE
            && commit.blocks == commit.image_size.div_ceil(block_size)
            && commit.known <= commit.blocks
            && commit.zero_blocks <= commit.known
            && commit.sequence > 0
            && (commit.sequence == 1) == (commit.previous == 0)
            && commit.page_hashes.count == commit.stored_pages
            && (MIN_INFO..=MAX_INFO).contains(&commit.info.count);
        if !is_consistent {
            return Err(Error::damaged(at, "fields of the commit contradict each other"));
        }
        if !commit.tables_are_in_place(at) {
            return Err(Error::damaged(at, "the tables do not lie before the commit"));
        }
        let digest_size = header.algorithm.digest_size();
        for (place, digest) in [(304, &commit.zero_block), (368, &commit.padded_last)] {
            if !is_zero(&digest[digest_size..]) {
                return Err(Error::damaged(at + place, "a digest is longer than it can be"));
            }
        }
        Ok(commit)
    }
}

const MAGIC: &[u8] = b"\x89BLKEND\n";

const VERSION: u32 = 1;

const CHECKPOINT: u32 = 1;

const FINAL: u32 = 2;

/// The largest image, in bytes.
const MAX_IMAGE: u64 = i64::MAX as u64;

/// The shortest info is `{}`.
const MIN_INFO: u64 = 2;

/// Length of a page hash in bytes.
const HASH_SIZE: u64 = 32;

const HMAC_SHA256: u32 = 1;

/// The tag of the seal covers everything before it.
const TAG_AT: usize = 480;

const CONTENT_ID: &[u8] = b"blkmap content 1";

/// The hash of the record covers everything before it.
const HASH_AT: usize = 4064;
