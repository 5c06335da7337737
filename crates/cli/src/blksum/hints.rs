//! What to say to somebody who types the options of another program.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use blkhash::{Algorithm, Construction, Parameters};

use super::digest::describe;
use crate::quote;

/// The released blksum has `-t N` for threads.
pub fn threads(number: &OsStr) -> String {
    let number = quote::name(number.as_bytes());
    format!("-t means --text, as in sha256sum: for {number} threads, use --threads {number}")
}

/// Whether `name` could be meant as a number of threads.
pub fn is_number(name: &OsStr) -> bool {
    !name.is_empty() && name.as_bytes().iter().all(u8::is_ascii_digit)
}

/// The number of `-t4`.
pub fn attached_threads(arg: &OsStr) -> Option<&OsStr> {
    let number = OsStr::from_bytes(arg.as_bytes().strip_prefix(b"-t")?);
    is_number(number).then_some(number)
}

/// The released blksum has `-c` for the page cache.
pub const CACHE: &str = "-c means --check, as in sha256sum: to read an image through the page \
                         cache, use --cache";

/// What untagged lines that all failed were taken for, and what else they could be. None where the
/// user asked for the digests of the files themselves: no other parameters are more likely.
pub fn all_failed(parameters: &Parameters, is_raw: bool) -> Option<String> {
    let construction = parameters.construction();
    if construction == Construction::Linear && is_raw {
        return None;
    }
    let mut others = Vec::new();
    if construction != Construction::Flat {
        others.push("--construction flat (blksum 0.10 and later)".to_owned());
    }
    if construction != Construction::default() {
        others.push("--construction streams:4 (blksum 0.3 to 0.7)".to_owned());
    }
    others.push(format!("--construction linear -f raw ({})", tool(parameters.algorithm())));
    Some(format!(
        "lines without a tag were checked as {}; try {}",
        describe(parameters),
        others.join(" or ")
    ))
}

/// The program whose checksums are those of the files themselves.
fn tool(algorithm: Algorithm) -> String {
    match algorithm {
        Algorithm::Md5
        | Algorithm::Sha1
        | Algorithm::Sha224
        | Algorithm::Sha256
        | Algorithm::Sha384
        | Algorithm::Sha512 => format!("{algorithm}sum"),
        Algorithm::Blake2b512 | Algorithm::Blake2b256 => "b2sum".into(),
        Algorithm::Blake3 => "b3sum".into(),
        Algorithm::Xxh64 | Algorithm::Xxh3 | Algorithm::Xxh128 => "xxhsum".into(),
        other => format!("the {other} of the file"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_recognised() {
        assert_eq!(attached_threads(OsStr::new("-t16")), Some(OsStr::new("16")));
        assert_eq!(attached_threads(OsStr::new("-t")), None);
        assert_eq!(attached_threads(OsStr::new("-tz")), None);
        assert!(threads(OsStr::new("4")).contains("--threads 4"));
    }

    #[test]
    fn other_parameters_are_suggested() {
        let parameters = |construction: &str| {
            let construction = construction.parse().unwrap();
            Parameters::new(Algorithm::Sha256, construction, blkhash::BlockSize::DEFAULT).unwrap()
        };
        assert_eq!(
            all_failed(&parameters("streams:4"), false).unwrap(),
            "lines without a tag were checked as sha256, streams:4 and blocks of 64 KiB; try \
             --construction flat (blksum 0.10 and later) or --construction linear -f raw \
             (sha256sum)"
        );
        assert!(!all_failed(&parameters("flat"), false).unwrap().contains("flat ("));
        assert!(all_failed(&parameters("linear"), false).is_some());
        assert_eq!(all_failed(&parameters("linear"), true), None);
    }
}
