//! Parsers for the values of options, such as sizes and names.

use std::ffi::OsStr;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use blkhash::BlockSize;
use blkimage::{OpenOption, OpenOptions, OptionKind, OptionValue, Secret};
use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command};

use crate::{messages, quote};

/// Parses a size in bytes, which may end in K, M or G for powers of 1024.
pub fn parse_size(text: &str) -> Result<u64, &'static str> {
    let lower = text.to_ascii_lowercase();
    let number = lower.strip_suffix("ib").unwrap_or(&lower);
    let (digits, unit) = match number.as_bytes().last() {
        Some(b'k') => (&number[..number.len() - 1], 1 << 10),
        Some(b'm') => (&number[..number.len() - 1], 1 << 20),
        Some(b'g') => (&number[..number.len() - 1], 1 << 30),
        _ if number.len() == text.len() => (number, 1),
        _ => return Err(SIZE_SYNTAX),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(SIZE_SYNTAX);
    }
    let size = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    size.ok_or("too large")
}

/// Parses the size of a block.
pub fn parse_block_size(text: &str) -> Result<BlockSize, &'static str> {
    BlockSize::try_from(parse_size(text)?).map_err(|_| "use a power of two from 512 to 64M")
}

/// Parses a duration in seconds, with an optional fraction.
pub fn parse_seconds(text: &str) -> Result<Duration, &'static str> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds = text.parse().ok().filter(|_| is_plain).ok_or("use a number of seconds")?;
    let duration = Duration::try_from_secs_f64(seconds).ok();
    duration.filter(|duration| *duration <= MAX_SECONDS).ok_or("too large")
}

/// Parses a size like [`parse_size`], which may also end in T, P or E.
pub fn parse_large_size(text: &str) -> Result<u64, &'static str> {
    let lower = text.to_ascii_lowercase();
    let number = lower.strip_suffix("ib").unwrap_or(&lower);
    for (unit, shift) in [('t', 10), ('p', 20), ('e', 30)] {
        if let Some(number) = number.strip_suffix(unit) {
            let gibibytes = parse_size(&format!("{number}g")).map_err(|_| LARGE_SIZE_SYNTAX)?;
            return gibibytes.checked_mul(1 << shift).ok_or("too large");
        }
    }
    parse_size(text).map_err(|_| LARGE_SIZE_SYNTAX)
}

/// Reads the secret from the file at `path`. The error is a message for the user.
pub fn read_secret(path: &Path) -> Result<Secret, String> {
    Secret::read(path).map_err(|error| {
        let name = quote::name(path.as_os_str().as_encoded_bytes());
        format!("--secret-file: {name}: {}", messages::reason(&error))
    })
}

/// Parses values of type T by name. Completions offer the names, and errors suggest them.
#[derive(Clone)]
pub struct Named<T> {
    names: fn() -> Vec<&'static str>,
    parse: fn(&str) -> Result<T, String>,
}

/// Parses the value of an option for opening images. The value of a secret is the path of its file.
#[derive(Clone)]
pub struct OptionParser(pub OpenOption);

/// Parses a whole number within a range. Errors show the range.
#[derive(Clone)]
pub struct Count<T> {
    range: RangeInclusive<T>,
}

impl<T> Named<T> {
    /// Creates a parser. `names` returns the names that completions offer.
    pub fn of(names: fn() -> Vec<&'static str>) -> Self
    where
        T: FromStr<Err: Display>,
    {
        Self::with(names, |text| text.parse().map_err(|reason: T::Err| reason.to_string()))
    }

    /// Creates a parser of some of the names of a type.
    pub fn with(names: fn() -> Vec<&'static str>, parse: fn(&str) -> Result<T, String>) -> Self {
        Self { names, parse }
    }
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Named<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        let text = value.to_string_lossy();
        (self.parse)(&text).map_err(|reason| {
            let reason = with_names(&text, reason, &(self.names)());
            invalid(command, arg, &text, &reason)
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.names)().into_iter().map(PossibleValue::new)))
    }
}

impl TypedValueParser for OptionParser {
    type Value = OptionValue;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<OptionValue, clap::Error> {
        let Self(option) = *self;
        let text = value.to_string_lossy();
        let number = match option.kind() {
            OptionKind::Size => parse_large_size(&text).map(OptionValue::Size),
            OptionKind::Seconds => parse_seconds(&text).map(OptionValue::Duration),
            OptionKind::Text => match value.to_str() {
                Some(text) => Ok(OptionValue::Text(text.to_owned())),
                None => Err("is not UTF-8"),
            },
            OptionKind::Format { .. } | OptionKind::Words(_) => {
                let given = OptionValue::Text(text.to_string());
                return match OpenOptions::new().set(option, given.clone()) {
                    Ok(()) => Ok(given),
                    Err(_) => {
                        let unknown = match option.kind() {
                            OptionKind::Format { .. } => "unknown image format",
                            _ => "unknown name",
                        };
                        let reason = with_names(&text, unknown.to_owned(), &option.words());
                        Err(invalid(command, arg, &text, &reason))
                    }
                };
            }
            OptionKind::File | OptionKind::Folder | OptionKind::Program | OptionKind::Secret => {
                Ok(OptionValue::Path(value.into()))
            }
            OptionKind::Flag => Ok(OptionValue::Flag(true)),
        };
        number.map_err(|reason| invalid(command, arg, &text, reason))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let Self(option) = *self;
        let words = option.words();
        (!words.is_empty()).then(|| Box::new(words.into_iter().map(PossibleValue::new)) as _)
    }
}

impl<T> Count<T> {
    /// Creates a parser for numbers in `range`.
    pub fn of(range: RangeInclusive<T>) -> Self {
        Self { range }
    }
}

