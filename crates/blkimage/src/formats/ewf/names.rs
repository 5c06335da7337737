//! The names of segments: `.E01` to `.E99`, then `.EAA` to `.EZZ`, `.FAA` and so on to `.ZZZ`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::error::{ErrorKind, Result, excerpt};
use crate::storage::HostFile;

/// Returns the name, without a folder, of a segment of the image whose first segment is `first`. Fails if `first` has no
/// name that says it, or there are no more names.
pub(super) fn segment(first: &HostFile, number: u32) -> Result<Vec<u8>> {
    let name = first.name().file_name().map(OsStr::as_bytes).unwrap_or_default();
    let (stem, letter) = split(name).filter(|(.., end)| *end == b"01").map(|it| (it.0, it.1)).ok_or_else(|| {
        let reason = format!(
            "is the first of several segments, and has no name like x.E01 from which the name of segment {number} follows"
        );
        first.error(ErrorKind::Reference, reason)
    })?;
    let Some(extension) = extension(letter, number) else {
        return Err(first.corrupt("has more segments than there are names for"));
    };
    Ok([stem, b".", &extension].concat())
}

/// Returns the name of the first segment from the name of another one, for people.
pub(super) fn first(segment: &HostFile) -> Option<String> {
    let name = segment.name().file_name()?.as_bytes();
    let (stem, letter, _) = split(name)?;
    // After .EZZ comes .FAA.
    let letter =
        if letter.is_ascii_lowercase() { if letter < b's' { b'e' } else { letter } } else { b'E' };
    Some(excerpt(&[stem, b".", &[letter], b"01"].concat()))
}

/// Splits a name into what is before the extension, and the first letter and the rest of an extension of three letters.
fn split(name: &[u8]) -> Option<(&[u8], u8, &[u8])> {
    let at = name.iter().rposition(|byte| *byte == b'.')?;
    match &name[at + 1..] {
        [letter, end @ ..] if letter.is_ascii_alphabetic() && end.len() == 2 => {
            Some((&name[..at], *letter, end))
        }
        _ => None,
    }
}

/// Returns the extension of segment `number`, from 1, if the extension of the first one begins with `letter`.
fn extension(letter: u8, number: u32) -> Option<Vec<u8>> {
    if number <= LAST_DIGITS {
        return Some([&[letter], format!("{number:02}").as_bytes()].concat());
    }
    let (a, z) = if letter.is_ascii_lowercase() { (b'a', b'z') } else { (b'A', b'Z') };
    let index = number - LAST_DIGITS - 1;
    let first = u8::try_from(index / (26 * 26)).ok().and_then(|step| letter.checked_add(step));
    let first = first.filter(|first| *first <= z)?;
    let [second, third] = [index / 26 % 26, index % 26].map(|it| a + it as u8);
    Some(vec![first, second, third])
}

/// The last segment whose number is written in digits.
const LAST_DIGITS: u32 = 99;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_in_order() {
        for (letter, number, expected) in [
            (b'E', 1, "E01"),
            (b'e', 2, "e02"),
            (b'E', 99, "E99"),
            (b'E', 100, "EAA"),
            (b'e', 101, "eab"),
            (b'E', 125, "EAZ"),
            (b'E', 126, "EBA"),
            (b'E', 775, "EZZ"),
            (b'E', 776, "FAA"),
            (b's', 100, "saa"),
            (b'E', 14971, "ZZZ"),
        ] {
            let found = extension(letter, number).unwrap();
            assert_eq!(found, expected.as_bytes(), "{number}");
        }
        for (letter, number) in [(b'E', 14972), (b's', 5508), (b'E', u32::MAX)] {
            assert_eq!(extension(letter, number), None, "{number}");
        }
    }
}
