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
        let line = cells.collect::<Vec<_>>().join("  ");
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// Formats a number with two decimals, and with fewer if it is large.
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
