//! Names of files in the encoding of a descriptor.
//!
//! VMware reads a name as text in the encoding that `encoding=` names, and a file system of Linux has the same text in UTF-8.
//! QEMU takes the bytes as they are. A file is therefore sought by the bytes first, and then by the text.

use encoding_rs::Encoding;

use crate::error::excerpt;

/// Returns a name in UTF-8, or `None` if these are the bytes of the name. The error is the end of a sentence about the name.
pub(super) fn in_utf8(name: &[u8], encoding: Option<&[u8]>) -> Result<Option<Vec<u8>>, String> {
    let Some(label) = encoding.filter(|_| !name.is_ascii()) else { return Ok(None) };
    let Some(found) = find(label) else {
        let reason = format!("in the encoding \"{}\", which is not known", excerpt(label));
        return Err(reason);
    };
    let Some(text) = found.decode_without_bom_handling_and_without_replacement(name) else {
        return Err(format!("which is no text in its encoding, {}", found.name()));
    };
    Ok(Some(text.into_owned().into_bytes()).filter(|text| text != name))
}

/// Returns the encoding with this label.
fn find(label: &[u8]) -> Option<&'static Encoding> {
    let alias = ALIASES.iter().find(|(name, _)| label.eq_ignore_ascii_case(name.as_bytes()));
    Encoding::for_label_no_replacement(alias.map_or(label, |(_, known)| known.as_bytes()))
}

/// Code pages of Windows that are not among the labels of the web.
const ALIASES: [(&str, &str); 3] =
    [("windows-932", "Shift_JIS"), ("windows-936", "GBK"), ("windows-950", "Big5")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_decoded() {
        for (label, bytes, text) in [
            ("GBK", &b"\xb4\xc5\xc5\xcc"[..], "磁盘"),
            ("windows-936", b"\xb4\xc5\xc5\xcc", "磁盘"),
            ("gb2312", b"\xb4\xc5\xc5\xcc", "磁盘"),
            ("Shift_JIS", b"\x83\x5c\x95\x5c", "ソ表"),
            ("windows-932", b"\x83\x5c\x95\x5c", "ソ表"),
            ("big5", b"\xba\xcf\xba\xd0", "磁碟"),
            ("windows-950", b"\xba\xcf\xba\xd0", "磁碟"),
            ("windows-1252", b"D\xe4tentr\xe4ger", "Dätenträger"),
            ("ISO-8859-1", b"D\xe4tentr\xe4ger", "Dätenträger"),
            ("windows-1251", b"\xc4\xe8\xf1\xea", "Диск"),
            ("windows-949", b"\xb5\xf0\xbd\xba\xc5\xa9", "디스크"),
        ] {
            let found = in_utf8(bytes, Some(label.as_bytes()));
            assert_eq!(found, Ok(Some(text.as_bytes().to_vec())), "{label}");
            // Names in ASCII and in UTF-8 are the names of the file.
            assert_eq!(in_utf8(b"disk-flat.vmdk", Some(label.as_bytes())), Ok(None));
            assert_eq!(in_utf8(text.as_bytes(), Some(b"UTF-8")), Ok(None));
            assert_eq!(in_utf8(bytes, None), Ok(None));
        }
    }

    #[test]
    fn unknown_labels_and_other_bytes() {
        for label in ["", "x", "GBK ", "windows-9999", "replacement", "UTF-7", "\u{1b}"] {
            assert_eq!(in_utf8(b"disk", Some(label.as_bytes())), Ok(None), "{label}");
            let found = in_utf8(b"D\xe4", Some(label.as_bytes()));
            if label != "GBK " {
                let reason = found.unwrap_err();
                assert!(reason.contains("which is not known"), "{reason}");
            }
        }
        let reason = in_utf8(b"\xff\xff", Some(b"GBK")).unwrap_err();
        assert_eq!(reason, "which is no text in its encoding, GBK");
        assert!(in_utf8(b"\xff", Some(b"UTF-8")).is_err());
    }
}
