//! Tables of text.

/// Formats rows under the heads of columns. A head that begins with `>`, which is not shown, is for numbers: its
/// column is aligned to the right. Each column is as wide as its widest cell, and lines have no trailing spaces.
pub fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    let widths = widths(heads, rows);
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let names: Vec<String> = heads.iter().map(|head| name(head).to_owned()).collect();
    let mut text = String::new();
    for row in [&names, &rule].into_iter().chain(rows) {
        let cells = row.iter().zip(&widths).zip(heads);
        let cells = cells.map(|((cell, &width), head)| match is_right(head) {
            false => format!("{cell:<width$}"),
            true => format!("{cell:>width$}"),
        });
        let line = cells.collect::<Vec<_>>().join(&" ".repeat(GAP));
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// [`table`] with lines of at most `width` characters. Leaves out the columns in `spare`, in this order, until the others
/// fit, and then cuts the cells of the last column. A last column of words that is spare is cut first, as long as its
/// head fits.
pub fn table_within(width: usize, spare: &[&str], heads: &[&str], rows: &[Vec<String>]) -> String {
    let (mut heads, mut rows) = (heads.to_vec(), rows.to_vec());
    let mut next = spare.iter();
    let left = loop {
        let widths = widths(&heads, &rows);
        let (last, others) = widths.split_last().expect("a table has columns");
        let left = width.saturating_sub(others.iter().map(|width| width + GAP).sum());
        let head = heads[others.len()];
        let is_cut = !is_right(head) && spare.contains(&head);
        let needed = if is_cut { head.chars().count() } else { *last };
        if needed <= left {
            break left;
        }
        let Some(name) = next.next() else { break left };
        if let Some(column) = heads.iter().position(|head| self::name(head) == *name) {
            heads.remove(column);
            rows.iter_mut().for_each(|row| drop(row.remove(column)));
        }
    };
    for cell in rows.iter_mut().filter_map(|row| row.last_mut()) {
        *cell = cut(cell, left);
    }
    table(&heads, &rows)
}

/// Returns the width of each column, the width of its widest cell.
fn widths(heads: &[&str], rows: &[Vec<String>]) -> Vec<usize> {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([name(heads[column]).chars().count()]).max().unwrap_or(0)
    };
    (0..heads.len()).map(width).collect()
}

fn is_right(head: &str) -> bool {
    head.starts_with('>')
}

/// Returns a head as it is shown.
fn name(head: &str) -> &str {
    head.strip_prefix('>').unwrap_or(head)
}

/// Cuts `text` to `width` characters, after a comma if it has one, and shows that something is
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
        let heads = ["Name", ">N", "Note"];
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
        let heads = ["Name", "Used by"];
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
        assert_eq!(table_within(21, &[], &heads, &rows), expected);
        assert_eq!(table_within(21, &["Used by", "Name"], &heads, &rows), expected);
        assert_eq!(table_within(29, &[], &heads, &rows), table(&heads, &rows));
        assert!(table_within(3, &[], &heads, &rows).contains("\nsha1    ...\n"));
        let names = "Name\n------\nsha256\nsha1\nmd5\n";
        assert_eq!(table_within(14, &["None", "Used by", "Name"], &heads, &rows), names);
        assert!(table_within(14, &["Name"], &heads, &rows).ends_with("\na-name-with...\ngrößer\n"));
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
