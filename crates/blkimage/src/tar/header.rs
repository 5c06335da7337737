//! The header of a member, and the numbers in it.

use std::ops::Range;

/// Returns whether `block`, the first of a file, is the header of a tar archive.
///
/// A guest can write such a header into its raw disk, so the content alone does not make an archive.
pub fn is_tar(block: &[u8]) -> bool {
    block.first_chunk().is_some_and(|block| Header(block).is_valid())
}

/// The type of a header, by what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    /// The content is the name of the next member.
    LongName,
    LongLink,
    /// Records about the next member.
    Pax,
    /// Records about all members.
    Global,
    /// Sparse in the format of GNU tar.
    Sparse,
    Folder,
    /// A link, a device or a FIFO, or a type of its own.
    Other,
}

/// A header, which takes a block.
pub(super) struct Header<'a>(pub &'a [u8; BLOCK as usize]);

impl Header<'_> {
    /// Returns whether the checksum is a header's. Some old programs added up signed bytes.
    pub fn is_valid(&self) -> bool {
        let rest = || self.0[..148].iter().chain(&self.0[156..]);
        let blanks = 8 * i64::from(b' ');
        let unsigned = blanks + rest().map(|byte| i64::from(*byte)).sum::<i64>();
        let signed = blanks + rest().map(|byte| i64::from(byte.cast_signed())).sum::<i64>();
        let stated = octal(&self.0[148..156]).and_then(|sum| i64::try_from(sum).ok());
        stated.is_some_and(|stated| stated == unsigned || stated == signed)
    }

    pub fn kind(&self) -> Kind {
        match self.0[TYPE] {
            0 | b'0' | b'7' => Kind::File,
            b'5' => Kind::Folder,
            b'L' => Kind::LongName,
            b'K' => Kind::LongLink,
            b'x' => Kind::Pax,
            b'g' => Kind::Global,
            b'S' => Kind::Sparse,
            _ => Kind::Other,
        }
    }

    /// Returns whether the fields of numbers that concern no content hold what Go reads as numbers.
    pub fn has_valid_numbers(&self) -> bool {
        let is_blank = |field: &[u8]| field.iter().all(|byte| matches!(byte, 0 | b' '));
        let is_number = |field: &Range<usize>| {
            let field = &self.0[field.clone()];
            matches!(field[0], 0x80 | 0xff) || is_blank(field) || octal(field).is_some()
        };
        // V7 has no numbers of devices.
        let fields =
            if self.0[MAGIC..MAGIC + 5] == *b"ustar" { &NUMBERS[..] } else { &NUMBERS[..4] };
        fields.iter().all(is_number)
    }

    /// Returns whether Go reads a file whose name is a folder's as one, as do others.
    pub fn is_folder_in_go(&self, name: &[u8]) -> bool {
        self.0[TYPE] == 0 && name.ends_with(b"/")
    }

    /// Returns whether this is a folder without a type. Python's tarfile asks the name in the header, whatever
    /// name follows.
    pub fn is_folder_of_v7(&self) -> bool {
        self.0[TYPE] == 0 && self.text(NAME).ends_with(b"/")
    }

    /// Returns the size, in octal digits or, from 8 GiB on, in binary.
    pub fn size(&self) -> Option<u64> {
        number(&self.0[124..136])
    }

    /// Returns whether GNU tar reads the map of a file with holes in this header, because it is in its own format.
    pub fn is_gnu(&self) -> bool {
        self.0[MAGIC..MAGIC + 8] == *b"ustar  \0"
    }

    /// Returns whether GNU tar follows PAX records about holes before this header: not in V7, in its own format, and in
    /// star's, which has times after a shorter prefix.
    pub fn is_pax(&self) -> bool {
        self.0[MAGIC..MAGIC + 6] == *b"ustar\0" && [self.0[487], self.0[499]] != *b"  "
    }

    /// Returns the name. `None` if there is a prefix in a format that has none or a shorter one: V7, GNU tar's, which
    /// has times there, or star's, whose header ends so.
    pub fn name(&self) -> Option<Vec<u8>> {
        let (name, prefix) = (self.text(NAME), self.text(PREFIX));
        match prefix.is_empty() {
            true => Some(name.to_vec()),
            false => (self.0[MAGIC..MAGIC + 6] == *b"ustar\0" && self.0[508..] != *b"tar\0")
                .then(|| [prefix, name].join(&b'/')),
        }
    }

    /// Returns the bytes of a field up to a NUL.
    pub fn text(&self, field: Range<usize>) -> &[u8] {
        self.0[field].split(|byte| *byte == 0).next().unwrap_or(&[])
    }
}

/// Returns the number in a field: octal digits between blanks, or nothing at all.
pub(super) fn octal(field: &[u8]) -> Option<u64> {
    if field.iter().all(|byte| *byte == 0) {
        return Some(0);
    }
    let start = field.iter().position(|byte| *byte != b' ')?;
    let digits = field[start..].iter().take_while(|byte| matches!(byte, b'0'..=b'7')).count();
    let (digits, rest) = field[start..].split_at(digits);
    let is_end = rest.iter().all(|byte| matches!(byte, 0 | b' '));
    let value = digits.iter().fold(0, |value, digit| value << 3 | u64::from(digit - b'0'));
    (is_end && !digits.is_empty()).then_some(value)
}

/// Returns the number in a field of 12 bytes, in octal digits or in binary.
pub(super) fn number(field: &[u8]) -> Option<u64> {
    match field[0] {
        0x80 if field[1..4] == [0; 3] => {
            Some(field[4..].iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
        }
        0x80.. => None,
        _ => octal(field),
    }
}

/// Returns whether all bytes are zero.
pub(super) fn is_zero(block: &[u8]) -> bool {
    block.iter().all(|byte| *byte == 0)
}

/// Returns the number of decimal digits and nothing else.
pub(super) fn decimal(digits: &[u8]) -> Option<u64> {
    let is_plain = digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| is_plain)?.parse().ok()
}

/// Unit of an archive in bytes.
pub(crate) const BLOCK: u64 = 512;

/// Fields of the name of a member in its header, and of the part before it.
pub(super) const NAME: Range<usize> = 0..100;
const PREFIX: Range<usize> = 345..500;

/// Field of the name to which a link leads.
pub(super) const LINK: Range<usize> = 157..257;

/// Fields of the mode, the owner, the group and the time, and of the numbers of a device.
const NUMBERS: [Range<usize>; 6] = [100..108, 108..116, 116..124, 136..148, 329..337, 337..345];

/// Offset of the type of a member in its header.
pub(super) const TYPE: usize = 156;

/// Offset of the format of a header.
const MAGIC: usize = 257;
