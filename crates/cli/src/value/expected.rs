//! Values from the command line, and the images that they are of.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use blkhash::Algorithm;
use blkimage::Identity;
use blksum::Tag;
use blksum::check_file::{Line, Parser};
use blksum::expect::{Search, Value};

use crate::image::input;
use crate::{quote, stdio};

/// A value that an image is expected to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The value as it was typed.
    pub text: String,
    /// Its bytes, and what it says about them.
    pub value: Value,
    /// The tag of a line, which says all.
    pub tag: Option<Tag>,
    /// The name in a line.
    pub name: Option<Vec<u8>>,
    /// Whether the server of the image is asked for the value.
    pub is_stored: bool,
}

/// Assigns the values of the command line to the images.
///
/// # Errors
///
/// Fails if an image has no value, or a text is no value.
pub fn bind(names: &[OsString], texts: &[OsString]) -> Result<Vec<Vec<Expected>>, String> {
    let stdin = [OsString::from("-")];
    let names = if names.is_empty() { &stdin } else { names };
    let mut values = vec![Vec::new(); names.len()];
    let mut unbound = Vec::new();
    for text in texts {
        let named = names.iter().enumerate().filter_map(|(index, name)| {
            let rest = text.as_bytes().strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            // Base64 ends with equals signs, and an image may have such a name.
            let is_value = rest.iter().any(|byte| *byte != b'=');
            is_value.then(|| (index, OsStr::from_bytes(rest)))
        });
        // A name may hold an equals sign.
        if let Some((index, rest)) = named.min_by_key(|(_, rest)| rest.len()) {
            values[index].push(parse_or_stored(rest)?);
            continue;
        }
        let value = parse_or_stored(text)?;
        let is_named = |name: &&OsString| Some(name.as_bytes()) == value.name.as_deref();
        match names.iter().position(|name| is_named(&name)) {
            Some(index) => values[index].push(value),
            None => unbound.push(value),
        }
    }
    if let [only] = &mut *values {
        only.extend(unbound);
    } else if !unbound.is_empty() {
        let mut free = values.iter_mut().filter(|values| values.is_empty()).collect::<Vec<_>>();
        if free.len() != unbound.len() {
            let what = if unbound.len() == 1 { "value" } else { "values" };
            return Err(format!(
                "--expect: {} {what} for {} images: give one for each, or IMAGE=VALUE",
                unbound.len(),
                free.len()
            ));
        }
        free.iter_mut().zip(unbound).for_each(|(values, value)| values.push(value));
    }
    match names.iter().zip(&values).find(|(_, values)| values.is_empty()) {
        Some((name, _)) => Err(format!("--expect: no value for {}", quote::name(name.as_bytes()))),
        None => Ok(values),
    }
}

/// Parses a value, a line of a check file, or the word for the value that a server stores.
fn parse_or_stored(text: &OsStr) -> Result<Expected, String> {
    if text != STORED {
        return parse(text);
    }
    let value = Value { digest: Vec::new(), algorithm: None, parts: None };
    Ok(Expected { text: STORED.to_owned(), value, tag: None, name: None, is_stored: true })
}

/// Parses a value, or a line of a check file.
///
/// # Errors
///
/// Fails if the text is neither.
pub fn parse(text: &OsStr) -> Result<Expected, String> {
    let shown = quote::name(text.as_bytes());
    let utf8 = text.to_str().ok_or_else(|| format!("--expect: {shown} is no checksum"))?;
    let utf8 = utf8.trim_ascii_end();
    if utf8.contains('\n') {
        return Err(format!("--expect: {shown} is more than one line"));
    }
    let plain =
        |value| Expected { text: utf8.to_owned(), value, tag: None, name: None, is_stored: false };
    let error = match utf8.parse::<Value>() {
        Ok(value) => return Ok(plain(value)),
        Err(error) => error,
    };
    match Parser::of_any(Algorithm::Sha256).parse(utf8.as_bytes()) {
        Line::Entry(entry) if str::from_utf8(&entry.name).is_ok_and(is_value) => {
            Err(format!("--expect: {shown} is two values: give the option twice"))
        }
        Line::Entry(entry) => {
            let value = Value { digest: entry.digest, algorithm: entry.algorithm, parts: None };
            Ok(Expected { tag: entry.tag, name: Some(entry.name), ..plain(value) })
        }
        _ => {
            let (name, value) = utf8.rsplit_once('=').unwrap_or_default();
            Err(match is_value(value) {
                true => format!("--expect: no image is named {}", quote::name(name.as_bytes())),
                false => format!("--expect: {shown} {error}"),
            })
        }
    }
}

fn is_value(text: &str) -> bool {
    text.parse::<Value>().is_ok()
}

