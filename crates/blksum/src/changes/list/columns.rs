//! Lists with an extent on each line: CSV, and numbers with spaces in between.

use std::io::Read;

use super::ListError;
use super::extents::Extents;
use super::text::Text;

/// The separator of the numbers of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Separator {
    Comma,
    /// Spaces or tabs.
    Space,
}

/// Reads lines into `extents`. The last one ends as the others do, since a number that is cut is a number, too.
pub(super) fn read<R: Read>(
    text: &mut Text<R>,
    separator: Separator,
    extents: &mut Extents,
) -> Result<(), ListError> {
    let mut line = Vec::new();
    let mut may_be_header = separator == Separator::Comma;
    loop {
        let number = text.read_line(&mut line)?;
        let is_cut = !line.ends_with(b"\n");
        match line.trim_ascii().is_empty() {
            true if is_cut => return Ok(()),
            true => continue,
            false if is_cut => {
                let problem = "the list is cut: its last line has no line break";
                return Err(ListError::at_line(number, problem));
            }
            false if may_be_header && is_header(&line) => {}
            false => {
                let added = columns(&line, separator)
                    .and_then(|(offset, length)| extents.add(offset, length));
                added.map_err(|problem| ListError::at_line(number, &problem))?;
            }
        }
        may_be_header = false;
    }
}

/// Returns whether a line is `offset,length`.
pub(super) fn is_header(line: &[u8]) -> bool {
    let mut names = line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let mut is_next = |name: &[u8]| names.next().is_some_and(|it| it.eq_ignore_ascii_case(name));
    is_next(b"offset") && is_next(b"length") && names.next().is_none()
}

fn columns(line: &[u8], separator: Separator) -> Result<(u64, u64), String> {
    let line = line.trim_ascii();
    let columns: Vec<_> = match separator {
        Separator::Comma => line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).collect(),
        Separator::Space => {
            line.split(u8::is_ascii_whitespace).filter(|it| !it.is_empty()).collect()
        }
    };
    match (&columns[..], separator) {
        ([offset, length], _) => Ok((number(offset)?, number(length)?)),
        (_, Separator::Comma) => Err("is not OFFSET,LENGTH".into()),
        (_, Separator::Space) => Err("is not OFFSET LENGTH".into()),
    }
}

/// Reads a decimal number without a sign.
pub(super) fn number(digits: &[u8]) -> Result<u64, String> {
    let text = std::str::from_utf8(digits).ok();
    let text = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let number = text.and_then(|text| text.parse().ok());
    number.ok_or_else(|| format!("'{}' is not a number of bytes", digits.escape_ascii()))
}
