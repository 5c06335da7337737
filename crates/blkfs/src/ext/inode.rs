//! The fields of an inode.

use crate::bytes::{le16_at, le32_at};

/// An inode of at least 128 bytes.
#[derive(Clone, Copy)]
pub(super) struct Inode<'a> {
    pub number: u64,
    pub bytes: &'a [u8],
}

pub(super) mod flags {
    pub const EXTENTS: u32 = 0x8_0000;
    pub const VERITY: u32 = 0x10_0000;
    pub const EA_INODE: u32 = 0x20_0000;
    pub const INLINE_DATA: u32 = 0x1000_0000;
    pub const INDEX: u32 = 0x1000;
}

/// The type of a file, from its mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileType {
    Regular,
    Directory,
    Symlink,
    /// A device, FIFO or socket, or of no known type: without content.
    Other,
}

impl<'a> Inode<'a> {
    fn word(&self, at: usize) -> u32 {
        le32_at(self.bytes, at).unwrap_or_default()
    }

    fn half(&self, at: usize) -> u16 {
        le16_at(self.bytes, at).unwrap_or_default()
    }

    pub fn mode(&self) -> u16 {
        self.half(0)
    }

    pub fn links(&self) -> u16 {
        self.half(0x1a)
    }

    pub fn has(&self, flags: u32) -> bool {
        self.word(0x20) & flags != 0
    }

    pub fn size(&self) -> u64 {
        u64::from(self.word(4)) | u64::from(self.word(0x6c)) << 32
    }

    pub fn generation(&self) -> u32 {
        self.word(0x64)
    }

    pub fn file_type(&self) -> FileType {
        match self.mode() >> 12 {
            0o10 => FileType::Regular,
            0o4 => FileType::Directory,
            0o12 => FileType::Symlink,
            _ => FileType::Other,
        }
    }

    /// Returns the root of the map of blocks, or small content.
    pub fn block(&self) -> &'a [u8] {
        self.bytes.get(0x28..0x64).unwrap_or_default()
    }

    /// Returns the block of extended attributes, or 0.
    pub fn attribute_block(&self, is_wide: bool) -> u64 {
        let high = if is_wide { self.half(0x76) } else { 0 };
        u64::from(self.word(0x68)) | u64::from(high) << 32
    }

    /// Returns the bytes after the fields, which hold extended attributes.
    pub fn rest(&self) -> &'a [u8] {
        match self.bytes.len() {
            ..=128 => &[],
            _ => self.bytes.get(128 + usize::from(self.half(0x80))..).unwrap_or_default(),
        }
    }

    /// Returns whether the base inode is zeros, as one that was never used.
    pub fn is_zero(&self) -> bool {
        self.bytes.iter().take(128).all(|byte| *byte == 0)
    }

    /// Returns whether the target of a symlink is in the inode itself.
    pub fn is_fast_symlink(&self) -> bool {
        self.file_type() == FileType::Symlink
            && !self.has(flags::EXTENTS)
            && self.size() < self.block().len() as u64
    }
}
