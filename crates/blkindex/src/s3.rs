//! The answer of `GetObjectAttributes` of S3, as the AWS command prints it: the sizes and checksums of the parts of an
//! object that was uploaded in several parts. Several answers, one after the other, are the pages of a long one.
//!
//! A checksum of type `COMPOSITE` is the digest of the digests of the parts, and is checked.

use blkhash::{Algorithm, BlockSize, Digest, Digester};
use blkmap::{Error, ReadAt, Result};
use data_encoding::BASE64;
use serde::Deserialize;

use crate::codec::{Codec, boxed};
use crate::shape::{Options, Shape};
use crate::target::{Blocks, Target};
use crate::text::shown;

pub(crate) const CODEC: Codec = Codec {
    name: "s3",
    noun: "a list of parts of S3",
    suffix: None,
    is_start,
    open: |file, options| open(file, options).map(boxed),
    write: None,
};

/// The digests of the parts, one after the other.
pub(crate) struct S3(Vec<u8>);

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Page {
    object_size: Option<u64>,
    object_parts: Option<Parts>,
    checksum: Option<Checksums>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Parts {
    is_truncated: Option<bool>,
    #[serde(alias = "PartsCount")]
    total_parts_count: Option<u64>,
    #[serde(default)]
    parts: Vec<Part>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Part {
    part_number: u64,
    size: u64,
    #[serde(flatten)]
    checksums: Checksums,
}

/// Checksums in base64.
#[derive(Default, Deserialize)]
struct Checksums {
    #[serde(rename = "ChecksumSHA256")]
    sha256: Option<String>,
    #[serde(rename = "ChecksumSHA1")]
    sha1: Option<String>,
    #[serde(rename = "ChecksumCRC64NVME")]
    crc64nvme: Option<String>,
    #[serde(rename = "ChecksumCRC32C")]
    crc32c: Option<String>,
    #[serde(rename = "ChecksumCRC32")]
    crc32: Option<String>,
    #[serde(rename = "ChecksumType")]
    kind: Option<String>,
}

impl Checksums {
    fn of(&self, algorithm: Algorithm) -> Option<&str> {
        let text = match algorithm {
            Algorithm::Sha256 => &self.sha256,
            Algorithm::Sha1 => &self.sha1,
            Algorithm::Crc64Nvme => &self.crc64nvme,
            Algorithm::Crc32c => &self.crc32c,
            Algorithm::Crc32 => &self.crc32,
            _ => return None,
        };
        text.as_deref()
    }
}

/// Reads all of the answer.
fn open(file: &dyn ReadAt, options: &Options) -> Result<(Shape, S3)> {
    let pages = read(file)?;
    let parts: Vec<&Part> = pages
        .iter()
        .filter_map(|page| page.object_parts.as_ref())
        .flat_map(|it| &it.parts)
        .collect();
    let unsuitable = |reason: String| Err(Error::Unsupported(reason));
    let known = parts.first().and_then(|first| Some((first, algorithm(first, options)?)));
    let Some((first, algorithm)) = known else {
        return unsuitable("lists no parts with checksums that are known".into());
    };
    if let Some(last) = pages.last()
        && last.object_parts.as_ref().is_none_or(|parts| parts.is_truncated == Some(true))
    {
        return unsuitable(
            "is one page of a longer list: the pages follow each other in a file".into(),
        );
    }
    if let Some(count) = pages.iter().find_map(|page| page.object_parts.as_ref()?.total_parts_count)
        && count != parts.len() as u64
    {
        return unsuitable(format!("lists {} of {count} parts", parts.len()));
    }
    let mut digests = Vec::with_capacity(parts.len() * algorithm.digest_size());
    let mut size = 0_u64;
    for (number, part) in (1..).zip(&parts) {
        if part.part_number != number {
            return unsuitable(format!("has part {} where part {number} is due", part.part_number));
        }
        let is_last = number == parts.len() as u64;
        if part.size == 0 || part.size > first.size || (!is_last && part.size != first.size) {
            return unsuitable(format!(
                "part {number} has {} bytes, and the first one {}: a map needs parts of one size",
                part.size, first.size
            ));
        }
        size = size.saturating_add(part.size);
        let digest = digest_of(part.checksums.of(algorithm).unwrap_or_default(), algorithm);
        let digest =
            digest.map_err(|reason| Error::Unsupported(format!("part {number}: {reason}")))?;
        digests.extend_from_slice(digest.as_bytes());
    }
    if let Some(stated) = pages.iter().find_map(|page| page.object_size).filter(|it| *it != size) {
        return unsuitable(format!("has parts of {size} bytes for an object of {stated} bytes"));
    }
    check_composite(&pages, algorithm, &digests, parts.len())?;
    let shape = Shape::new(algorithm, block_size(first.size, parts.len(), options)?, size, 0)?;
    Ok((shape, S3(digests)))
}

/// Returns whether a text begins like an answer.
fn is_start(head: &[u8]) -> bool {
    let head = head.trim_ascii_start();
    let has = |name: &[u8]| head.windows(name.len()).any(|window| window == name);
    head.starts_with(b"{") && (has(b"\"ObjectParts\"") || has(b"\"ObjectSize\""))
}

impl Blocks for S3 {
    fn write(&mut self, target: &mut Target<'_>) -> Result<()> {
        target.digests(&self.0)
    }
}

/// Reads the pages, each an object of JSON.
fn read(file: &dyn ReadAt) -> Result<Vec<Page>> {
    let length = file.length()?;
    if length > MAX_TEXT {
        let reason = format!("has {length} bytes: a list of parts has at most {MAX_TEXT}");
        return Err(Error::Unsupported(reason));
    }
    let mut text = vec![0; length as usize];
    file.read_exact_at(&mut text, 0)?;
    let mut stream = serde_json::Deserializer::from_slice(&text).into_iter();
    let mut pages = Vec::new();
    while let Some(page) = stream.next() {
        let at = stream.byte_offset() as u64;
        let problem = |error: serde_json::Error| {
            Error::damaged(at, error.to_string().escape_default().to_string())
        };
        pages.push(page.map_err(problem)?);
    }
    Ok(pages)
}

/// Chooses the strongest digest that a part has, or the caller's.
fn algorithm(part: &Part, options: &Options) -> Option<Algorithm> {
    let has = |algorithm: &Algorithm| part.checksums.of(*algorithm).is_some();
    match options.algorithm {
        Some(algorithm) => Some(algorithm).filter(has),
        None => DIGESTS.into_iter().find(has),
    }
}

/// A single part may be shorter than a block.
fn block_size(first: u64, parts: usize, options: &Options) -> Result<BlockSize> {
    match (BlockSize::try_from(first), options.block_size) {
        (_, Some(block_size)) if parts == 1 && first <= u64::from(block_size) => Ok(block_size),
        (Ok(block_size), _) => Ok(block_size),
        (Err(_), _) => Err(Error::Unsupported(format!(
            "has parts of {first} bytes: a map needs a power of two from {} to {}",
            BlockSize::MIN,
            BlockSize::MAX
        ))),
    }
}

/// Checks a checksum of the object that is a digest of digests.
fn check_composite(
    pages: &[Page],
    algorithm: Algorithm,
    digests: &[u8],
    parts: usize,
) -> Result<()> {
    for checksums in pages.iter().filter_map(|page| page.checksum.as_ref()) {
        let Some(text) = checksums.of(algorithm) else { continue };
        let (text, count) = match text.split_once('-') {
            Some((text, count)) => (text, Some(count)),
            None => (text, None),
        };
        // Objects from before there were types have only composite ones for a digest that cannot be joined.
        let is_composite = match checksums.kind.as_deref() {
            Some(kind) => kind == "COMPOSITE",
            None => count.is_some() || matches!(algorithm, Algorithm::Sha256 | Algorithm::Sha1),
        };
        if !is_composite {
            continue;
        }
        if count.is_some_and(|count| count.parse() != Ok(parts)) {
            return Err(Error::Unsupported(format!(
                "has the checksum of another number of parts than {parts}"
            )));
        }
        let stated = digest_of(text, algorithm).map_err(Error::Unsupported)?;
        if stated != Digester::new(algorithm).digest(digests) {
            return Err(Error::Unsupported(
                "has a checksum of the object that does not match its parts".into(),
            ));
        }
    }
    Ok(())
}

fn digest_of(text: &str, algorithm: Algorithm) -> std::result::Result<Digest, String> {
    let bytes = BASE64.decode(text.as_bytes()).ok();
    let bytes = bytes.filter(|bytes| bytes.len() == algorithm.digest_size());
    let digest = bytes.and_then(|bytes| Digest::try_from(&bytes[..]).ok());
    digest.ok_or_else(|| format!("{} is not a digest of {algorithm}", shown(text.as_bytes())))
}

/// The digests of S3 that maps have, the strongest first.
const DIGESTS: [Algorithm; 5] =
    [Algorithm::Sha256, Algorithm::Sha1, Algorithm::Crc64Nvme, Algorithm::Crc32c, Algorithm::Crc32];

/// Maximum length of a list of parts of S3. An object has at most 10,000 parts, which take up to 500 bytes each.
/// Limit in bytes.
const MAX_TEXT: u64 = 8 << 20;
