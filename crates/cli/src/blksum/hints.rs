//! Hints about what to type instead, for likely mistakes and for users of similar programs.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use blkhash::{Algorithm, Construction, Parameters};
use blkimage::{Cache, Format};
use blksum::check_file::{Mistake, windows};
use blksum::expect::digests_of_size;

use super::settings::Settings;
use crate::image::names;
use crate::problem::Cause;
use crate::progress::When;
use crate::value::digest::describe;
use crate::{quote, values};

/// Returns the hint for users of the released blksum, in which `-t N` sets the number of threads.
pub fn threads(number: &OsStr) -> String {
    let number = quote::name(number.as_bytes());
    format!("-t means --text, as in sha256sum: for {number} threads, use --threads {number}")
}

/// Returns whether `name` could be meant as a number of threads.
pub fn is_number(name: &OsStr) -> bool {
    !name.is_empty() && name.as_bytes().iter().all(u8::is_ascii_digit)
}

/// Returns the number in an argument such as `-t4`.
pub fn attached_threads(arg: &OsStr) -> Option<&OsStr> {
    let number = OsStr::from_bytes(arg.as_bytes().strip_prefix(b"-t")?);
    is_number(number).then_some(number)
}

/// Returns the hint for a missing file whose name is a value of `--cache` or `--progress`, if the option
/// was given: both take a value only after an equals sign.
pub fn detached_value(name: &OsStr, settings: &Settings) -> Option<String> {
    let is_one_of = |names: Vec<&str>| names.into_iter().any(|value| name == value);
    let option = if settings.open.cache == Cache::Yes && is_one_of(Cache::names()) {
        "--cache"
    } else if settings.progress == When::Always && is_one_of(When::names()) {
        "--progress"
    } else {
        return None;
    };
    let name = name.display();
    Some(format!("to give {option} this value, use {option}={name}"))
}

/// The hint for users of the released blksum, in which `-c` reads through the page cache.
pub const CACHE: &str = "-c means --check, as in sha256sum: to read an image through the page \
                         cache, use --cache";

/// Returns the hint for a name that failed for this cause, if a mistake is likely.
pub fn of_failure(name: &OsStr, cause: Cause) -> Option<String> {
    match cause {
        Cause::Directory => Some("use -r to hash the files in it".into()),
        Cause::Missing => names::missing(name),
        Cause::Digest | Cause::Damaged | Cause::Other => None,
    }
}

/// Returns what to do about a name of a check file that is not there, if it looks like one of Windows.
pub fn of_windows(name: &[u8]) -> Option<String> {
    if windows::is_of_machine(name) {
        return Some(
            "it is a name of Windows: blksum --expect VALUE IMAGE compares the image by its name here"
                .to_owned(),
        );
    }
    let here = windows::translate(Path::new(""), name)?;
    Some(format!("{} is there: tr '\\\\' / translates the names of a list", quote::name(&here)))
}

/// Returns the hint for untagged lines of which none matched: how they were interpreted, and which
/// options to try. `None` if they were read as digests of the files' own bytes.
pub fn none_matched(parameters: &Parameters, is_bytes: bool) -> Option<String> {
    if is_bytes {
        return None;
    }
    let construction = parameters.construction();
    let algorithm = parameters.algorithm();
    let mut others = vec![format!("-B for lines of {}", tool(algorithm))];
    let digests = digests_of(2 * algorithm.digest_size(), Some(algorithm));
    if !digests.is_empty() {
        others.push(format!("-d {}", values::one_of(&digests)));
    }
    if construction != Construction::Linear {
        let tool = tool(algorithm);
        others.push(format!("--construction linear for lines of {tool} of the content as raw"));
    }
    if construction != Construction::Flat {
        others.push("--construction flat for lines of the C blksum 0.10 and later".to_owned());
    }
    if construction == Construction::default() {
        others.push("--construction streams:32 or streams:64 for releases 0.8 and 0.9".to_owned());
    } else {
        others.push("--construction streams:4 for lines of the C blksum 0.3 to 0.7".to_owned());
    }
    let taken_for = describe(parameters);
    Some(format!("lines without a tag were read as {taken_for}: try {}", values::one_of(&others)))
}

/// Names the digests of untagged lines that have another number of digits than digests of `algorithm`. Returns `None`
/// if there are none.
pub fn digits(digits: usize, algorithm: Algorithm) -> Option<String> {
    let has = 2 * algorithm.digest_size();
    let digests = digests_of(digits, None);
    (digits != has && !digests.is_empty()).then(|| {
        let digests = values::one_of(&digests);
        format!(
            "lines without a tag have {digits} digits, and {algorithm} has {has}: try -d {digests}"
        )
    })
}

