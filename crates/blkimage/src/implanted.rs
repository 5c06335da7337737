//! MD5 checksums that `implantisomd5` of isomd5sum writes into images of ISO 9660.
//!
//! The application use field of the primary volume descriptor holds a text of fields, each a name, ` = ` and a value, with
//! semicolons between them. The MD5 is of the volume without its last sectors, with spaces in place of the text. The
//! size of the volume is from the descriptor, in big-endian order.
//!
//! Fragment sums are digits of the MD5 of what was hashed so far. `implantisomd5` reads [`STEP`] bytes at a time, and notes a
//! sum after the first step that begins in the next fragment. `checkisomd5` fails unless all [`DIGITS`] are there, and
//! so does this.

use std::ops::Range;

/// An MD5 that an image of ISO 9660 states of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Implanted {
    /// The MD5 of the first [`length`](Self::length) bytes, with spaces in place of [`BLANK`](Self::BLANK).
    pub md5: [u8; 16],
    /// Number of bytes that it is of, from the start of the image on.
    pub length: u64,
    /// Number of bytes of the volume. The last ones are not hashed.
    pub volume_size: u64,
    /// Sums of the beginning of the content, in order. Empty if the image states that it has none.
    pub fragments: Vec<FragmentSum>,
}

/// Digits of the MD5 of the first bytes of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FragmentSum {
    /// Number of bytes that the sum is of, from the start of the image on.
    pub end: u64,
    /// The first digit of each byte of the MD5 in hexadecimal without leading zeros, for the first bytes.
    digits: Vec<u8>,
}

impl FragmentSum {
    /// Returns whether this is the sum of content with this MD5.
    pub fn matches(&self, md5: &[u8]) -> bool {
        let first_digit = |byte: u8| if byte < 16 { byte } else { byte >> 4 };
        md5.len() >= self.digits.len()
            && self.digits.iter().zip(md5).all(|(digit, byte)| *digit == first_digit(*byte))
    }
}

impl Implanted {
    /// The bytes of an image in place of which spaces are hashed.
    pub const BLANK: Range<u64> = DESCRIPTOR + 883..DESCRIPTOR + 1395;

    /// Reads the text in a primary volume descriptor. `None` if it states no MD5. The error is the reason why the text is
    /// not valid.
    pub(crate) fn parse(descriptor: &Descriptor) -> Result<Option<Self>, String> {
        if !descriptor.is_primary() {
            return Ok(None);
        }
        let bytes = &descriptor.0;
        let text = &bytes[(Self::BLANK.start - DESCRIPTOR) as usize..][..512];
        let fields: Vec<&[u8]> = text.split(|byte| *byte == b';').collect();
        let Some(md5) = value(&fields, "ISO MD5SUM")? else { return Ok(None) };
        let md5: Option<Vec<u8>> =
            md5.chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?)).collect();
        let md5 = md5.and_then(|md5| <[u8; 16]>::try_from(md5).ok()).ok_or("no valid MD5")?;
        let skipped =
            value(&fields, "SKIPSECTORS")?.and_then(number).ok_or("no valid SKIPSECTORS")?;
        let volume = u64::from(u32::from_be_bytes([84, 85, 86, 87].map(|at| bytes[at]))) * SECTOR;
        let length = skipped.checked_mul(SECTOR).and_then(|skipped| volume.checked_sub(skipped));
        // The sum of less would not even be of the descriptor.
        let length = length.filter(|length| *length >= DESCRIPTOR + SECTOR);
        let length = length.ok_or_else(|| {
            format!("a volume of {volume} bytes, of which all but {skipped} sectors are hashed")
        })?;
        let fragments = fragments(&fields, length)?;
        Ok(Some(Self { md5, length, volume_size: volume, fragments }))
    }
}

/// The sector in which an image of ISO 9660 has its primary volume descriptor.
pub(crate) struct Descriptor(pub [u8; SECTOR as usize]);

impl Descriptor {
    /// The offset of the descriptor in an image.
    pub const OFFSET: u64 = DESCRIPTOR;

    pub const SIZE: u64 = SECTOR;

    /// Whether this is a primary volume descriptor.
    pub fn is_primary(&self) -> bool {
        self.0.starts_with(b"\x01CD001\x01")
    }
}

/// Returns the sums of fragments.
fn fragments(fields: &[&[u8]], length: u64) -> Result<Vec<FragmentSum>, String> {
    let count =
        value(fields, "FRAGMENT COUNT")?.and_then(number).ok_or("no valid FRAGMENT COUNT")?;
    if count == 0 {
        return Ok(Vec::new());
    }
    let digits = value(fields, "FRAGMENT SUMS")?.unwrap_or_default();
    let digits: Option<Vec<u8>> = digits.iter().map(|byte| digit(*byte)).collect();
    let digits = digits.ok_or("no valid FRAGMENT SUMS")?;
    let size = length / count.saturating_add(1);
    let width = DIGITS as u64 / count;
    if digits.len() != DIGITS || width == 0 || width > MAX_WIDTH || size == 0 {
        let found = digits.len();
        return Err(format!(
            "FRAGMENT SUMS of {found} digits for {count} fragments of {size} bytes, where checkisomd5 expects {DIGITS} digits"
        ));
    }
    // A step that begins in a fragment may be long enough to skip others.
    let mut ends: Vec<u64> = Vec::new();
    for number in 1..=count {
        let start = (number * size).next_multiple_of(STEP);
        if start >= length || start / size > count {
            break;
        }
        let end = (start + STEP).min(length);
        if ends.last() != Some(&end) {
            ends.push(end);
        }
    }
    if ends.len() as u64 * width != DIGITS as u64 {
        let found = ends.len();
        return Err(format!(
            "FRAGMENT SUMS for {count} fragments, of which {length} bytes have {found}, so that checkisomd5 fails"
        ));
    }
    let digits = digits.chunks(width as usize).map(<[u8]>::to_vec);
    Ok(ends.into_iter().zip(digits).map(|(end, digits)| FragmentSum { end, digits }).collect())
}

