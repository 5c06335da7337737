//! Tags, which name the algorithm and parameters of a checksum in a line of a check file.
//!
//! There are two kinds. `BLKSUM-SHA256-STREAMS4-64K` names every parameter and stands for the
//! guest's content of an image, or for the [`Content`] that it records. A plain tag such as `SHA256`, as
//! published by distributions, stands for the file's own bytes, even if the file is an image.
//! docs/reference/check-file.md specifies both.

use std::fmt;
use std::str::FromStr;

use blkhash::{Algorithm, BlockSize, Construction, Parameters, Salt};

use crate::Content;

/// Content and parameters of a checksum with a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tag {
    /// Digest of the file's own bytes (format raw, construction linear).
    File(Algorithm),
    /// Checksum of the guest's content. The salt makes parameters long, and a check file has many tags.
    Image(Box<ImageTag>),
}

/// Content of an image and parameters of its checksum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageTag {
    /// Parameters of the checksum.
    pub parameters: Parameters,
    /// Content that is hashed.
    pub content: Content,
}

/// Error for a text that is not a [`Tag`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownTag;

impl Tag {
    /// Returns the parameters of a plain tag of `algorithm` for the bytes of a file.
    ///
    /// # Panics
    ///
    /// Panics if the algorithm requires a key.
    pub fn linear(algorithm: Algorithm) -> Parameters {
        Parameters::new(algorithm, Construction::Linear, BlockSize::DEFAULT)
            .expect("no tag names an algorithm with a key")
    }

    /// Returns the length of the checksum in bytes.
    pub fn digest_size(&self) -> usize {
        match self {
            Self::File(algorithm) => algorithm.digest_size(),
            Self::Image(tag) => tag.parameters.algorithm().digest_size(),
        }
    }
}

impl From<Parameters> for Tag {
    /// Returns the tag of the whole content of an image.
    fn from(parameters: Parameters) -> Self {
        Self::Image(Box::new(ImageTag { parameters, content: Content::default() }))
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(algorithm) => f.write_str(&plain_name(*algorithm)),
            Self::Image(tag) => tag.fmt(f),
        }
    }
}

impl fmt::Display for ImageTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { parameters, content } = self;
        write!(f, "{PREFIX}{}-", image_name(parameters.algorithm()))?;
        let construction = parameters.construction();
        f.write_str(&construction_name(construction))?;
        if !construction.has_blocks() {
            return write!(f, "{content}");
        }
        let size = parameters.block_size().get();
        match SUFFIXES.iter().find(|(_, unit)| size.is_multiple_of(*unit)) {
            Some((suffix, unit)) => write!(f, "-{}{suffix}", size / unit)?,
            None => write!(f, "-{size}")?,
        }
        match parameters.salt() {
            salt if salt.is_empty() => {}
            salt => write!(f, "-{SALT}{salt}")?,
        }
        write!(f, "{content}")
    }
}

impl FromStr for Tag {
    type Err = UnknownTag;

    fn from_str(text: &str) -> Result<Self, UnknownTag> {
        let tag = match text.strip_prefix(PREFIX) {
            Some(rest) => {
                let (rest, content) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                let parameters = parse_image(rest).ok_or(UnknownTag)?;
                let content = content.parse().map_err(|_| UnknownTag)?;
                Self::Image(Box::new(ImageTag { parameters, content }))
            }
            None => Self::File(parse_plain(text).ok_or(UnknownTag)?),
        };
        // An empty digest proves nothing.
        if tag.digest_size() == 0 { Err(UnknownTag) } else { Ok(tag) }
    }
}

impl fmt::Display for UnknownTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown tag")
    }
}

impl std::error::Error for UnknownTag {}

