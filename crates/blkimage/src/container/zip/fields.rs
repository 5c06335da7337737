//! Numbers and extra fields of zip.

/// The name of a field that is not there.
pub(super) type Missing = &'static str;

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at.checked_add(2)?)?.try_into().ok().map(u16::from_le_bytes)
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_le_bytes)
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at.checked_add(8)?)?.try_into().ok().map(u64::from_le_bytes)
}

/// The extra fields of a header.
#[derive(Default)]
pub(super) struct Extra<'a> {
    /// Numbers of 64 bits, for those fields of the header that have no place for them.
    large: Option<&'a [u8]>,
    /// Another name of the member, with a CRC-32 of the one in the header.
    unicode: Option<&'a [u8]>,
}

impl<'a> Extra<'a> {
    /// Splits extra fields. Up to three bytes may follow the last one, which all programs pass over.
    pub fn new(mut bytes: &'a [u8]) -> Result<Self, Missing> {
        let mut extra = Self::default();
        while let (Some(id), Some(length)) = (u16_at(bytes, 0), u16_at(bytes, 2)) {
            let end = 4 + usize::from(length);
            let field = bytes.get(4..end).ok_or("an extra field that is cut off")?;
            let place = match id {
                LARGE => Some(&mut extra.large),
                UNICODE_PATH => Some(&mut extra.unicode),
                _ => None,
            };
            if let Some(place) = place
                && place.replace(field).is_some()
            {
                return Err("two extra fields of one kind");
            }
            bytes = &bytes[end..];
        }
        Ok(extra)
    }

    /// Returns whether there are numbers of 64 bits.
    pub fn has_large(&self) -> bool {
        self.large.is_some()
    }

    /// Replaces each of `fields`, in their order, that is all ones. Returns `None` if a number is missing.
    pub fn widen(&self, fields: &mut [&mut u64]) -> Option<()> {
        let mut at = 0;
        for field in fields.iter_mut().filter(|field| ***field == u64::from(u32::MAX)) {
            // Without any, this is the number.
            let Some(large) = self.large else { continue };
            **field = u64_at(large, at)?;
            at += 8;
        }
        Some(())
    }

    /// Returns whether another name than `name` is stated, which some programs take.
    pub fn renames(&self, name: &[u8]) -> bool {
        self.unicode.is_some_and(|field| field.get(5..) != Some(name))
    }
}

/// Extra fields of zip64, and of names in Unicode.
const LARGE: u16 = 1;
const UNICODE_PATH: u16 = 0x7075;
