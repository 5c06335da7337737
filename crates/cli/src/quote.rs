//! Quoting of names and texts for messages, so that each is one line without terminal controls.

use std::fmt::Write;

use blksum::check_file::Style;

/// Returns a name as messages show it. A name that a shell would read literally stays as it is, others
/// are quoted for the shell as sha256sum and ls do. Names come from check files and folders, which are
/// not trusted.
pub fn name(bytes: &[u8]) -> String {
    let pieces: Vec<Piece> = pieces(bytes).collect();
    let plain = |piece: &Piece| match piece {
        Piece::Text(c) => !is_special(*c),
        Piece::Byte(_) => false,
    };
    let starts_plain = !matches!(bytes, [b'#' | b'~', ..] | b"{" | b"}");
    if !bytes.is_empty() && starts_plain && pieces.iter().all(plain) {
        return pieces.iter().map(Piece::text).collect();
    }
    let is_byte = |piece: &Piece| matches!(piece, Piece::Byte(_));
    if bytes.contains(&b'\'') && !pieces.iter().any(is_byte) && !needs_single_quotes(bytes) {
        return format!("\"{}\"", String::from_utf8_lossy(bytes));
    }
    single_quoted(&pieces)
}

/// Returns the line of a check file. On a terminal, an unprintable name is quoted instead of escaped.
pub fn line(style: &Style, name: &[u8], digest: &[u8], is_terminal: bool) -> Vec<u8> {
    if !is_terminal || !has_controls(name) {
        return style.line(name, digest);
    }
    let shown = self::name(name);
    let mut line = Style { zero: true, ..style.clone() }.line(shown.as_bytes(), digest);
    if !style.zero {
        line.pop();
        line.push(b'\n');
    }
    line
}

/// Escapes line breaks and everything else in `text` that a terminal would interpret.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_printable(c) { out.push(c) } else { out.extend(c.escape_default()) }
    }
    out
}

/// Returns whether these bytes hold anything that a terminal would not simply show.
pub fn has_controls(bytes: &[u8]) -> bool {
    pieces(bytes).any(|piece| matches!(piece, Piece::Byte(_)))
}

/// A character that is printed as it is, or a byte that has to be escaped.
enum Piece {
    Text(char),
    Byte(u8),
}

impl Piece {
    fn text(&self) -> char {
        match self {
            Self::Text(c) => *c,
            Self::Byte(byte) => char::from(*byte),
        }
    }
}

fn pieces(bytes: &[u8]) -> impl Iterator<Item = Piece> {
    bytes.utf8_chunks().flat_map(|chunk| {
        let text = chunk.valid().chars().flat_map(|c| {
            let bytes = if is_printable(c) { Vec::new() } else { c.to_string().into_bytes() };
            let text = if is_printable(c) { Some(Piece::Text(c)) } else { None };
            text.into_iter().chain(bytes.into_iter().map(Piece::Byte))
        });
        text.chain(chunk.invalid().iter().map(|byte| Piece::Byte(*byte)))
    })
}

/// Quotes a name in the style of `'a'$'\n''b'`.
fn single_quoted(pieces: &[Piece]) -> String {
    let mut out = String::from("'");
    let mut in_escape = false;
    for piece in pieces {
        match piece {
            Piece::Byte(byte) => {
                if !in_escape {
                    out.push_str("'$'");
                    in_escape = true;
                }
                match byte {
                    b'\n' => out.push_str("\\n"),
                    b'\r' => out.push_str("\\r"),
                    b'\t' => out.push_str("\\t"),
                    7 => out.push_str("\\a"),
                    8 => out.push_str("\\b"),
                    11 => out.push_str("\\v"),
                    12 => out.push_str("\\f"),
                    _ => write!(out, "\\{byte:03o}").expect("a String takes everything"),
                }
            }
            // The first quote of the sequence also ends an escape.
            Piece::Text('\'') => {
                out.push_str("'\\''");
                in_escape = false;
            }
            Piece::Text(c) => {
                if in_escape {
                    out.push_str("''");
                    in_escape = false;
                }
                out.push(*c);
            }
        }
    }
    out.push('\'');
    out
}

/// Returns whether a character is special to a shell, or the colon that ends a name in a message.
fn is_special(c: char) -> bool {
    " !\"$&'()*:;<=>?[\\^`|".contains(c)
}

/// Returns whether a name holds characters that are special to a shell within double quotes, or that
/// sha256sum treats as such.
fn needs_single_quotes(name: &[u8]) -> bool {
    name.iter().enumerate().any(|(index, byte)| match byte {
        b'#' | b'~' => index > 0,
        _ => b"!\"$&()*;<=>?[\\^`|{}".contains(byte),
    })
}

/// Returns whether a terminal just shows a character: it is no control character, and does not change
/// the direction of the text around it.
pub fn is_printable(c: char) -> bool {
    let changes_direction = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    !c.is_control() && !changes_direction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let cases: [(&[u8], &str); 13] = [
            (b"disk.img", "disk.img"),
            (b"a/b-c_d+e,f%g@h", "a/b-c_d+e,f%g@h"),
            ("größe".as_bytes(), "größe"),
            (b"", "''"),
            (b"a b", "'a b'"),
            (b"a:b", "'a:b'"),
            (b"#a", "'#a'"),
            (b"a#", "a#"),
            (b"it's", "\"it's\""),
            (b"it's $5", "'it'\\''s $5'"),
            (b"a\nb\x1b", "'a'$'\\n''b'$'\\033'"),
            (b"\xff\xfe", "''$'\\377\\376'"),
            ("a\u{202e}".as_bytes(), "'a'$'\\342\\200\\256'"),
        ];
        for (bytes, shown) in cases {
            assert_eq!(name(bytes), shown);
        }
    }

    #[test]
    fn texts() {
        assert_eq!(printable("a\x1b[2J\nb ü"), "a\\u{1b}[2J\\nb ü");
    }
}