/// Parses `DIGEST-STREAMSn-SIZE` and similar, from the right because names of digests may contain
/// dashes.
fn parse_image(text: &str) -> Option<Parameters> {
    let (mut rest, mut last) = text.rsplit_once('-')?;
    let mut salt = Salt::EMPTY;
    if let Some(digits) = last.strip_prefix(SALT).filter(|digits| !digits.is_empty()) {
        salt = digits.parse().ok()?;
        (rest, last) = rest.rsplit_once('-')?;
    }
    let (digest, construction, block_size) = match parse_construction(last) {
        Some(construction) if !construction.has_blocks() => {
            (rest, construction, BlockSize::DEFAULT)
        }
        _ => {
            let (digest, construction) = rest.rsplit_once('-')?;
            let construction = parse_construction(construction).filter(|it| it.has_blocks())?;
            (digest, construction, parse_size(last)?.try_into().ok()?)
        }
    };
    let algorithm = Algorithm::ALL.iter().copied().find(|known| image_name(*known) == digest)?;
    Parameters::new(algorithm, construction, block_size).ok()?.with_salt(salt).ok()
}

fn parse_construction(text: &str) -> Option<Construction> {
    let verity = [Construction::FsVerity, Construction::DmVerity];
    if let Some(known) = verity.into_iter().find(|known| construction_name(*known) == text) {
        return Some(known);
    }
    let name = text.to_ascii_lowercase();
    let number = name.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let letters = name.len() - number.len();
    let name = match number {
        "" => name,
        _ => format!("{}:{number}", &name[..letters]),
    };
    name.parse().ok().filter(|construction| construction_name(*construction) == text)
}

fn parse_size(text: &str) -> Option<u64> {
    let (digits, unit) = SUFFIXES
        .iter()
        .find_map(|(suffix, unit)| Some((text.strip_suffix(*suffix)?, *unit)))
        .unwrap_or((text, 1));
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(unit as u64)
}

/// Parses a plain tag, as [`plain_name`] and other programs write it: the name of a digest in any capitals, with a dash
/// between its parts or without one.
pub(crate) fn parse_plain(text: &str) -> Option<Algorithm> {
    if text.split('-').any(str::is_empty) {
        return None;
    }
    let plain = |name: &str| name.replace('-', "").to_ascii_lowercase();
    let name = plain(text);
    let algorithm = match OTHERS.iter().find(|(other, _)| *other == name) {
        Some((_, algorithm)) => *algorithm,
        None => Algorithm::ALL.iter().copied().find(|known| plain(known.name()) == name)?,
    };
    // Rejects algorithms that require a key.
    Parameters::new(algorithm, Construction::Linear, BlockSize::DEFAULT).ok()?;
    Some(algorithm)
}

/// Returns the plain tag of an algorithm, as written by coreutils, b3sum, xxhsum and the BSDs.
fn plain_name(algorithm: Algorithm) -> String {
    match algorithm {
        Algorithm::Blake2b512 => "BLAKE2b".to_owned(),
        Algorithm::Blake2b256 => "BLAKE2b-256".to_owned(),
        Algorithm::Blake2s256 => "BLAKE2s-256".to_owned(),
        other => image_name(other),
    }
}

/// Returns the name of a construction in capitals with its number, such as `STREAMS4`.
fn construction_name(construction: Construction) -> String {
    construction.to_string().to_ascii_uppercase().replace([':', '-'], "")
}

fn image_name(algorithm: Algorithm) -> String {
    algorithm.name().to_ascii_uppercase()
}

/// Begins the tag of an image.
pub(crate) const PREFIX: &str = "BLKSUM-";

/// Precedes the digits of a salt.
const SALT: &str = "SALT";

/// Units of sizes, largest first.
const SUFFIXES: [(char, usize); 2] = [('M', 1 << 20), ('K', 1 << 10)];

