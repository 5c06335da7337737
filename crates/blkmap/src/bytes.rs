//! Little-endian fields at fixed offsets of a record.

/// Returns the field of `N` bytes at `at`. The record has it.
pub(crate) fn array<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    *record[at..].first_chunk().expect("a field inside the record")
}

pub(crate) fn u16_at(record: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(record, at))
}

pub(crate) fn u32_at(record: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(record, at))
}

pub(crate) fn u64_at(record: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(record, at))
}

/// Writes a field at `at`.
pub(crate) fn put(record: &mut [u8], at: usize, field: &[u8]) {
    record[at..][..field.len()].copy_from_slice(field);
}

pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}
