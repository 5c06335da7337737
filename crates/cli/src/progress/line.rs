//! One line for any terminal: it takes no more columns than there are, and leaves out what matters
//! least where they are few.

use std::os::unix::ffi::OsStrExt;

use unicode_width::UnicodeWidthChar;

use super::snapshot::{Snapshot, State, percent};
use crate::quote;

/// The line for a terminal of that many columns.
pub fn line(snapshot: &Snapshot<'_>, columns: usize) -> String {
    // Some terminals continue in the next row as soon as the last column is used.
    let room = columns.saturating_sub(1);
    let number = match snapshot.images {
        Some(images) if snapshot.is_one_of_several() => {
            format!("{}/{images} ", snapshot.number)
        }
        None => format!("{}/? ", snapshot.number),
        Some(_) => String::new(),
    };
    let percent = snapshot.fraction.map(|fraction| format!(" {:>4}", percent(fraction)));
    let percent = percent.unwrap_or_default();
    let name = quote::name(snapshot.name.as_bytes());
    let least = width(&name).min(LEAST_NAME);
    // Next to the percentage of all images, the bytes of one would confuse.
    let is_confusing = snapshot.is_one_of_several() && snapshot.fraction.is_some();
    let amount = snapshot.amount().filter(|_| !is_confusing);
    let (has_amount, has_pass) = (amount.is_some(), snapshot.pass().is_some());
    for (index, details) in details(snapshot, amount).into_iter().enumerate() {
        let taken = number.len() + percent.len() + details.len();
        let Some(space) = room.checked_sub(taken).filter(|space| *space >= least) else { continue };
        let Some(fraction) = snapshot.fraction else {
            return format!("{number}{}{details}", shortened(&name, space));
        };
        // A bar says more than how many bytes there are, and less than how long it takes.
        let beside_bar = space.checked_sub(FRAME + LEAST_BAR).filter(|left| *left >= least);
        // It says least of which pass it is in.
        let is_more =
            index == 0 && (has_amount || has_pass) || index == 1 && has_pass && has_amount;
        if beside_bar.is_none() && is_more {
            continue;
        }
        let Some(beside_bar) = beside_bar else {
            return format!("{number}{}{percent}{details}", shortened(&name, space));
        };
        let shown = shortened(&name, beside_bar.min(LEAST_NAME.max(columns * 3 / 10)));
        let bar = bar(fraction, space - width(&shown) - FRAME);
        return format!("{number}{shown}{percent} [{bar}]{details}");
    }
    let least = if percent.is_empty() { number } else { percent };
    let least = least.trim();
    if least.len() <= room { least.to_owned() } else { String::new() }
}

/// Returns the texts after the bar, the longest first.
fn details(snapshot: &Snapshot<'_>, amount: Option<String>) -> Vec<String> {
    let opening = (snapshot.state == State::Opening).then(|| "opening".to_owned());
    let parts = [snapshot.pass(), amount.or(opening), snapshot.speed(), snapshot.time_left()];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let from = |first: usize| {
        let text = parts[first..].join(", ");
        if text.is_empty() { text } else { format!(" {text}") }
    };
    (0..=parts.len()).map(from).collect()
}

fn bar(fraction: f64, cells: usize) -> String {
    let full = ((fraction * cells as f64) as usize).min(cells);
    let head = if full < cells { ">" } else { "" };
    format!("{:<cells$}", "=".repeat(full) + head)
}

/// `text` in at most `room` columns: without its middle, as both ends tell one from another.
fn shortened(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let Some(rest) = room.checked_sub(ELLIPSIS.len()).filter(|rest| *rest > 0) else {
        return String::new();
    };
    let head = fitting(text.chars(), rest / 3);
    let tail = fitting(text.chars().rev(), rest - width_of(&head));
    // Combining marks of a character that is left out.
    let tail = tail.iter().rev().skip_while(|c| char_width(**c) == 0);
    head.iter().copied().chain(ELLIPSIS.chars()).chain(tail.copied()).collect()
}

/// The first characters that take no more than `room` columns.
fn fitting(chars: impl Iterator<Item = char>, room: usize) -> Vec<char> {
    let mut left = room;
    chars
        .map_while(|c| {
            left = left.checked_sub(char_width(c))?;
            Some(c)
        })
        .collect()
}

fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

fn width_of(chars: &[char]) -> usize {
    chars.iter().copied().map(char_width).sum()
}

/// The columns that a character takes at most: where terminals join several to one, as in emoji of
/// families, it takes less. The variation selector may make the one before it wide.
fn char_width(c: char) -> usize {
    match c {
        '\u{fe0f}' => 1,
        c => c.width().unwrap_or(0),
    }
}

const ELLIPSIS: &str = "...";

/// A bar of fewer cells says nothing.
const LEAST_BAR: usize = 8;

/// The space before a bar and its ends.
const FRAME: usize = 3;

