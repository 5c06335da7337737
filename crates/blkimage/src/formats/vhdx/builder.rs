//! Hand-made vhdx images for tests, valid unless a test corrupts them.

use crc_fast::{CrcAlgorithm, checksum};

use super::units::{KIB, MIB};
use crate::formats::builder::Built;
use crate::storage::Memory;
use crate::{Image, OpenOptions, Result};

/// An image in memory: headers, log, BAT and metadata of 1 MiB each, then everything appended.
///
/// Checksums are computed when the image is opened.
#[derive(Clone)]
pub(crate) struct Builder {
    pub bytes: Vec<u8>,
    /// Whether checksums are left as they are.
    pub is_sealed: bool,
    items: u64,
}

/// Offsets in every image.
pub(crate) const HEADERS: [u64; 2] = [64 * KIB, 128 * KIB];
pub(crate) const REGIONS: [u64; 2] = [192 * KIB, 256 * KIB];
pub(crate) const LOG: u64 = MIB;
pub(crate) const BAT: u64 = 2 * MIB;
pub(crate) const METADATA: u64 = 3 * MIB;

/// Offsets of metadata items.
pub(crate) const PARAMETERS: u64 = METADATA + 64 * KIB;
pub(crate) const DISK_SIZE: u64 = PARAMETERS + 64;
pub(crate) const LOGICAL_SECTOR: u64 = PARAMETERS + 192;
pub(crate) const LOCATOR: u64 = PARAMETERS + 4 * KIB;

pub(crate) const PRESENT: u64 = 6;
pub(crate) const PARTIAL: u64 = 7;

/// Identifies the content of every image of this builder.
pub(crate) const DATA_WRITE: &str = "{04030201-0605-0807-090a-0b0c0d0e0f10}";
pub(crate) const LOG_GUID: [u8; 16] = [0xab; 16];

impl Builder {
    /// Creates an image with blocks of 1 MiB and sectors of 512 bytes.
    pub fn new(size: u64) -> Self {
        Self::with(size, MIB as u32, 512)
    }

    pub fn with(size: u64, block_size: u32, sector_size: u32) -> Self {
        let bytes = vec![0; 4 * MIB as usize];
        let mut new = Self { bytes, is_sealed: false, items: 0 };
        new.put(0, b"vhdxfile");
        for (sequence, at) in HEADERS.into_iter().enumerate() {
            new.put(at, b"head");
            new.put64(at + 8, sequence as u64 + 7);
            new.put(at + 32, &(1..=16).collect::<Vec<u8>>());
            new.put(at + 66, &[1]);
            new.put32(at + 68, MIB as u32);
            new.put64(at + 72, LOG);
        }
        for at in REGIONS {
            new.put(at, b"regi");
        }
        new.region(0x2dc27766_f623_4200_9d64_115e9bfd4a08, BAT, MIB as u32, 1);
        new.region(0x8b7ca206_4790_4b9a_b8fe_575f050f886e, METADATA, MIB as u32, 1);
        new.put(METADATA, b"metadata");
        new.item(0xcaa16737_fa36_4d43_b3b6_33f0aa44e76b, PARAMETERS, 8, 4);
        new.item(0x2fa54224_cd1b_4876_b211_5dbed83bf4b8, DISK_SIZE, 8, 6);
        new.item(0xbeca12ab_b2e6_4523_93ef_c309e000c746, PARAMETERS + 128, 16, 6);
        new.item(0x8141bf1d_a96f_4709_ba47_f233a8faab5f, LOGICAL_SECTOR, 4, 6);
        new.item(0xcda348c7_445d_4471_9cc9_e9885251c556, PARAMETERS + 256, 4, 6);
        new.put32(PARAMETERS, block_size);
        new.put64(DISK_SIZE, size);
        new.put32(LOGICAL_SECTOR, sector_size);
        new.put32(PARAMETERS + 256, 4096);
        new
    }

    /// Turns the image into a differencing one with these entries in the locator.
    pub fn locator(&mut self, entries: &[(&str, &str)]) {
        let at = self.get(PARAMETERS + 4) | 2;
        self.put32(PARAMETERS + 4, at);
        let mut table = guid(0xb04aefb7_d19e_4a81_b789_25b8e9445913).to_vec();
        table.extend([0, 0]);
        table.extend((entries.len() as u16).to_le_bytes());
        let mut strings = Vec::new();
        let start = table.len() + entries.len() * 12;
        for pair in entries {
            let [key, value] = [pair.0, pair.1]
                .map(|text| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>());
            let key_at = start + strings.len();
            table.extend((key_at as u32).to_le_bytes());
            table.extend(((key_at + key.len()) as u32).to_le_bytes());
            table.extend((key.len() as u16).to_le_bytes());
            table.extend((value.len() as u16).to_le_bytes());
            strings.extend(key);
            strings.extend(value);
        }
        table.extend(strings);
        self.put(LOCATOR, &table);
        self.item(0xa8d35f2d_b30b_454d_abf7_d3d84834ab0c, LOCATOR, table.len() as u32, 4);
    }

