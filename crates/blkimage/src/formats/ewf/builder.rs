//! Hand-made segments for tests.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use libdeflater::adler32;

/// A segment that grows section by section.
#[derive(Clone)]
pub(super) struct Builder(pub Vec<u8>);

impl Builder {
    pub fn new(number: u16) -> Self {
        let [low, high] = number.to_le_bytes();
        Self([b"EVF\x09\r\n\xff\0\x01", &[low, high, 0, 0][..]].concat())
    }

    /// Appends a section, with the Adler-32 of its descriptor.
    pub fn section(mut self, kind: &str, data: &[u8]) -> Self {
        let offset = self.0.len() as u64;
        let size = 76 + data.len() as u64;
        let next = if matches!(kind, "next" | "done") { offset } else { offset + size };
        let mut descriptor = vec![0; 72];
        descriptor[..kind.len()].copy_from_slice(kind.as_bytes());
        descriptor[16..24].copy_from_slice(&next.to_le_bytes());
        descriptor[24..32].copy_from_slice(&size.to_le_bytes());
        self.0.extend(summed(&descriptor));
        self.0.extend(data);
        self
    }

    /// Appends a volume of `chunks` chunks of `sectors` sectors of 512 bytes.
    pub fn volume(self, kind: &str, chunks: u32, sectors: u32, size: u64) -> Self {
        let mut data = vec![0; 1048];
        data[0] = 1;
        data[4..8].copy_from_slice(&chunks.to_le_bytes());
        data[8..12].copy_from_slice(&sectors.to_le_bytes());
        data[12..16].copy_from_slice(&512_u32.to_le_bytes());
        data[16..24].copy_from_slice(&(size / 512).to_le_bytes());
        data[52] = 2;
        self.section(kind, &summed(&data))
    }

    /// Appends chunks, which are stored bytes and whether they are compressed, and both of their tables.
    pub fn chunks(self, chunks: &[(Vec<u8>, bool)]) -> Self {
        let base = self.0.len() as u64;
        let stored: Vec<u8> = chunks.iter().flat_map(|(stored, _)| stored.clone()).collect();
        let mut offset = 76;
        let entries = chunks.iter().map(|(stored, is_compressed)| {
            let entry = offset | u32::from(*is_compressed) << 31;
            offset += stored.len() as u32;
            entry
        });
        let table = table(base, &entries.collect::<Vec<_>>());
        self.section("sectors", &stored).section("table", &table).section("table2", &table)
    }

    pub fn done(self) -> Vec<u8> {
        self.section("done", &[]).0
    }
}

/// Returns the data of a table.
pub(super) fn table(base: u64, entries: &[u32]) -> Vec<u8> {
    let mut header = vec![0; 20];
    header[..4].copy_from_slice(&(entries.len() as u32).to_le_bytes());
    header[8..16].copy_from_slice(&base.to_le_bytes());
    let entries: Vec<u8> = entries.iter().flat_map(|entry| entry.to_le_bytes()).collect();
    [summed(&header), summed(&entries)].concat()
}

/// Appends the Adler-32.
pub(super) fn summed(data: &[u8]) -> Vec<u8> {
    [data, &adler32(data).to_le_bytes()].concat()
}

/// A chunk that is stored as it is.
pub(super) fn stored(content: &[u8]) -> (Vec<u8>, bool) {
    (summed(content), false)
}

/// A chunk that is compressed.
pub(super) fn compressed(content: &[u8]) -> (Vec<u8>, bool) {
    (zlib(content), true)
}

pub(super) fn zlib(content: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}