/// Columns of a name that is shortened before anything else is left out.
const LEAST_NAME: usize = 10;

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::time::Duration;

    use super::super::pace::Counts;
    use super::super::snapshot::{Pass, Unit};
    use super::*;

    fn snapshot(name: &str) -> Snapshot<'_> {
        Snapshot {
            name: OsStr::new(name),
            number: 3,
            images: Some(1),
            state: State::Working,
            unit: Unit::Bytes,
            counts: Counts { done: 45 << 28, data: 1 << 30, read: 1 << 30 },
            pass: None,
            total: Some(100 << 28),
            fraction: Some(0.45),
            rate: Some((3 << 29) as f64),
            elapsed: Duration::from_secs(12),
            left: Some(Duration::from_secs(65)),
        }
    }

    #[test]
    fn lines() {
        let long = "/var/lib/libvirt/images/production-database-server.qcow2";
        let cases = [
            (long, 40, "/v....qcow2  45% 1.50 GiB/s, 1m05s left"),
            (long, 60, "/var/...rver.qcow2  45% [====>     ] 1.50 GiB/s, 1m05s left"),
            (
                long,
                80,
                "/var/...rver.qcow2  45% [===>    ] 11.2 GiB of 25.0 GiB, 1.50 GiB/s, 1m05s left",
            ),
            ("disk1", 40, "disk1  45% 1.50 GiB/s, 1m05s left"),
            ("disk1", 60, "disk1  45% [==========>            ] 1.50 GiB/s, 1m05s left"),
            (
                "disk1",
                80,
                "disk1  45% [=========>           ] 11.2 GiB of 25.0 GiB, 1.50 GiB/s, 1m05s left",
            ),
            ("disk1", 20, "disk1  45%"),
            ("disk1", 8, "45%"),
        ];
        for (name, columns, expected) in cases {
            assert_eq!(line(&snapshot(name), columns), expected, "{columns}");
        }
        let copy = Snapshot { pass: Some(Pass::ReadBack), ..snapshot("disk1") };
        assert_eq!(
            line(&copy, 90),
            "disk1  45% [=======>         ] reading back, 11.2 GiB of 25.0 GiB, 1.50 GiB/s, 1m05s left"
        );
        assert_eq!(line(&copy, 60), line(&snapshot("disk1"), 60));
        let several = Snapshot { images: Some(12), ..snapshot("disk1") };
        assert_eq!(line(&several, 40), "3/12 disk1  45% 1.50 GiB/s, 1m05s left");
        let unknown = Snapshot { images: None, fraction: None, ..several };
        assert_eq!(line(&unknown, 80), "3/? disk1 11.2 GiB of 25.0 GiB, 1.50 GiB/s, 1m05s left");
        let opening = Snapshot { fraction: None, state: State::Opening, ..snapshot("disk1") };
        let opening = Snapshot { rate: None, left: None, ..opening };
        assert_eq!(line(&opening, 80), "disk1 opening");
    }

    #[test]
    fn no_line_is_too_long_and_no_bar_too_short() {
        let names = [
            "a".repeat(5),
            "a".repeat(200),
            "磁盘映像".repeat(50),
            "e\u{301}".repeat(100),
            "👩\u{200d}👩\u{200d}👧❤\u{fe0f}".repeat(25),
            "\u{301}".repeat(200),
            "a b'\u{1b}".repeat(40),
        ];
        let snapshots = names.iter().flat_map(|name| {
            let one = snapshot(name);
            let several = Snapshot { number: u64::MAX, images: Some(u64::MAX), ..one.clone() };
            let unknown = Snapshot { images: None, fraction: None, ..one.clone() };
            let stream = Snapshot { total: None, fraction: None, left: None, ..one.clone() };
            let steps = Snapshot { unit: Unit::Steps, fraction: Some(1.0), ..one.clone() };
            [one, several, unknown, stream, steps]
        });
        for snapshot in snapshots {
            for columns in 0..300 {
                let line = line(&snapshot, columns);
                assert!(width(&line) < columns.max(1), "{columns}: {line}");
                assert!(!line.chars().any(char::is_control));
                if let (Some(start), Some(end)) = (line.rfind('['), line.rfind(']')) {
                    assert!(end - start > LEAST_BAR, "{line}");
                }
                if columns >= 40 && snapshot.images == Some(1) && snapshot.fraction.is_some() {
                    assert!(line.contains('%'), "{line}");
                }
            }
        }
    }

    #[test]
    fn names_are_shortened_between_characters() {
        assert_eq!(shortened("abcdef", 6), "abcdef");
        assert_eq!(shortened("abcdefgh", 7), "a...fgh");
        assert_eq!(shortened("abcdefgh", 3), "");
        assert_eq!(shortened("磁盘映像磁盘映像", 12), "磁...盘映像");
        // The accent of a letter that is left out goes with it.
        assert_eq!(
            shortened("ae\u{301}e\u{301}e\u{301}e\u{301}e\u{301}", 5),
            "...e\u{301}e\u{301}"
        );
    }

    #[test]
    fn bars() {
        assert_eq!(bar(0.0, 8), ">       ");
        assert_eq!(bar(0.5, 8), "====>   ");
        assert_eq!(bar(1.0, 8), "========");
        assert_eq!(bar(7.0, 8), "========");
    }
}
