//! Values in the log of a program that prints them bare: nbdcopy, and virt-v2v, which runs it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use blksum::Encoding;
use blksum::check_file::Text;
use blksum::expect::Value;

use crate::values::and;
use crate::{messages, quote, stdio};

/// The lines of a log that end with a checksum.
pub struct Log {
    name: String,
    values: Vec<Value>,
    /// The lines of each value.
    lines: Vec<Lines>,
}

/// The lines with one value.
#[derive(Default)]
struct Lines {
    /// Numbers of the lines, from 1.
    numbers: Vec<u64>,
    /// Names of the images that have this value.
    images: Vec<String>,
}

impl Log {
    /// Reads a log. `-` is standard input.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read, or has no line that ends with a checksum, or too many. The error names the log.
    pub fn read(path: &Path) -> Result<Self, String> {
        let name = match path.to_str() {
            Some("-") => "standard input".to_owned(),
            _ => quote::name(path.as_os_str().as_bytes()),
        };
        let file = if path == Path::new("-") { stdio::stdin() } else { File::open(path) };
        let values = file.map(BufReader::new).and_then(|file| parse(&mut Text::new(file)));
        let found = values.map_err(|error| format!("{name}: {}", messages::reason(&error)))?;
        if found.is_empty() {
            return Err(format!("{name}: {NO_VALUES}"));
        }
        let (values, lines) = found.into_iter().unzip();
        Ok(Self { name, values, lines })
    }

    /// Returns the values, each once, in the order of their first lines.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// Returns the name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Assigns a value to an image. Returns its line, another one for each image as far as there are some, and its
    /// digits.
    pub fn take(&mut self, value: usize, image: &OsStr) -> (u64, String) {
        let lines = &mut self.lines[value];
        lines.images.push(quote::name(image.as_bytes()));
        let number = lines.numbers[lines.images.len().min(lines.numbers.len()) - 1];
        (number, Encoding::Hex.encode(&self.values[value].digest))
    }

    /// Describes the lines that more images have than there are lines, if other lines have no image: an image may
    /// be a copy of another one.
    pub fn shared(&self) -> Vec<String> {
        if self.lines.iter().all(|lines| !lines.images.is_empty()) {
            return Vec::new();
        }
        let shared = self.lines.iter().filter(|lines| lines.images.len() > lines.numbers.len());
        let describe = |lines: &Lines| {
            format!("warning: line {} is of {}", lines.numbers[0], and(&lines.images))
        };
        shared.map(describe).collect()
    }

    /// Describes the lines whose values no image has.
    pub fn unused(&self) -> Vec<String> {
        let lines = self.values.iter().zip(&self.lines);
        let unused = lines.filter(|(_, lines)| lines.images.is_empty());
        let describe = |(value, lines): (&Value, &Lines)| {
            let text = Encoding::Hex.encode(&value.digest);
            format!("line {}: no image that was named has {text}", lines.numbers[0])
        };
        let mut found: Vec<_> = unused.map(describe).collect();
        if found.len() > MAX_UNUSED {
            let more = found.split_off(MAX_UNUSED).len();
            found.push(format!("{more} more values are of no image that was named"));
        }
        found
    }
}

