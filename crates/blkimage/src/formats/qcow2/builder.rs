//! Hand-made qcow2 images for tests, valid unless a test corrupts them.

use crate::formats::builder::Built;
use crate::storage::Memory;
use crate::{Image, OpenOptions, Result};

/// An image in memory: the header in cluster 0, the L1 table from cluster 1 on, then everything appended.
pub(crate) struct Builder {
    pub bytes: Vec<u8>,
    cluster_bits: u32,
    is_extended: bool,
    l1: u64,
}

impl Builder {
    pub fn new(cluster_bits: u32, size: u64) -> Self {
        Self::with(3, cluster_bits, size, false)
    }

    pub fn v2(cluster_bits: u32, size: u64) -> Self {
        Self::with(2, cluster_bits, size, false)
    }

    pub fn extended(cluster_bits: u32, size: u64) -> Self {
        Self::with(3, cluster_bits, size, true)
    }

    fn with(version: u32, cluster_bits: u32, size: u64, is_extended: bool) -> Self {
        let cluster = 1 << cluster_bits;
        let mut new = Self { bytes: vec![0; cluster], cluster_bits, is_extended, l1: 0 };
        let l1_entries = size.div_ceil(1 << new.span_bits());
        new.put(0, b"QFI\xfb");
        new.put32(4, version);
        new.put32(20, cluster_bits);
        new.put64(24, size);
        if version == 3 {
            new.put64(72, if is_extended { 1 << 4 } else { 0 });
            new.put32(96, 4);
            new.put32(100, 104);
        }
        new.l1 = new.append(&vec![0; (l1_entries * 8) as usize]);
        new.put32(36, l1_entries as u32);
        new.put64(40, new.l1);
        // Reference counts are never read and need not exist.
        new.put64(48, 1 << 40);
        new.put32(56, 1);
        new
    }

    pub fn put(&mut self, at: u64, bytes: &[u8]) {
        self.bytes[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
    }

    pub fn put32(&mut self, at: u64, value: u32) {
        self.put(at, &value.to_be_bytes());
    }

    pub fn put64(&mut self, at: u64, value: u64) {
        self.put(at, &value.to_be_bytes());
    }

    /// Appends bytes at the next cluster. Returns their offset.
    pub fn append(&mut self, bytes: &[u8]) -> u64 {
        self.pad();
        let at = self.bytes.len() as u64;
        self.bytes.extend_from_slice(bytes);
        self.pad();
        at
    }

    /// Appends a cluster full of `byte`.
    pub fn append_data(&mut self, byte: u8) -> u64 {
        self.append(&vec![byte; 1 << self.cluster_bits])
    }

    fn pad(&mut self) {
        let size = self.bytes.len().next_multiple_of(1 << self.cluster_bits);
        self.bytes.resize(size, 0);
    }

    /// Writes an extension at `at` into an image of version 3. Returns the offset after it.
    pub fn extension(&mut self, at: u64, kind: u32, data: &[u8]) -> u64 {
        self.put32(at, kind);
        self.put32(at + 4, data.len() as u32);
        self.put(at + 8, data);
        at + 8 + (data.len() as u64).next_multiple_of(8)
    }

    /// Returns the offset of the L1 entry of a guest offset.
    pub fn l1_entry_at(&self, guest: u64) -> u64 {
        self.l1 + (guest >> self.span_bits()) * 8
    }

    /// Sets the L2 entry of a guest offset, and creates its L2 table if needed. Returns
    /// the offset of the entry.
    pub fn map(&mut self, guest: u64, entry: u64) -> u64 {
        let l1_entry = self.l1_entry_at(guest);
        let bytes = self.bytes[l1_entry as usize..][..8].try_into().unwrap();
        let mut l2 = u64::from_be_bytes(bytes) & super::entry::OFFSET_MASK;
        if l2 == 0 {
            l2 = self.append_data(0);
            self.put64(l1_entry, l2 | 1 << 63);
        }
        let index = (guest >> self.cluster_bits) & ((1 << self.l2_bits()) - 1);
        let at = l2 + index * if self.is_extended { 16 } else { 8 };
        self.put64(at, entry);
        at
    }

    /// Sets an extended L2 entry.
    pub fn map_extended(&mut self, guest: u64, entry: u64, bitmap: u64) {
        let at = self.map(guest, entry);
        self.put64(at + 8, bitmap);
    }

    /// Appends a compressed stream and maps a cluster to it.
    pub fn map_compressed(&mut self, guest: u64, stream: &[u8]) {
        let at = self.append(stream);
        let sectors = (stream.len() as u64).div_ceil(512).max(1) - 1;
        let entry = 1 << 62 | sectors << (62 - (self.cluster_bits - 8)) | at;
        self.map(guest, entry);
    }

    pub fn open(&self) -> Result<Image> {
        self.open_with(&OpenOptions::default())
    }

    pub fn open_with(&self, options: &OpenOptions) -> Result<Image> {
        options.open_storage(Box::new(Memory(self.bytes.clone())), "test.qcow2")
    }

    fn l2_bits(&self) -> u32 {
        self.cluster_bits - if self.is_extended { 4 } else { 3 }
    }

    fn span_bits(&self) -> u32 {
        self.l2_bits() + self.cluster_bits
    }
}

impl Built for Builder {
    fn open(&self) -> Result<Image> {
        self.open()
    }
}
