//! Times as the AWS services write them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns a time like `20130524T000000Z`. Times before 1970 become 1970.
pub(crate) fn stamp(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (year, month, day) = date(seconds / DAY);
    let rest = seconds % DAY;
    let (hours, minutes, seconds) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}{month:02}{day:02}T{hours:02}{minutes:02}{seconds:02}Z")
}

/// Reads a time of ISO 8601 in UTC, like `2026-01-31T23:59:59Z`. Fractions of seconds are ignored.
pub(crate) fn parse_iso(text: &str) -> Option<SystemTime> {
    let (date, time) =
        text.strip_suffix('Z').or_else(|| text.strip_suffix("+00:00"))?.split_once('T')?;
    let mut date = date.split('-');
    let [year, month, day] = [date.next()?, date.next()?, date.next()?].map(number);
    let clock = time.split_once('.').map_or(time, |(clock, _)| clock);
    match date.next() {
        None => instant(year?, month?, day?, clock),
        Some(_) => None,
    }
}

/// Reads the date of an answer of HTTP, like `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(crate) fn parse_http(text: &str) -> Option<SystemTime> {
    let fields: Vec<_> = text.split_once(", ")?.1.split(' ').collect();
    let &[day, month, year, clock, "GMT"] = &*fields else {
        return None;
    };
    let month = MONTHS.iter().position(|&name| name == month)?;
    instant(number(year)?, u64::try_from(month).ok()? + 1, number(day)?, clock)
}

/// Returns the time of a day and a clock `HH:MM:SS`.
fn instant(year: u64, month: u64, day: u64, clock: &str) -> Option<SystemTime> {
    let mut parts = clock.split(':');
    let [hours, minutes, seconds] = [parts.next()?, parts.next()?, parts.next()?].map(number);
    let (hours, minutes, seconds) = (hours?, minutes?, seconds?);
    let is_valid = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (hours < 24 && minutes < 60 && seconds <= 60)
        && parts.next().is_none();
    let seconds = days(year, month, day) * DAY + hours * 3600 + minutes * 60 + seconds;
    is_valid.then_some(UNIX_EPOCH + Duration::from_secs(seconds))
}

/// Reads at most four digits.
fn number(text: &str) -> Option<u64> {
    let is_valid = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_valid { text.parse().ok() } else { None }
}

/// Returns the number of days from 1970 to a date, whose year is at most four digits and not before 1970. The year begins
/// in March, so the day that some years have more is the last one.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) =
        if month > 2 { (year, month - 3) } else { (year.saturating_sub(1), month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day;
    days.saturating_sub(DAYS_TO_1970)
}

/// Returns the date that is that many days after 1970-01-01.
fn date(since_1970: u64) -> (u64, u64, u64) {
    // The date with the most days that are not more: years and months are found by trying, beginning below.
    let mut year = 1970 + since_1970 / 366;
    while days(year + 1, 1, 1) <= since_1970 {
        year += 1;
    }
    let month = (1..=12).rev().find(|&month| days(year, month, 1) <= since_1970).unwrap_or(1);
    (year, month, since_1970 - days(year, month, 1) + 1)
}

const DAY: u64 = 86400;

/// Days from the first of March of the year 0, plus one, to 1970-01-01.
const DAYS_TO_1970: u64 = 719_469;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds, and what `date -u` prints for them.
    const KNOWN: [(u64, &str); 7] = [
        (0, "19700101T000000Z"),
        (784_111_777, "19941106T084937Z"),
        (951_782_400, "20000229T000000Z"),
        (1_369_353_600, "20130524T000000Z"),
        (1_709_251_199, "20240229T235959Z"),
        (1_798_761_599, "20261231T235959Z"),
        (4_107_542_400, "21000301T000000Z"),
    ];

    #[test]
    fn times_are_those_of_date() {
        for (seconds, text) in KNOWN {
            let time = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(stamp(time), text);
            let (d, t) = text.split_once('T').unwrap();
            let iso = format!(
                "{}-{}-{}T{}:{}:{}",
                &d[..4],
                &d[4..6],
                &d[6..],
                &t[..2],
                &t[2..4],
                &t[4..]
            );
            assert_eq!(parse_iso(&iso), Some(time), "{iso}");
        }
    }

    #[test]
    fn every_day_is_read_as_it_is_written() {
        for day in 0..60_000 {
            let (year, month, date) = date(day);
            assert_eq!(days(year, month, date), day);
        }
    }

    #[test]
    fn dates_of_http() {
        let time = parse_http("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        assert_eq!(time, UNIX_EPOCH + Duration::from_secs(784_111_777));
        for wrong in [
            "",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Foo 1994 08:49:37 GMT",
            "Sun, 99 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(parse_http(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn wrong_times_are_refused() {
        for wrong in [
            "2026",
            "2026-01-01T00:00:00",
            "2026-13-01T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "99999-01-01T00:00:00Z",
            "1969-01-01T00:00:00Z",
            "2026-01-01-01T00:00:00Z",
            "2026-01-01T00:00Z",
            "-1-01-01T00:00:00Z",
        ] {
            assert_eq!(parse_iso(wrong), None, "{wrong}");
        }
    }
}
