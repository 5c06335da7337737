//! The up-case table, which names are compared and hashed with.

use super::boot::checksum;

/// Maximum size of a table in bytes: two for each code unit.
pub(super) const MAX_SIZE: u64 = 2 << 16;

/// An up-case table.
pub(super) struct UpCase {
    units: Vec<u16>,
}

impl UpCase {
    /// Decodes a table, in which 0xffff and a count stand for code units that stay as they are.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut units: Vec<u16> = (0..=u16::MAX).collect();
        let mut stored = bytes.as_chunks().0.iter().map(|unit| u16::from_le_bytes(*unit));
        let mut at = 0;
        while let Some(unit) = stored.next() {
            match units.get_mut(at) {
                None => break,
                Some(_)
                    if unit == u16::MAX
                        && let Some(count) = stored.next() =>
                {
                    at += usize::from(count);
                }
                Some(slot) => {
                    *slot = unit;
                    at += 1;
                }
            }
        }
        Self { units }
    }

    pub fn convert(&self, unit: u16) -> u16 {
        self.units[usize::from(unit)]
    }
}

/// Returns the checksum of a table.
pub(super) fn table_checksum(bytes: &[u8]) -> u32 {
    checksum(bytes.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_and_plain_entries() {
        let units = [0xffff, 0x61, 0x41, 0x42, 0xffff, 0xffff, 7];
        let bytes: Vec<u8> = units.iter().flat_map(|unit: &u16| unit.to_le_bytes()).collect();
        let table = UpCase::parse(&bytes);
        let converted = [0x60, 0x61, 0x62, 0x63].map(|unit| table.convert(unit));
        assert_eq!(converted, [0x60, 0x41, 0x42, 0x63]);
        assert_eq!(table.convert(0xffff), 0xffff);
        assert_eq!(UpCase::parse(&[0xff, 0xff]).convert(0), 0xffff);
    }
}