/// Returns how a malformed line of this kind is written instead, or which command takes its checksum.
pub fn mistake((number, mistake): &(u64, Mistake)) -> Option<String> {
    Some(match mistake {
        Mistake::Bare => format!(
            "line {number} has a checksum and no name: a line is CHECKSUM  IMAGE, and {EXPECT}"
        ),
        Mistake::Prefixed(algorithm) => format!(
            "line {number} begins with the name of a digest: write CHECKSUM  IMAGE, and -d {algorithm} \
             on the command line"
        ),
        Mistake::ImageTag => {
            format!("line {number} has a tag of blksum, and may be damaged or of a later version")
        }
        Mistake::NameFirst => format!(
            "line {number} has its checksum after the name, which is read only after a line that begins \
             with ;, as in lists of CRC-32 (.sfv): write CHECKSUM  IMAGE, or {EXPECT}"
        ),
        Mistake::Foreign("hashdeep") => format!(
            "line {number} is of hashdeep: hashdeep -a -k FILE compares its lists, and lists of sha256deep -l \
             are read"
        ),
        Mistake::Foreign(program) => {
            format!(
                "line {number} is of {program}, whose output is no list of names here: {EXPECT}"
            )
        }
        Mistake::Value => format!(
            "line {number} has a checksum that was not compared: a line is CHECKSUM  IMAGE, and {EXPECT}"
        ),
        _ => return None,
    })
}

/// What takes a checksum that is in no line that is read.
const EXPECT: &str = "blksum --expect CHECKSUM IMAGE compares one checksum";

/// Returns the message for text in UTF-16 that does not say so.
pub fn unmarked(encoding: &str) -> String {
    format!(
        "is text in {encoding} without a byte order mark: iconv -f {encoding} -t UTF-8 makes it \
         readable"
    )
}

/// Returns the hint for a check file in another folder, whose images are next to it.
pub fn beside(path: &Path) -> String {
    let shown = |part: Option<&OsStr>| quote::name(part.unwrap_or_default().as_bytes());
    let (folder, name) = (shown(path.parent().map(Path::as_os_str)), shown(path.file_name()));
    format!(
        "its names are relative to the folder that blksum runs in: cd {folder} && blksum -c {name}"
    )
}

/// Returns the hint for lines without a tag of which none matched. `untried` are other digests of that length.
pub fn tried(tried: &str, untried: &[Algorithm]) -> String {
    let mut text = format!("lines without a tag were tried as {tried}");
    if !untried.is_empty() {
        let names: Vec<_> = untried.iter().map(|it| it.name()).collect();
        text += &format!(
            ", and not as {}, which can be forged: -d {} does that",
            values::and(&names),
            values::one_of(&names)
        );
    }
    text
}

/// Returns the hint for a check file without a well-formed line. `malformed` is the number of the others.
pub fn no_entries(found: Option<&(u64, Mistake)>, malformed: u64) -> Option<String> {
    match found {
        Some((_, Mistake::Binary)) => Some(
            "it is no text: an image is hashed without -c, and lines are written without --zero"
                .into(),
        ),
        Some(found) => mistake(found),
        None if malformed == 0 => Some("it has no lines: blksum IMAGE > FILE writes some".into()),
        None => {
            Some("a line is CHECKSUM  IMAGE, or TAG (IMAGE) = CHECKSUM as --tag writes it".into())
        }
    }
}

/// Returns the hint for an image that was given as a check file.
pub fn image(format: Format) -> String {
    format!("is a {format} image, not a list of checksums: leave out -c to hash it")
}

/// Returns the digests whose checksums have this number of digits, the most common ones first.
fn digests_of(digits: usize, except: Option<Algorithm>) -> Vec<&'static str> {
    let found = digests_of_size(digits / 2).into_iter();
    let found = found.filter(|it| digits.is_multiple_of(2) && Some(*it) != except);
    found.map(Algorithm::name).collect()
}

/// Returns the name of the program that prints this digest of a file's own bytes.
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
            none_matched(&parameters("streams:4"), false).unwrap(),
            "lines without a tag were read as sha256, streams:4 and blocks of 64 KiB: try -B for \
             lines of sha256sum, -d blake3, blake2b256, sha512-256, sha3-256 or blake2s256, \
             --construction linear for lines of sha256sum of the content as raw, --construction flat \
             for lines of the C blksum 0.10 and later or --construction streams:32 or streams:64 for \
             releases 0.8 and 0.9"
        );
        assert!(!none_matched(&parameters("flat"), false).unwrap().contains("flat for"));
        assert!(none_matched(&parameters("linear"), false).is_some());
        assert_eq!(none_matched(&parameters("linear"), true), None);
    }

    #[test]
    fn digests_are_suggested_by_their_digits() {
        let of = |count| digits(count, Algorithm::Sha256);
        let prefix = "lines without a tag have 128 digits, and sha256 has 64: try -d ";
        assert_eq!(of(128), Some(format!("{prefix}sha512, blake2b512 or sha3-512")));
        for count in [0, 1, 7, 64] {
            assert_eq!(of(count), None, "{count}");
        }
    }
}