impl<T> TypedValueParser for Count<T>
where
    T: FromStr + Display + PartialOrd + Clone + Send + Sync + 'static,
{
    type Value = T;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        let text = value.to_string_lossy();
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|number| is_plain && self.range.contains(number));
        number.ok_or_else(|| {
            let reason =
                format!("use a number from {} to {}", self.range.start(), self.range.end());
            invalid(command, arg, &text, &reason)
        })
    }
}

/// Adds the name that was meant, or all, to the reason why `text` is none of `names`, unless it says them.
fn with_names(text: &str, reason: String, names: &[&str]) -> String {
    let is_said = || {
        let mut words = reason.split([' ', ',', ':']);
        words.any(|word| word != text && names.contains(&word))
    };
    match meant(text, names) {
        _ if is_said() || reason.contains(": use ") => reason,
        Some(question) => question,
        None => format!("{reason}: use {}", one_of(names)),
    }
}

fn invalid(command: &Command, arg: Option<&Arg>, text: &str, reason: &str) -> clap::Error {
    let option = arg.and_then(Arg::get_long).map(|name| format!("--{name}"));
    let option = option.or_else(|| arg.map(ToString::to_string)).unwrap_or_default();
    let message = format!("invalid value '{text}' for {option}: {reason}");
    clap::Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
}

/// Returns the name that `text` is most likely a misspelling of, if one is close enough.
pub fn similar<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let text = text.to_ascii_lowercase().replace('_', "-");
    let distance = |name| distance(&text, name);
    let nearest = names.min_by_key(|name| distance(name))?;
    (distance(nearest) <= nearest.len().min(text.len()) / 3).then_some(nearest)
}

/// Returns the number of characters to insert, remove, change or swap with the next one to make `b` of `a`.
fn distance(a: &str, b: &str) -> usize {
    let [a, b] = [a, b].map(|text| text.chars().collect::<Vec<_>>());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, j) in (0..=a.len()).flat_map(|i| (0..=b.len()).map(move |j| (i, j))) {
        rows[i][j] = match (i, j) {
            (0, _) | (_, 0) => i + j,
            _ => {
                let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let is_swap = i > 1 && j > 1 && a[i - 2..i] == [b[j - 1], b[j - 2]];
                let swapped = if is_swap { rows[i - 2][j - 2] + 1 } else { changed };
                changed.min(swapped).min(rows[i - 1][j].min(rows[i][j - 1]) + 1)
            }
        };
    }
    rows[a.len()][b.len()]
}

/// Suggests the one of `names` that is similar to `name`, if any.
pub fn meant(name: &str, names: &[impl AsRef<str>]) -> Option<String> {
    similar(name, names.iter().map(AsRef::as_ref)).map(question)
}

/// Asks whether `name` was meant.
pub fn question(name: impl Display) -> String {
    format!("did you mean {name}?")
}

/// Formats a list as `a, b or c`.
pub fn one_of(names: &[impl AsRef<str>]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.concat(),
    }
}

/// Formats a list as `a, b and c`.
pub fn and(names: &[impl AsRef<str>]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    }
}

const LARGE_SIZE_SYNTAX: &str =
    "use a number of bytes, or one with K, M, G, T, P or E for powers of 1024";
/// About 136 years, which can still be added to an `Instant`.
const MAX_SECONDS: Duration = Duration::from_secs(1 << 32);

const SIZE_SYNTAX: &str = "use a number of bytes, or one with K, M or G for powers of 1024";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let sizes = [
            ("0", 0),
            ("512", 512),
            ("64k", 65536),
            ("64K", 65536),
            ("64KiB", 65536),
            ("1M", 1 << 20),
            ("2g", 2 << 30),
        ];
        for (text, size) in sizes {
            assert_eq!(parse_size(text), Ok(size), "{text}");
        }
        assert_eq!(parse_large_size("2T"), Ok(2 << 40));
        assert_eq!(parse_large_size("3g"), Ok(3 << 30));
        assert_eq!(parse_large_size("2EiB"), Ok(2 << 60));
        assert_eq!(parse_large_size("1p"), Ok(1 << 50));
        assert_eq!(parse_large_size("16e"), Err("too large"));
        assert!(parse_large_size("1tk").is_err() && parse_large_size("t").is_err());
        for text in ["", "k", "-1", "+1", "1.5k", "1kb", "1kk", "1ib", "1 k", "99999999999G"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn block_sizes() {
        assert_eq!(parse_block_size("64K"), Ok(BlockSize::DEFAULT));
        assert_eq!(parse_block_size("x"), Err(SIZE_SYNTAX));
        assert!(["0", "256", "3k", "128M"].iter().all(|text| parse_block_size(text).is_err()));
    }

    #[test]
    fn misspelt_names_are_suggested() {
        let names = ["sha256", "sha512", "blake3"];
        let similar = |text| similar(text, names.into_iter());
        assert_eq!(similar("sha265"), Some("sha256"));
        assert_eq!(similar("SHA_512"), Some("sha512"));
        assert_eq!(similar("crc"), None);
        assert_eq!(similar(""), None);
        assert_eq!(one_of(&names), "sha256, sha512 or blake3");
        assert_eq!(one_of(&["a"]), "a");
        assert_eq!(one_of(&[""; 0]), "");
    }

    #[test]
    fn seconds() {
        assert_eq!(parse_seconds("0"), Ok(Duration::ZERO));
        assert_eq!(parse_seconds("60"), Ok(Duration::from_secs(60)));
        assert_eq!(parse_seconds("0.5"), Ok(Duration::from_millis(500)));
        for text in ["", "-1", "+1", "1s", "1e3", "inf", "nan", ".", "1.2.3", "99999999999"] {
            assert!(parse_seconds(text).is_err(), "{text}");
        }
    }
}
