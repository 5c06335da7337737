//! Hexadecimal digits.

use std::fmt;

/// Decodes two digits of any case for each of `bytes`. Fails with the offset of a byte that is not a
/// digit.
pub(crate) fn decode(text: &str, bytes: &mut [u8]) -> Result<(), usize> {
    debug_assert_eq!(text.len(), 2 * bytes.len());
    let digit = |offset: usize| {
        let value = char::from(text.as_bytes()[offset]).to_digit(16);
        value.map(|value| value as u8).ok_or(offset)
    };
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = digit(2 * index)? << 4 | digit(2 * index + 1)?;
    }
    Ok(())
}

/// Writes two lower case digits for each byte.
pub(crate) fn encode(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}