    /// Adds a region to both tables.
    pub fn region(&mut self, kind: u128, offset: u64, length: u32, flags: u32) {
        let count = self.get(REGIONS[0] + 8);
        for table in REGIONS {
            let at = table + 16 + u64::from(count) * 32;
            self.put(at, &guid(kind));
            self.put64(at + 16, offset);
            self.put32(at + 24, length);
            self.put32(at + 28, flags);
            self.put32(table + 8, count + 1);
        }
    }

    /// Adds a metadata item. Returns the offset of its entry.
    pub fn item(&mut self, kind: u128, offset: u64, length: u32, flags: u32) -> u64 {
        self.items += 1;
        let at = METADATA + self.items * 32;
        self.put(at, &guid(kind));
        self.put32(at + 16, (offset - METADATA) as u32);
        self.put32(at + 20, length);
        self.put32(at + 24, flags);
        self.put(METADATA + 10, &(self.items as u16).to_le_bytes());
        at
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

    pub fn get(&self, at: u64) -> u32 {
        u32::from_le_bytes(self.bytes[at as usize..][..4].try_into().unwrap())
    }

    /// Sets a BAT entry. Returns its offset.
    pub fn map(&mut self, index: u64, entry: u64) -> u64 {
        self.put64(BAT + index * 8, entry);
        BAT + index * 8
    }

    /// Appends bytes at the next multiple of 1 MiB. Returns their offset.
    pub fn append(&mut self, bytes: &[u8]) -> u64 {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(MIB as usize), 0);
        at as u64
    }

    /// Appends 1 MiB of `byte`.
    pub fn block(&mut self, byte: u8) -> u64 {
        self.append(&vec![byte; MIB as usize])
    }

    /// Marks the image as not closed.
    pub fn dirty(&mut self) {
        for at in HEADERS {
            self.put(at + 48, &LOG_GUID);
        }
    }

    /// Writes a log entry at a sector of the ring. Returns the sector after it.
    pub fn log(&mut self, sector: u64, entry: &LogEntry) -> u64 {
        let bytes = entry.encode();
        let sectors = MIB / 4096;
        for (index, bytes) in bytes.chunks(4096).enumerate() {
            self.put(LOG + (sector + index as u64) % sectors * 4096, bytes);
        }
        (sector + bytes.len() as u64 / 4096) % sectors
    }

    pub fn sealed(&self) -> Vec<u8> {
        let mut new = self.clone();
        if !self.is_sealed {
            for at in HEADERS {
                seal(&mut new.bytes[at as usize..][..4096]);
            }
            for at in REGIONS {
                seal(&mut new.bytes[at as usize..][..65536]);
            }
        }
        new.bytes
    }

    pub fn open(&self) -> Result<Image> {
        OpenOptions::default().open_storage(Box::new(Memory(self.sealed())), "test.vhdx")
    }
}

/// An entry of the log.
#[derive(Clone)]
pub(crate) struct LogEntry {
    pub sequence: u64,
    /// First sector of the first entry that is not in place.
    pub tail: u32,
    pub sizes: [u64; 2],
    pub changes: Vec<Change>,
}

#[derive(Clone)]
pub(crate) enum Change {
    Data(u64, Vec<u8>),
    Zeros(u64, u64),
}

impl LogEntry {
    pub fn new(sequence: u64, tail: u32, changes: &[Change]) -> Self {
        Self { sequence, tail, sizes: [4 * MIB; 2], changes: changes.to_vec() }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        let mut data = Vec::new();
        for change in &self.changes {
            let (signature, trailing, leading, offset) = match change {
                Change::Data(offset, sector) => {
                    data.extend(b"data");
                    data.extend(((self.sequence >> 32) as u32).to_le_bytes());
                    data.extend(&sector[8..4092]);
                    data.extend((self.sequence as u32).to_le_bytes());
                    (b"desc", &sector[4092..], sector[..8].to_vec(), *offset)
                }
                Change::Zeros(offset, length) => {
                    (b"zero", &[0; 4][..], length.to_le_bytes().to_vec(), *offset)
                }
            };
            bytes.extend(signature);
            bytes.extend(trailing);
            bytes.extend(leading);
            bytes.extend(offset.to_le_bytes());
            bytes.extend(self.sequence.to_le_bytes());
        }
        bytes.resize(bytes.len().next_multiple_of(4096), 0);
        bytes.extend(data);
        let length = bytes.len() as u32;
        for (at, field) in [
            (0, b"loge".to_vec()),
            (8, length.to_le_bytes().to_vec()),
            (12, (self.tail * 4096).to_le_bytes().to_vec()),
            (16, self.sequence.to_le_bytes().to_vec()),
            (24, (self.changes.len() as u32).to_le_bytes().to_vec()),
            (32, LOG_GUID.to_vec()),
            (48, self.sizes[0].to_le_bytes().to_vec()),
            (56, self.sizes[1].to_le_bytes().to_vec()),
        ] {
            bytes[at..at + field.len()].copy_from_slice(&field);
        }
        seal(&mut bytes);
        bytes
    }
}

/// Computes the checksum at byte 4.
pub(crate) fn seal(bytes: &mut [u8]) {
    bytes[4..8].fill(0);
    let sum = checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32;
    bytes[4..8].copy_from_slice(&sum.to_le_bytes());
}

fn guid(text: u128) -> [u8; 16] {
    super::guid::Guid::new(text).0
}

impl Built for Builder {
    fn open(&self) -> Result<Image> {
        self.open()
    }
}