/// Refuses values of which nothing can be tried.
pub fn check_digests(values: &[Vec<Expected>], search: &Search) -> Result<(), String> {
    let is_hopeless =
        |it: &&Expected| it.tag.is_none() && !it.is_stored && search.digests(&it.value).is_empty();
    match values.iter().flatten().find(is_hopeless) {
        Some(found) => Err(format!(
            "--expect: {} has {} bytes, and no digest that --digest names is that long",
            quote::name(found.text.as_bytes()),
            found.value.digest.len()
        )),
        None => Ok(()),
    }
}

/// Refuses to read twice what can be read only once: the second reading would be of nothing.
///
/// # Errors
///
/// Fails with a message that names it.
pub fn check_streams(
    names: &[OsString],
    values: &[Vec<Expected>],
    log: Option<&Path>,
) -> Result<(), String> {
    let stdin = [OsString::from("-")];
    let names = if names.is_empty() { &stdin } else { names };
    if log == Some(Path::new("-")) && names.iter().any(|name| name == "-") {
        return Err("--expect-log: standard input is the log, and cannot be an image".into());
    }
    let streams = names.iter().enumerate().filter(|(_, name)| input::is_read_once(name));
    let mut known: Vec<(&OsStr, Option<Identity>)> = Vec::new();
    for (index, name) in streams {
        let shown = quote::name(name.as_bytes());
        if values.get(index).is_some_and(|values| values.len() > 1) {
            return Err(format!("--expect: {shown} is read only once: give one value"));
        }
        let metadata = match name == "-" {
            true => stdio::stdin().and_then(|file| file.metadata()),
            false => std::fs::metadata(name),
        };
        let identity = metadata.ok().map(|it| Identity::new(&it));
        if let Some((other, _)) = known.iter().find(|(_, known)| *known == identity) {
            let other = quote::name(other.as_bytes());
            return Err(format!("--expect: {other} and {shown} are one pipe, which is read once"));
        }
        known.push((name, identity));
    }
    Ok(())
}

/// The value of `--expect` for which the server of the image is asked.
const STORED: &str = "stored";

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<OsString> {
        names.iter().map(OsString::from).collect()
    }

    #[test]
    fn values_are_bound_to_images() {
        let (a, b) = ("a".repeat(64), "b".repeat(64));
        let texts = |images: &[&str], values: &[&str]| {
            let bound = bind(&names(images), &names(values)).ok()?;
            let texts =
                |values: Vec<Expected>| values.into_iter().map(|it| it.text).collect::<Vec<_>>();
            Some(bound.into_iter().map(texts).collect::<Vec<_>>())
        };
        let one = |value: &str| vec![value.to_owned()];
        assert_eq!(texts(&["x"], &[&a]), Some(vec![one(&a)]));
        assert_eq!(texts(&[], &[&a]), Some(vec![one(&a)]));
        assert_eq!(texts(&["x"], &[&a, &b]), Some(vec![vec![a.clone(), b.clone()]]));
        assert_eq!(texts(&["x", "y"], &[&a, &b]), Some(vec![one(&a), one(&b)]));
        let named = [format!("y={a}"), format!("x={b}")];
        assert_eq!(texts(&["x", "y"], &[&named[0], &named[1]]), Some(vec![one(&b), one(&a)]));
        assert_eq!(texts(&["x", "y"], &[&named[0], &b]), Some(vec![one(&b), one(&a)]));
        for (images, values) in [
            (&["x", "y"][..], &[&*a][..]),
            (&["x", "y"], &[&a, &b, &b]),
            (&["x", "y"], &[&named[0]]),
            (&["x"], &["z=", &a]),
            (&["x"], &[&named[0]]),
            (&["x"], &["disk.img"]),
            (&["x"], &[&format!("{a}  x\n{b}  y")]),
        ] {
            assert_eq!(texts(images, values), None, "{images:?} {values:?}");
        }
    }

    #[test]
    fn lines_of_check_files_are_values() {
        let hex = "a".repeat(64);
        let parse = |text: &str| parse(OsStr::new(text)).unwrap();
        assert_eq!(parse(&format!("{hex}  disk.img")).tag, None);
        assert_eq!(parse(&format!("SHA256 (x) = {hex}")).tag, Some(Tag::File(Algorithm::Sha256)));
        let line = parse(&format!("BLKSUM-SHA256-FLAT-64K/PARTITION=1 (x) = {hex}"));
        assert_eq!(line.tag.unwrap().to_string(), "BLKSUM-SHA256-FLAT-64K/PARTITION=1");
        assert_eq!(parse(&format!("blake3:{hex}  x")).value.algorithm, Some(Algorithm::Blake3));
    }

    #[test]
    fn a_digest_that_cannot_match_is_refused() {
        let values = vec![vec![parse(OsStr::new(&"a".repeat(64))).unwrap()]];
        let search = |algorithm| Search { algorithms: vec![algorithm], ..Search::default() };
        assert!(check_digests(&values, &search(Algorithm::Sha256)).is_ok());
        assert!(check_digests(&values, &search(Algorithm::Md5)).is_err());
    }
}
