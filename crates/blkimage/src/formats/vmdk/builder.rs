//! Hand-made sparse files of hosted products for tests, valid unless a test corrupts them.

use crate::storage::Memory;
use crate::{Image, OpenOptions, Result};

/// A disk in memory: header, descriptor, two directories with their tables, then everything appended.
pub(crate) struct Builder {
    pub bytes: Vec<u8>,
    /// Sectors of a grain.
    grain: u64,
    compressed: bool,
    directories: [u64; 2],
}

impl Builder {
    /// Creates a disk of this many sectors.
    pub fn new(capacity: u64, grain: u64) -> Self {
        Self::with(capacity, grain, false)
    }

    /// Creates a disk with compressed grains.
    pub fn compressed(capacity: u64, grain: u64) -> Self {
        Self::with(capacity, grain, true)
    }

    fn with(capacity: u64, grain: u64, compressed: bool) -> Self {
        let tables = capacity.div_ceil(grain * ENTRIES);
        let mut new =
            Self { bytes: vec![0; 21 * 512], grain, compressed, directories: Default::default() };
        let flags = 1 | 2 | 4 | if compressed { 3 << 16 } else { 0 };
        new.put(0, b"KDMV");
        new.put32(4, 2);
        new.put32(8, flags);
        new.put64(12, capacity);
        new.put64(20, grain);
        new.put64(28, 1);
        new.put64(36, 20);
        new.put32(44, ENTRIES as u32);
        new.put(73, b"\n \r\n");
        new.put(77, &[u8::from(compressed)]);
        new.describe(capacity, "CID=0000002a\nparentCID=ffffffff");
        new.directories = [0; 2].map(|_| new.append(&vec![0; (tables * 4) as usize]));
        new.put64(48, new.directories[0] / 512);
        new.put64(56, new.directories[1] / 512);
        new
    }

    /// Writes the descriptor.
    pub fn describe(&mut self, capacity: u64, settings: &str) {
        let text = format!(
            "# Disk DescriptorFile\nversion=1\n{settings}\ncreateType=\"monolithicSparse\"\n\
             RW {capacity} SPARSE \"test.vmdk\"\n"
        );
        self.put(512, &[0; 20 * 512]);
        self.put(512, text.as_bytes());
    }

    pub fn put(&mut self, at: u64, bytes: &[u8]) {
        self.bytes[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
    }

    pub fn put32(&mut self, at: u64, value: u32) {
        self.put(at, &value.to_le_bytes());
    }

    pub fn put64(&mut self, at: u64, value: u64) {
        self.put(at, &value.to_le_bytes());
    }

    /// Appends bytes at the next sector. Returns their offset.
    pub fn append(&mut self, bytes: &[u8]) -> u64 {
        let at = self.bytes.len() as u64;
        self.bytes.extend_from_slice(bytes);
        let size = self.bytes.len().next_multiple_of(512);
        self.bytes.resize(size, 0);
        at
    }

    /// Appends a grain full of `byte`, and maps it to the guest offset.
    pub fn write(&mut self, guest: u64, byte: u8) -> u64 {
        let grain = vec![byte; (self.grain * 512) as usize];
        if self.compressed {
            return self.write_compressed(guest, guest / 512, &grain);
        }
        let at = self.append(&grain);
        self.map(guest, (at / 512) as u32);
        at
    }

    /// Appends a compressed grain with a marker for `sector`, and maps it to the guest offset.
    pub fn write_compressed(&mut self, guest: u64, sector: u64, content: &[u8]) -> u64 {
        let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::default());
        let mut stream = vec![0; compressor.zlib_compress_bound(content.len())];
        let length = compressor.zlib_compress(content, &mut stream).unwrap();
        let size = (length as u32).to_le_bytes();
        let at = self.append(&[&sector.to_le_bytes()[..], &size, &stream[..length]].concat());
        self.map(guest, (at / 512) as u32);
        at
    }

    /// Sets both entries of a guest offset.
    pub fn map(&mut self, guest: u64, entry: u32) {
        for copy in [0, 1] {
            self.map_copy(copy, guest, entry);
        }
    }

    /// Sets the entry of a guest offset in the first (1) or the redundant (0) copy of the tables.
    pub fn map_copy(&mut self, copy: usize, guest: u64, entry: u32) {
        let grain = guest / 512 / self.grain;
        let at = self.directories[copy] + grain / ENTRIES * 4;
        let place = u32::from_le_bytes(self.bytes[at as usize..][..4].try_into().unwrap());
        let mut table = u64::from(place) * 512;
        if table == 0 {
            table = self.append(&[0; ENTRIES as usize * 4]);
            self.put32(at, (table / 512) as u32);
        }
        self.put32(table + grain % ENTRIES * 4, entry);
    }

    /// Returns the offset of the first (1) or the redundant (0) directory.
    pub fn directory(&self, copy: usize) -> u64 {
        self.directories[copy]
    }

    pub fn open(&self) -> Result<Image> {
        OpenOptions::default().open_storage(Box::new(Memory(self.bytes.clone())), "test.vmdk")
    }
}

pub(crate) const ENTRIES: u64 = 512;
