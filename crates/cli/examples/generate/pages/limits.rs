//! The table of limits in docs/reference/security.md, from the constants of all crates.
//!
//! A constant is a limit if its documentation ends with the line `Limit in UNIT.`. The lines before it say what is limited
//! and why, and are the text of the table. The value is computed from the expression, and one that cannot be computed is an
//! error.

use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::{fs, io, vec};

use super::Page;

/// Generates the table, in a file of the repository at `root`.
pub fn page(root: &Path) -> io::Result<Page> {
    let crates = root.join("crates");
    let mut files = Vec::new();
    for folder in fs::read_dir(&crates)? {
        collect(folder?.path().join("src"), &mut files)?;
    }
    files.sort();
    let mut table =
        "| limit | where | value | what is limited, and why |\n|---|---|---|---|\n".to_owned();
    for file in files {
        let name = file.strip_prefix(&crates).map_err(io::Error::other)?.display().to_string();
        let found = limits(&fs::read_to_string(&file)?);
        let found = found.map_err(|error| io::Error::other(format!("crates/{name}:{error}")))?;
        let (package, place) = name.split_once("/src/").unwrap_or_default();
        for Limit { name, amount, text } in found {
            table += &format!("| `{name}` | {package} `{place}` | {amount} | {text} |\n");
        }
    }
    let lines = ("<!-- limits: generated -->\n", "<!-- end of limits -->\n");
    Page::between(root, "docs/reference/security.md", lines, &table)
}

/// Collects the source files in a folder.
fn collect(path: PathBuf, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_dir() {
        fs::read_dir(path)?.try_for_each(|entry| collect(entry?.path(), files))?;
    } else if path.extension().is_some_and(|extension| extension == "rs") {
        files.push(path);
    }
    Ok(())
}

/// A constant that is a limit.
#[derive(Debug, PartialEq, Eq)]
pub struct Limit {
    pub name: String,
    pub amount: String,
    pub text: String,
}

/// Returns the limits in a source file, or the line and the reason of the first error.
pub fn limits(source: &str) -> Result<Vec<Limit>, String> {
    let lines: Vec<_> = source.lines().map(str::trim).collect();
    let (mut found, mut text) = (Vec::new(), Vec::new());
    for (at, line) in lines.iter().enumerate() {
        let Some(unit) = line.strip_prefix("/// Limit in ") else {
            match line.strip_prefix("/// ") {
                Some(words) => text.push(words),
                None => text.clear(),
            }
            continue;
        };
        let failed = |reason: &str| format!("{}: {reason}", at + 1);
        let is_word = |c: char| c.is_ascii_lowercase() || c == ' ';
        let unit = unit.strip_suffix('.').filter(|unit| unit.chars().all(is_word));
        let unit = unit.ok_or_else(|| failed("the line is not 'Limit in UNIT.'"))?;
        let text = text.join(" ");
        if text.is_empty() || text.contains('|') {
            return Err(failed("the text of the limit is missing, or has a '|'"));
        }
        let declaration = lines[at + 1..].iter().find(|line| !line.starts_with("#["));
        let name = declaration.and_then(|line| line.split_once("const ")?.1.split(':').next());
        let name = name.ok_or_else(|| failed("the limit is not a constant"))?;
        let value = expression(name, source).and_then(|expression| value(expression, source));
        let value = value.ok_or_else(|| failed("the value of the limit cannot be computed"))?;
        found.push(Limit { name: name.to_owned(), amount: amount(value, unit), text });
    }
    Ok(found)
}

