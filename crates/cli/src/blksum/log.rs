//! Values in the log of a program that prints them bare: nbdcopy, and virt-v2v, which runs it.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use blksum::Encoding;
use blksum::expect::Value;

use super::lines::read_line;
use crate::{messages, quote, stdio};

/// The lines of a log that are checksums.
pub struct Log {
    name: String,
    values: Vec<Value>,
    /// The lines of each value.
    lines: Vec<Lines>,
}

/// The lines with one value.
struct Lines {
    /// Numbers of the lines, from 1.
    numbers: Vec<u64>,
    /// How many images had this value.
    used: usize,
}

impl Log {
    /// Reads a log. `-` is standard input.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read, or has too many lines that are checksums. The error names the log.
    pub fn read(path: &Path) -> Result<Self, String> {
        let name = match path.to_str() {
            Some("-") => "standard input".to_owned(),
            _ => quote::name(path.as_os_str().as_bytes()),
        };
        let file = if path == Path::new("-") { stdio::stdin() } else { File::open(path) };
        let values = file.map(BufReader::new).and_then(|mut file| parse(&mut file));
        let found = values.map_err(|error| format!("{name}: {}", messages::reason(&error)))?;
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

    /// Assigns a value to an image, and returns its line: another one for each image, as far as there are some.
    pub fn take(&mut self, value: usize) -> u64 {
        let lines = &mut self.lines[value];
        lines.used += 1;
        lines.numbers[lines.used.min(lines.numbers.len()) - 1]
    }

    /// Reports the lines whose values no image has.
    pub fn unused(&self, mut report: impl FnMut(String)) {
        for (value, lines) in self.values.iter().zip(&self.lines) {
            for number in lines.numbers.iter().skip(lines.used) {
                let text = Encoding::Hex.encode(&value.digest);
                report(format!("line {number}: no image that was named has {text}"));
            }
        }
    }
}

/// Returns the values that stand alone in a line, in hexadecimal digits.
fn parse(log: &mut BufReader<impl Read>) -> io::Result<Vec<(Value, Lines)>> {
    let (mut found, mut line) = (Vec::<(Value, Lines)>::new(), Vec::new());
    let mut number = 0;
    while read_line(log, &mut line)? > 0 {
        number += 1;
        // A bar of progress returns to the beginning of its line.
        for text in line.split(|byte| *byte == b'\r') {
            let digest = Encoding::Hex.decode(text.trim_ascii()).filter(|it| it.len() >= MIN_SIZE);
            let Some(value) = digest.and_then(|digest| Value::new(digest).ok()) else { continue };
            match found.iter_mut().find(|(known, _)| *known == value) {
                Some((_, lines)) => lines.numbers.push(number),
                None => found.push((value, Lines { numbers: vec![number], used: 0 })),
            }
        }
        if found.iter().map(|(_, lines)| lines.numbers.len()).sum::<usize>() > MAX_VALUES {
            let reason = format!("more than {MAX_VALUES} lines are checksums");
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
    }
    Ok(found)
}

/// Length in bytes of the shortest digest that nbdcopy computes, md5.
const MIN_SIZE: usize = 16;

/// More values are not compared with each image.
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
    fn bare_lines_are_values() {
        let (a, b, c) = ("a".repeat(64), "b".repeat(64), "c".repeat(32));
        let text = format!(
            "nbdcopy: {a}\n{a}\r\n█ 100% [****]\n  {b}\n{a}\ndeadbeef\n{c}\n\n{a}{a}\n{}\n{b}",
            &a[1..]
        );
        let mut log = log(&text);
        let digests: Vec<_> = log.values().iter().map(|value| value.digest.len()).collect();
        assert_eq!(digests, [32, 32, 16, 64]);
        assert_eq!((log.take(0), log.take(0), log.take(0), log.take(1)), (2, 5, 5, 4));
        let mut unused = Vec::new();
        log.unused(|text| unused.push(text));
        let lines: Vec<_> = unused.iter().map(|text| text.split(':').next().unwrap()).collect();
        assert_eq!(lines, ["line 11", "line 7", "line 9"]);
    }

    #[test]
    fn logs_have_a_limit() {
        let text = format!("{}\n", "a".repeat(64)).repeat(MAX_VALUES + 1);
        assert!(parse(&mut BufReader::new(text.as_bytes())).is_err());
        assert!(parse(&mut BufReader::new(&text.as_bytes()[65..])).is_ok());
    }
}