/// Returns the value of a field, with the blanks around it. `checkisomd5` finds the last occurrence of a name, wherever that is, so
/// this fails if there is one that does not begin a field, or are several.
fn value<'a>(fields: &[&'a [u8]], name: &str) -> Result<Option<&'a [u8]>, String> {
    let name_with_sign = format!("{name} = ");
    let start = name_with_sign.as_bytes();
    let mut found =
        fields.iter().filter(|field| field.windows(start.len()).any(|bytes| bytes == start));
    match (found.next(), found.next()) {
        (None, _) => Ok(None),
        (Some(field), None) => match field.trim_ascii_start().strip_prefix(start) {
            Some(value) => Ok(Some(value)),
            None => Err(format!("a field of another name with {name}")),
        },
        (Some(_), Some(_)) => Err(format!("several fields {name}")),
    }
}

/// Returns the value of a digit in hexadecimal. Digits of isomd5sum are in lower case, and its programs take no others.
fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()
}

const SECTOR: u64 = 2048;

/// Offset of the primary volume descriptor.
const DESCRIPTOR: u64 = 16 * SECTOR;

/// Number of bytes that `implantisomd5` reads at a time.
const STEP: u64 = 32 << 10;

/// Number of digits of all fragment sums.
const DIGITS: usize = 60;

/// Maximum number of digits of a fragment sum: one for each byte of an MD5.
const MAX_WIDTH: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// A volume of 1000 sectors with this text.
    fn parse(text: &str) -> Result<Option<Implanted>, String> {
        let mut bytes = [0; SECTOR as usize];
        bytes[..7].copy_from_slice(b"\x01CD001\x01");
        bytes[84..88].copy_from_slice(&1000_u32.to_be_bytes());
        bytes[883..1395].fill(b' ');
        bytes[883..883 + text.len()].copy_from_slice(text.as_bytes());
        Implanted::parse(&Descriptor(bytes))
    }

    fn text(skipped: &str, sums: &str, count: &str) -> String {
        let md5 = "00112233445566778899aabbccddeeff";
        format!(
            "ISO MD5SUM = {md5};SKIPSECTORS = {skipped};RHLISOSTATUS=1;FRAGMENT SUMS = {sums};FRAGMENT COUNT = {count};THIS"
        )
    }

    #[test]
    fn texts() {
        let sums = "0123456789ab".repeat(5);
        let found = parse(&text("15", &sums, "20")).unwrap().unwrap();
        assert_eq!((found.length, found.volume_size), (985 * 2048, 1000 * 2048));
        assert_eq!(found.md5[..3], [0, 0x11, 0x22]);
        assert_eq!(found.fragments.len(), 20);
        // A fragment has 96060 bytes, and the first step in the second one begins at 98304.
        assert_eq!(found.fragments[0].end, 131_072);
        assert!(found.fragments[0].matches(&[0x00, 0x01, 0x2f, 0xee]));
        assert!(found.fragments[1].matches(&[0x3f, 0x04, 0x50, 0xee]));
        assert!(!found.fragments[0].matches(&[0x10, 0x01, 0x2f]));
        assert!(!found.fragments[0].matches(&[0x00, 0x01]));
        assert_eq!(parse(&text("15", "", "0")).unwrap().unwrap().fragments, []);
        assert_eq!(parse("").unwrap(), None);
        assert_eq!(parse("ISO MD5SUM: none").unwrap(), None);
    }

    #[test]
    fn texts_that_are_not_valid() {
        let sums = "0123456789ab".repeat(5);
        for (case, text) in [
            ("sectors", text("x", &sums, "20")),
            ("sign", text("+15", &sums, "20")),
            ("overflow", text("99999999999999999999", &sums, "20")),
            ("product", text("18446744073709551615", &sums, "20")),
            ("nothing", text("1000", &sums, "20")),
            ("descriptor", text("984", &sums, "20")),
            ("no sums", text("15", "", "20")),
            ("capitals", text("15", &sums.to_uppercase(), "20")),
            ("too few", text("15", &sums[1..], "20")),
            ("count", text("15", &sums, "")),
            ("many", text("15", &sums, "61")),
            ("huge", text("15", &sums, "18446744073709551615")),
            ("wide", text("15", &sums, "3")),
            ("fragments", text("15", &sums, "19")),
            ("small", text("900", &sums, "20")),
            ("within", text("15", &sums, "20").replace("RHLISO", "RHLISOSKIPSECTORS = 0;")),
            ("empty again", text("15", &sums, "20") + ";SKIPSECTORS = ;"),
            ("blank", text("15 ", &sums, "20")),
            ("blank before", text("15", &sums, "20").replace("SUM = ", "SUM =  ")),
            ("twice", text("15", &sums, "20") + ";ISO MD5SUM = 0"),
            ("md5", text("15", &sums, "20").replace("ddeeff", "ddeef")),
        ] {
            assert!(parse(&text).is_err(), "{case}: {:?}", parse(&text));
        }
    }
}