/// Returns the values that stand at the end of a line, in hexadecimal digits.
fn parse(log: &mut impl BufRead) -> io::Result<Vec<(Value, Lines)>> {
    let (mut found, mut line) = (Vec::<(Value, Lines)>::new(), Vec::new());
    let mut indices = HashMap::new();
    let (mut number, mut count) = (0, 0);
    while read_line(log, &mut line)? > 0 {
        number += 1;
        // A bar of progress returns to the beginning of its line.
        for text in line.split(|byte| *byte == b'\r') {
            let Some(value) = last_value(text) else { continue };
            let index = *indices.entry(value.digest.clone()).or_insert(found.len());
            if index == found.len() {
                found.push((value, Lines::default()));
            }
            found[index].1.numbers.push(number);
            count += 1;
        }
        if count > MAX_VALUES {
            let reason = format!(
                "more than {MAX_VALUES} lines end with a checksum: keep the lines of the images"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
    }
    Ok(found)
}

/// Returns the checksum that is the last word of a line, after a time stamp or the name of a program. Colours do
/// not count.
fn last_value(line: &[u8]) -> Option<Value> {
    let is_end = |byte: u8| byte.is_ascii_alphabetic();
    let mut text = line.trim_ascii();
    // A sequence that resets a colour stands after the digits, and one that sets it in front of them.
    while let Some(at) = text.iter().rposition(|byte| *byte == ESCAPE) {
        let sequence = &text[at..];
        let length = sequence.iter().position(|byte| is_end(*byte))? + 1;
        match &sequence[length..] {
            [] => text = text[..at].trim_ascii_end(),
            rest => text = rest,
        }
    }
    let word = text.rsplit(u8::is_ascii_whitespace).next()?;
    let digest = Encoding::Hex.decode(word).filter(|it| it.len() >= MIN_SIZE)?;
    Value::new(digest).ok()
}

/// Reads a line to its end. The beginning of one that is too long for a checksum is left out.
fn read_line(log: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<u64> {
    line.clear();
    let length = log.by_ref().take(MAX_LINE).read_until(b'\n', line)? as u64;
    if length == MAX_LINE && !line.ends_with(b"\n") {
        line.clear();
        log.skip_until(b'\n')?;
    }
    Ok(length)
}

const NO_VALUES: &str = "no line ends with a checksum of 32 to 128 hexadecimal digits";

const ESCAPE: u8 = 0x1b;

/// Maximum length of a line of a log. A longer one has no value.
/// Limit in bytes.
const MAX_LINE: u64 = 1 << 20;

/// Maximum number of values of a log without an image that are named one by one.
/// Limit in values.
const MAX_UNUSED: usize = 10;

/// Length in bytes of the shortest digest that nbdcopy computes, md5.
const MIN_SIZE: usize = 16;

/// Maximum number of values of a log, each of which is compared with each image.
/// Limit in values.
const MAX_VALUES: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    fn log(text: &str) -> Log {
        let found = parse(&mut BufReader::new(text.as_bytes())).unwrap();
        let (values, lines) = found.into_iter().unzip();
        Log { name: "log".into(), values, lines }
    }

    #[test]
    fn last_words_are_values() {
        let (a, b, c) = ("a".repeat(64), "b".repeat(64), "c".repeat(32));
        let text = format!(
            "nbdcopy: {a}\n{a}\r\n█ 100% [****]\n  {b}\n{a}\ndeadbeef\n{c}\n\n{a}{a}\n{}\n{b}\n\
             {b} is not the last word\n{b}{b}{b}\n",
            &a[1..]
        );
        let mut log = log(&text);
        let digests: Vec<_> = log.values().iter().map(|value| value.digest.len()).collect();
        assert_eq!(digests, [32, 32, 16, 64]);
        let lines = [0, 0, 0, 0, 1].map(|value| log.take(value, OsStr::new("x")).0);
        assert_eq!(lines, [1, 2, 5, 5, 4]);
        assert_eq!(log.shared(), ["warning: line 1 is of x, x, x and x"]);
        let unused = log.unused();
        let lines: Vec<_> = unused.iter().map(|text| text.split(':').next().unwrap()).collect();
        assert_eq!(lines, ["line 7", "line 9"]);
    }

    #[test]
    fn prefixes_and_colours_are_ignored() {
        let value = "0123456789abcdefABCDEF9876543210";
        for line in [
            format!("2026-11-25T10:00:01.123456789Z stdout F {value}"),
            format!("Nov 25 10:00:01 host virt-v2v[1234]: {value}\r"),
            format!("\x1b[32m{value}\x1b[0m"),
            format!("\x1b[1m\x1b[32m{value}\x1b[0m\x1b[K  "),
            format!("[\x1b[0;36m   3.1\x1b[0m] {value}"),
        ] {
            let found = last_value(line.as_bytes());
            assert_eq!(found.map(|it| it.digest.len()), Some(16), "{line:?}");
        }
        for line in ["\x1b[", "\x1b[32m", "", " ", &format!("{value}\x1b")] {
            assert_eq!(last_value(line.as_bytes()), None, "{line:?}");
        }
    }

    #[test]
    fn long_lines_have_no_value() {
        let value = "a".repeat(32);
        for padding in [MAX_LINE as usize, MAX_LINE as usize - 32, 20 << 20] {
            let line = format!("{}{value}", " ".repeat(padding));
            let text = format!("{line}\n{}\n", "b".repeat(32));
            let log = log(&text);
            assert_eq!(log.values().len(), 1);
            assert_eq!(log.lines[0].numbers, [2]);
        }
    }

    #[test]
    fn logs_have_a_limit() {
        let text = format!("{}\n", "a".repeat(64)).repeat(MAX_VALUES + 1);
        assert!(parse(&mut BufReader::new(text.as_bytes())).is_err());
        assert!(parse(&mut BufReader::new(&text.as_bytes()[65..])).is_ok());
    }
}
