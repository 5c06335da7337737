//! Tables of text.

/// Alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// For words.
    Left,
    /// For numbers.
    Right,
}

/// Formats rows under the heads of columns. Each column is as wide as its widest cell, and lines
/// have no trailing spaces.
pub fn table(heads: &[(&str, Align)], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([heads[column].0.chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let head: Vec<String> = heads.iter().map(|(head, _)| (*head).to_owned()).collect();
    let mut text = String::new();
    for row in [&head, &rule].into_iter().chain(rows) {
        let cells =
            row.iter().zip(&widths).zip(heads).map(|((cell, &width), (_, align))| match align {
                Align::Left => format!("{cell:<width$}"),
                Align::Right => format!("{cell:>width$}"),
            });
        let line = cells.collect::<Vec<_>>().join(&" ".repeat(GAP));
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// [`table`], with the cells of the last column cut where a line would be longer than `width`.
pub fn table_within(width: usize, heads: &[(&str, Align)], rows: &[Vec<String>]) -> String {
    let last = heads.len() - 1;
    let others = 0..last;
    let taken: usize = others
        .map(|column| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.chain([heads[column].0.chars().count()]).max().unwrap_or(0) + GAP
        })
        .sum();
    let mut rows = rows.to_vec();
    for row in &mut rows {
        row[last] = cut(&row[last], width.saturating_sub(taken));
    }
    table(heads, &rows)
}

/// Cuts `text` to `width` characters, behind a comma if it has one, and shows that something is
/// missing.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let head: String = text.chars().take(width.saturating_sub(ELLIPSIS.len())).collect();
    let end = head.rfind(", ").map_or(head.len(), |comma| comma + ", ".len());
    format!("{}{ELLIPSIS}", &head[..end])
}

/// Breaks `text` at spaces into lines of at most `width` characters. All lines but the first are
/// indented by `indent` spaces; a word that is longer than a line stays whole.
pub fn wrapped(text: &str, indent: usize, width: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for (index, word) in text.split(' ').enumerate() {
        let length = word.chars().count();
        if index > 0 && column + 1 + length > width {
            out.push('\n');
            out += &" ".repeat(indent);
            column = indent;
        } else if index > 0 {
            out.push(' ');
            column += 1;
        }
        out += word;
        column += length;
    }
    out
}

/// A number with as many digits as say something.
pub fn number(value: f64) -> String {
    match value {
        _ if value >= 99.95 => format!("{value:.0}"),
        _ if value >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Formats a number of bytes in the largest unit that divides it.
pub fn size(bytes: u64) -> String {
    match bytes {
        0 => "0 bytes".to_owned(),
        _ if bytes.is_multiple_of(1 << 30) => format!("{} GiB", bytes >> 30),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} bytes"),
    }
}

/// Spaces between columns.
const GAP: usize = 2;

const ELLIPSIS: &str = "...";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables() {
        let heads = [("Name", Align::Left), ("N", Align::Right), ("Note", Align::Left)];
        let rows = [
            vec!["a".into(), "100".into(), "x".into()],
            vec!["größer".into(), "7".into(), String::new()],
        ];
        let expected = "\
Name      N  Note
------  ---  ----
a       100  x
größer    7
";
        assert_eq!(table(&heads, &rows), expected);
    }

    #[test]
    fn tables_within_a_width() {
        let heads = [("Name", Align::Left), ("Used by", Align::Left)];
        let rows = [
            vec!["sha256".into(), "btrfs, ZFS, dm-verity".into()],
            vec!["sha1".into(), "a-name-without-commas".into()],
            vec!["md5".into(), "größer".into()],
        ];
        let expected = "\
Name    Used by
------  -------------
sha256  btrfs, ...
sha1    a-name-wit...
md5     größer
";
        assert_eq!(table_within(21, &heads, &rows), expected);
        assert_eq!(table_within(29, &heads, &rows), table(&heads, &rows));
        assert!(table_within(3, &heads, &rows).contains("\nsha1    ...\n"));
    }

    #[test]
    fn lines_within_a_width() {
        assert_eq!(wrapped("CPU: one two three", 5, 12), "CPU: one two\n     three");
        assert_eq!(wrapped("a word-longer-than-that b", 2, 10), "a\n  word-longer-than-that\n  b");
        assert_eq!(wrapped("keeps  two  spaces", 0, 80), "keeps  two  spaces");
        assert_eq!(wrapped("", 2, 10), "");
    }

    #[test]
    fn numbers() {
        assert_eq!(
            [0.5, 9.999, 12.34, 99.96, 1234.5].map(number),
            ["0.50", "10.0", "12.3", "100", "1234"]
        );
        assert_eq!(
            [512, 4096, 1 << 20, 3 << 30].map(size),
            ["512 bytes", "4 KiB", "1 MiB", "3 GiB"]
        );
    }
}