/// Words a value with its unit.
fn amount(mut value: u64, unit: &str) -> String {
    let mut unit = unit.to_owned();
    if let Some(rest) = unit.strip_prefix("bytes") {
        let power = (value.trailing_zeros() / 10).min(4);
        value >>= power * 10;
        unit = ["bytes", "KiB", "MiB", "GiB", "TiB"][power as usize].to_owned() + rest;
    } else if unit == "nanoseconds" && value.is_multiple_of(1_000_000_000) {
        (value, unit) = (value / 1_000_000_000, "seconds".to_owned());
    }
    let digits = value.to_string();
    match value {
        1 => format!("1 {}", unit.trim_end_matches('s')),
        _ if value < 10_000 => format!("{digits} {unit}"),
        _ if value >= 1 << 28 && value.is_power_of_two() => format!("2^{} {unit}", value.ilog2()),
        _ => {
            let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
            format!("{} {unit}", groups.collect::<Vec<_>>().join(","))
        }
    }
}

/// Returns the expression of the constant, unless there are several of the name.
fn expression<'a>(name: &str, source: &'a str) -> Option<&'a str> {
    let beginning = format!("const {name}: ");
    let mut found = source.split(&*beginning).skip(1);
    let (declaration, None) = (found.next()?, found.next()) else { return None };
    Some(declaration.split(';').next()?.split_once(" = ")?.1)
}

/// Computes an expression of numbers, casts and constants of the same file.
fn value(expression: &str, source: &str) -> Option<u64> {
    let signs = ["<<", ">>", "*", "/", "+", "-", "(", ")"];
    let spaced = |text: String, sign: &&str| text.replace(sign, &format!(" {sign} "));
    let words = signs.iter().fold(expression.to_owned(), spaced);
    let words: Vec<_> = words.split_whitespace().map(str::to_owned).collect();
    let mut reader = Reader { words: words.into_iter().peekable(), source };
    reader.operators(0).filter(|_| reader.words.next().is_none())
}

struct Reader<'a> {
    words: Peekable<vec::IntoIter<String>>,
    source: &'a str,
}

impl Reader<'_> {
    /// Computes operators of this precedence and of higher ones, from left to right.
    fn operators(&mut self, precedence: usize) -> Option<u64> {
        let Some(signs) = PRECEDENCES.get(precedence) else { return self.cast() };
        let mut left = self.operators(precedence + 1)?;
        while let Some(sign) = self.words.next_if(|word| signs.contains(&&**word)) {
            let right = self.operators(precedence + 1)?;
            left = match &*sign {
                "<<" => left.checked_mul(1_u64.checked_shl(right.try_into().ok()?)?)?,
                ">>" => left.checked_shr(right.try_into().ok()?)?,
                "+" => left.checked_add(right)?,
                "-" => left.checked_sub(right)?,
                "*" => left.checked_mul(right)?,
                _ => left.checked_div(right)?,
            };
        }
        Some(left)
    }

    /// Computes casts, which must not change the value.
    fn cast(&mut self) -> Option<u64> {
        let value = self.operand()?;
        while self.words.next_if_eq("as").is_some() {
            maximum(&self.words.next()?).filter(|maximum| value <= *maximum)?;
        }
        Some(value)
    }

    fn operand(&mut self) -> Option<u64> {
        let word = self.words.next()?;
        if word == "(" {
            let inner = self.operators(0)?;
            return self.words.next_if_eq(")").map(|_| inner);
        }
        if word == "Duration::from_secs" {
            return self.operand();
        }
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            let digits = word.replace('_', "");
            return match digits.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok(),
                None => digits.parse().ok(),
            };
        }
        match word.strip_suffix("::MAX") {
            Some(kind) => maximum(kind),
            None => value(expression(&word, self.source)?, self.source),
        }
    }
}

/// Returns the maximum of a type. Programs that read images of any size have 64 bits.
fn maximum(kind: &str) -> Option<u64> {
    Some(match kind {
        "u8" => u8::MAX.into(),
        "u32" => u32::MAX.into(),
        "u64" | "usize" => u64::MAX,
        "i32" => i32::MAX as u64,
        "i64" => i64::MAX as u64,
        _ => return None,
    })
}

/// Binary operators, those that bind least first.
const PRECEDENCES: [&[&str]; 3] = [&["<<", ">>"], &["+", "-"], &["*", "/"]];