/// Other names of digests in plain tags, without dashes and capitals, of coreutils, rhash and `openssl dgst`.
const OTHERS: [(&str, Algorithm); 10] = [
    ("sha2224", Algorithm::Sha224),
    ("sha2256", Algorithm::Sha256),
    ("sha2384", Algorithm::Sha384),
    ("sha2512", Algorithm::Sha512),
    ("sha2512/224", Algorithm::Sha512_224),
    ("sha2512/256", Algorithm::Sha512_256),
    ("sha512/224", Algorithm::Sha512_224),
    ("sha512/256", Algorithm::Sha512_256),
    ("blake2b", Algorithm::Blake2b512),
    ("blake2s", Algorithm::Blake2s256),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn image(algorithm: Algorithm, construction: &str, block_size: u64) -> Tag {
        let (construction, block_size) = (construction.parse(), block_size.try_into());
        let parameters = Parameters::new(algorithm, construction.unwrap(), block_size.unwrap());
        parameters.unwrap().into()
    }

    fn salted(construction: &str, salt: &str) -> Tag {
        let Tag::Image(tag) = image(Algorithm::Sha512, construction, 65536) else { panic!() };
        tag.parameters.with_salt(salt.parse().unwrap()).unwrap().into()
    }

    #[test]
    fn known_tags() {
        let known = [
            ("BLKSUM-SHA256-STREAMS4-64K", Tag::Image(Box::default())),
            ("BLKSUM-BLAKE2B256-CONCAT-4M", image(Algorithm::Blake2b256, "concat", 4 << 20)),
            ("BLKSUM-SHA512-256-FLAT-512", image(Algorithm::Sha512_256, "flat", 512)),
            ("BLKSUM-SHA3-256-STREAMS128-1K", image(Algorithm::Sha3_256, "streams:128", 1024)),
            ("BLKSUM-SHA3-512-LINEAR", image(Algorithm::Sha3_512, "linear", 65536)),
            ("BLKSUM-SHA256-FSVERITY-4K", image(Algorithm::Sha256, "fs-verity", 4096)),
            ("BLKSUM-SHA1-DMVERITY-512", image(Algorithm::Sha1, "dm-verity", 512)),
            ("BLKSUM-SHA512-FSVERITY-64K-SALT00ff", salted("fs-verity", "00ff")),
            ("BLKSUM-SHA512-DMVERITY-64K-SALT5a", salted("dm-verity", "5a")),
            ("SHA256", Tag::File(Algorithm::Sha256)),
            ("MD5", Tag::File(Algorithm::Md5)),
            ("SHA3-256", Tag::File(Algorithm::Sha3_256)),
            ("BLAKE2b", Tag::File(Algorithm::Blake2b512)),
            ("BLAKE2b-256", Tag::File(Algorithm::Blake2b256)),
            ("BLAKE3", Tag::File(Algorithm::Blake3)),
            ("XXH64", Tag::File(Algorithm::Xxh64)),
        ];
        for (text, tag) in known {
            assert_eq!(text.parse().as_ref(), Ok(&tag), "{text}");
            assert_eq!(tag.to_string(), text);
        }
        let Tag::Image(mut tag) = salted("dm-verity", "5a") else { panic!() };
        tag.content = "/SNAPSHOT=a-b/PARTITION=2".parse().unwrap();
        let text = "BLKSUM-SHA512-DMVERITY-64K-SALT5a/SNAPSHOT=a-b/PARTITION=2";
        assert_eq!(text.parse(), Ok(Tag::Image(tag.clone())));
        assert_eq!(tag.to_string(), text);
        assert!("BLKSUM-SHA256-LINEAR/LENGTH=512".parse::<Tag>().is_ok());
        assert_eq!("SHA2-512/256".parse(), Ok(Tag::File(Algorithm::Sha512_256)));
        for (text, algorithm) in [
            ("sha256", Algorithm::Sha256),
            ("SHA-256", Algorithm::Sha256),
            ("Sha-1", Algorithm::Sha1),
            ("sha2-512", Algorithm::Sha512),
            ("SHA512/256", Algorithm::Sha512_256),
            ("sha-512-256", Algorithm::Sha512_256),
            ("BLAKE2b512", Algorithm::Blake2b512),
            ("BLAKE2B-512", Algorithm::Blake2b512),
            ("blake2s", Algorithm::Blake2s256),
            ("sha3-512", Algorithm::Sha3_512),
            ("crc-32c", Algorithm::Crc32c),
        ] {
            assert_eq!(text.parse(), Ok(Tag::File(algorithm)), "{text}");
        }
        assert_eq!("BLKSUM-SHA256-FLAT-65536".parse(), Ok(image(Algorithm::Sha256, "flat", 65536)));
    }

    #[test]
    fn every_tag_round_trips() {
        for &algorithm in Algorithm::ALL {
            for construction in
                ["streams:1", "streams:64", "flat", "concat", "linear", "fs-verity", "dm-verity"]
            {
                let construction = construction.parse().unwrap();
                let Ok(parameters) = Parameters::new(algorithm, construction, BlockSize::DEFAULT)
                else {
                    continue;
                };
                for tag in [Tag::File(algorithm), parameters.into()] {
                    let text = tag.to_string();
                    let expected = if tag.digest_size() == 0 { Err(UnknownTag) } else { Ok(tag) };
                    assert_eq!(text.parse(), expected);
                }
            }
        }
    }

    /// No two digests share a spelling.
    #[test]
    fn names_without_dashes_differ() {
        let names = Algorithm::ALL.iter().map(|it| it.name().replace('-', ""));
        let names = names.chain(OTHERS.iter().map(|(name, _)| (*name).to_owned()));
        let names: std::collections::BTreeSet<_> = names.collect();
        assert_eq!(names.len(), Algorithm::ALL.len() + OTHERS.len());
    }

    #[test]
    fn other_tags_are_unknown() {
        let unknown = [
            "",
            "SHA-",
            "-SHA256",
            "SHA--256",
            "SHA 256",
            "SHA256/",
            "SHA3/256",
            "SHA2",
            "SHA257",
            "BLAKE2",
            "BLAKE2b-512-",
            "SIPHASH",
            "NULL",
            "BLKSUM-",
            "BLKSUM-SHA256",
            "BLKSUM-SHA256-STREAMS-64K",
            "BLKSUM-SHA256-STREAMS0-64K",
            "BLKSUM-SHA256-STREAMS129-64K",
            "BLKSUM-SHA256-STREAMS4",
            "BLKSUM-SHA256-STREAMS4-64k",
            "BLKSUM-SHA256-STREAMS4-+64K",
            "BLKSUM-SHA256-STREAMS4-65K",
            "BLKSUM-SHA256-STREAMS4-256",
            "BLKSUM-SHA256-STREAMS4-K",
            "BLKSUM-SHA256-STREAMS4-64K-SALT00",
            "BLKSUM-SHA256-DMVERITY-4K-SALT",
            "BLKSUM-SHA256-DMVERITY-4K-SALT0",
            "BLKSUM-SHA256-DMVERITY-4K-SALT0g",
            "BLKSUM-SHA256-DMVERITY-SALT00",
            "BLKSUM-SHA256-DM-VERITY-4K",
            "BLKSUM-SHA256-FSVERITY",
            "BLKSUM-BLAKE3-FSVERITY-4K",
            "BLKSUM-CRC32C-DMVERITY-4K",
            "BLKSUM-SHA256-LINEAR-SALT00",
            "BLKSUM-SHA256-STREAMS4-128M",
            "BLKSUM-SHA256-STREAMS4-18446744073709551615M",
            "BLKSUM-SHA256-LINEAR-64K",
            "BLKSUM-sha256-LINEAR",
            "BLKSUM-NULL-FLAT-64K",
            "BLKSUM-SIPHASH-FLAT-64K",
            "blksum-SHA256-LINEAR",
            "BLKSUM-SHA256-LINEAR/",
            "BLKSUM-SHA256/PARTITION=1",
            "BLKSUM-SHA256-STREAMS4-64K/OFFSET=1",
            "BLKSUM-SHA256-STREAMS4-64K/PARTITION=1-SALT00",
            "SHA256/PARTITION=1",
        ];
        for text in unknown {
            assert_eq!(text.parse::<Tag>(), Err(UnknownTag), "{text}");
        }
    }
}
