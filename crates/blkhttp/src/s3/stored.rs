//! Checksums that a server stores with an object, as its headers state them.

use data_encoding::{BASE64, HEXLOWER_PERMISSIVE};
use http::HeaderMap;
use http::header::{CONTENT_RANGE, ETAG};

/// A checksum that a server stores with an object.
///
/// The server may have computed it from other bytes than those that it sends, so it is compared and not trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredChecksum {
    /// The algorithm.
    pub algorithm: ChecksumAlgorithm,
    /// The bytes of the value.
    pub value: Vec<u8>,
    /// The bytes that it is a checksum of.
    pub kind: ChecksumKind,
}

/// The algorithm of a [`StoredChecksum`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChecksumAlgorithm {
    /// MD5.
    Md5,
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
    /// CRC-32, big-endian.
    Crc32,
    /// CRC-32C, big-endian.
    Crc32c,
    /// CRC-64/NVME, big-endian.
    Crc64Nvme,
}

/// The bytes that a [`StoredChecksum`] is of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChecksumKind {
    /// The whole content.
    Whole,
    /// The checksums of the parts that the object was uploaded in, one after another.
    Composite {
        /// Number of parts.
        count: u32,
        /// The parts, in order. Empty if the server does not state their sizes.
        parts: Vec<StoredPart>,
        /// Whether all parts but the last one are assumed to be as large as the first one, whose size alone is known.
        are_sizes_assumed: bool,
    },
}

/// A part of an object that was uploaded in several ones.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredPart {
    /// The size in bytes.
    pub size: u64,
    /// The bytes of its checksum, if the server states it.
    pub checksum: Option<Vec<u8>>,
}

impl ChecksumAlgorithm {
    /// Returns the length of a value in bytes.
    pub fn size(self) -> usize {
        match self {
            Self::Crc32 | Self::Crc32c => 4,
            Self::Crc64Nvme => 8,
            Self::Md5 => 16,
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }

    /// Returns the bits of security against accidents and changes on purpose, roughly: a number by which algorithms are compared.
    pub fn strength(self) -> usize {
        match self {
            // Collisions are made in seconds, and accidents are not.
            Self::Md5 => 65,
            Self::Sha1 => 66,
            other => other.size() * 8,
        }
    }

    /// Returns the algorithm of an element like `ChecksumSHA256` or of a header like `x-amz-checksum-sha256`.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        let lower = name.to_ascii_lowercase();
        let name =
            lower.strip_prefix("x-amz-checksum-").or_else(|| lower.strip_prefix("checksum"))?;
        NAMES.iter().find(|(known, _)| *known == name).map(|&(_, algorithm)| algorithm)
    }

    /// Reads a value in base64.
    pub(super) fn decode(self, text: &str) -> Option<Vec<u8>> {
        BASE64.decode(text.as_bytes()).ok().filter(|value| value.len() == self.size())
    }
}

impl StoredPart {
    pub(super) fn new(size: u64, checksum: Option<Vec<u8>>) -> Self {
        Self { size, checksum }
    }
}

/// Returns the checksums of the whole object in the headers of an answer, of which some are missing if it has a range. What is
/// not valid is left out.
///
/// The entity tag is an MD5 only where Amazon says so: on servers of S3, of objects that are not encrypted with keys of the owner.
pub(crate) fn of_headers(headers: &HeaderMap, is_s3: bool) -> Vec<StoredChecksum> {
    let mut found = Vec::new();
    let has_range = headers.contains_key(CONTENT_RANGE);
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    for (name, algorithm) in NAMES {
        if let Some(value) = text(&format!("x-amz-checksum-{name}")).filter(|_| !has_range) {
            let is_composite = text("x-amz-checksum-type") == Some("COMPOSITE");
            found.extend(with_count(algorithm, value, is_composite, |value| {
                algorithm.decode(value)
            }));
        }
    }
    let is_s3 = is_s3 || headers.contains_key("x-amz-request-id");
    let is_encrypted = text("x-amz-server-side-encryption")
        .is_some_and(|it| it.starts_with("aws:"))
        || headers.contains_key("x-amz-server-side-encryption-customer-algorithm");
    if is_s3 && !is_encrypted {
        let tag = text(ETAG.as_str()).and_then(|it| it.strip_prefix('"')?.strip_suffix('"'));
        let decode = |value: &str| {
            HEXLOWER_PERMISSIVE.decode(value.as_bytes()).ok().filter(|value| value.len() == 16)
        };
        found.extend(tag.and_then(|tag| with_count(ChecksumAlgorithm::Md5, tag, false, decode)));
    }
    found.extend(of_other_stores(headers, has_range));
    let mut unique = Vec::new();
    for checksum in found {
        if !unique.contains(&checksum) {
            unique.push(checksum);
        }
    }
    unique
}

/// Returns the checksums in headers of Google Cloud Storage and Azure Blob Storage.
fn of_other_stores(headers: &HeaderMap, has_range: bool) -> Vec<StoredChecksum> {
    let values =
        |name: &str| headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    let hashes = values("x-goog-hash").flat_map(|list| list.split(','));
    let hashes =
        hashes.filter_map(|pair| pair.trim().split_once('=')).filter_map(|(name, value)| {
            let algorithm = match name {
                "md5" => ChecksumAlgorithm::Md5,
                "crc32c" => ChecksumAlgorithm::Crc32c,
                _ => return None,
            };
            Some((algorithm, value))
        });
    // With a range, `Content-MD5` covers the range.
    let name = if has_range { "x-ms-blob-content-md5" } else { "content-md5" };
    let md5 = values(name).map(|value| (ChecksumAlgorithm::Md5, value.trim()));
    let whole = |(algorithm, value): (ChecksumAlgorithm, &str)| {
        let value = algorithm.decode(value)?;
        Some(StoredChecksum { algorithm, value, kind: ChecksumKind::Whole })
    };
    hashes.chain(md5).filter_map(whole).collect()
}

/// Reads a value, and the number of parts after a hyphen if it is of the checksums of parts.
fn with_count(
    algorithm: ChecksumAlgorithm,
    text: &str,
    is_composite: bool,
    decode: impl Fn(&str) -> Option<Vec<u8>>,
) -> Option<StoredChecksum> {
    let Some((value, count)) = text.rsplit_once('-') else {
        let value = decode(text).filter(|_| !is_composite)?;
        return Some(StoredChecksum { algorithm, value, kind: ChecksumKind::Whole });
    };
    let count = count.parse().ok().filter(|count| (1..=MAX_PARTS).contains(count))?;
    let kind = ChecksumKind::Composite { count, parts: Vec::new(), are_sizes_assumed: false };
    Some(StoredChecksum { algorithm, value: decode(value)?, kind })
}

const NAMES: [(&str, ChecksumAlgorithm); 5] = [
    ("sha256", ChecksumAlgorithm::Sha256),
    ("sha1", ChecksumAlgorithm::Sha1),
    ("crc64nvme", ChecksumAlgorithm::Crc64Nvme),
    ("crc32c", ChecksumAlgorithm::Crc32c),
    ("crc32", ChecksumAlgorithm::Crc32),
];

/// Maximum number of parts of an object, the limit of S3. Limit in parts.
pub(crate) const MAX_PARTS: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;
    use ChecksumAlgorithm::{Crc32, Crc32c, Crc64Nvme, Md5, Sha256};

    /// MD5, SHA-256 and CRCs of "123456789", of RFC 1321, coreutils and the catalogue of CRCs.
    const MD5: &str = "25f9e794323b453885f5181f1b624d0b";
    const MD5_64: &str = "JfnnlDI7RTiF9RgfG2JNCw==";
    const SHA256_64: &str = "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=";
    const SHA256: &str = "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225";

    fn read(
        headers: &[(&'static str, &str)],
        is_s3: bool,
    ) -> Vec<(ChecksumAlgorithm, String, Option<u32>)> {
        let mut map = HeaderMap::new();
        for &(name, value) in headers {
            map.append(name, value.parse().unwrap());
        }
        let found = of_headers(&map, is_s3).into_iter().map(|it| {
            let count = match it.kind {
                ChecksumKind::Whole => None,
                ChecksumKind::Composite { count, .. } => Some(count),
            };
            (it.algorithm, HEXLOWER_PERMISSIVE.encode(&it.value), count)
        });
        found.collect()
    }

    #[test]
    fn headers_of_amazon() {
        assert_eq!(
            read(&[("x-amz-checksum-sha256", SHA256_64)], true),
            [(Sha256, SHA256.into(), None)]
        );
        assert_eq!(
            read(&[("x-amz-checksum-crc32", "y/Q5Jg==")], true),
            [(Crc32, "cbf43926".into(), None)]
        );
        assert_eq!(
            read(&[("x-amz-checksum-crc32c", "4waSgw==")], true),
            [(Crc32c, "e3069283".into(), None)]
        );
        let crc64 =
            [("x-amz-checksum-crc64nvme", "rosUhgp5mIg="), ("x-amz-checksum-type", "FULL_OBJECT")];
        assert_eq!(read(&crc64, true), [(Crc64Nvme, "ae8b14860a799888".into(), None)]);
        let parts = format!("{SHA256_64}-3");
        let composite = [("x-amz-checksum-sha256", &*parts), ("x-amz-checksum-type", "COMPOSITE")];
        assert_eq!(read(&composite, true)[0].2, Some(3));
        let unknown = [("x-amz-checksum-sha256", SHA256_64), ("x-amz-checksum-type", "COMPOSITE")];
        assert_eq!(read(&unknown, true), []);
    }

    #[test]
    fn entity_tags_are_md5_where_amazon_says_so() {
        let tag = format!("\"{MD5}\"");
        let md5 = [(Md5, MD5.to_owned(), None)];
        assert_eq!(read(&[("etag", &tag)], true), md5);
        assert_eq!(read(&[("etag", &tag)], false), []);
        assert_eq!(read(&[("etag", &tag), ("x-amz-request-id", "1")], false), md5);
        assert_eq!(read(&[("etag", &tag), ("x-amz-server-side-encryption", "AES256")], true), md5);
        for encryption in ["aws:kms", "aws:kms:dsse"] {
            assert_eq!(
                read(&[("etag", &tag), ("x-amz-server-side-encryption", encryption)], true),
                []
            );
        }
        let customer = ("x-amz-server-side-encryption-customer-algorithm", "AES256");
        assert_eq!(read(&[("etag", &tag), customer], true), []);
        let composite = format!("\"{MD5}-10000\"");
        assert_eq!(read(&[("etag", &composite)], true), [(Md5, MD5.to_owned(), Some(10_000))]);
    }

    #[test]
    fn headers_of_other_stores() {
        let both = (
            format!("crc32c=4waSgw==,md5={MD5_64}"),
            [(Crc32c, "e3069283".to_owned(), None), (Md5, MD5.to_owned(), None)],
        );
        assert_eq!(read(&[("x-goog-hash", &both.0)], false), both.1);
        assert_eq!(read(&[("content-md5", MD5_64)], false), [(Md5, MD5.to_owned(), None)]);
        let twice = [("content-md5", MD5_64), ("x-goog-hash", &*both.0)];
        assert_eq!(read(&twice, false), both.1);
    }

    #[test]
    fn what_is_not_valid_is_left_out() {
        let tags = [
            MD5.to_owned(),
            format!("W/\"{MD5}\""),
            format!("\"{MD5}-0\""),
            format!("\"{MD5}-10001\""),
            format!("\"{MD5}-\""),
            format!("\"{}\"", &MD5[1..]),
            format!("\"{MD5}-99999999999999999999\""),
        ];
        for tag in &tags {
            assert_eq!(read(&[("etag", tag)], true), [], "{tag}");
        }
        for value in ["", "y/Q5Jg", "y/Q5JgA=", "!!!!!!==", "-1"] {
            assert_eq!(read(&[("x-amz-checksum-crc32", value)], true), [], "{value}");
        }
    }

    #[test]
    fn with_a_range_only_what_is_of_the_whole_object_counts() {
        let range = ("content-range", "bytes 0-1/9");
        assert_eq!(
            read(&[("content-md5", MD5_64), ("x-amz-checksum-crc32", "y/Q5Jg=="), range], true),
            []
        );
        let md5 = [(Md5, MD5.to_owned(), None)];
        assert_eq!(read(&[("x-ms-blob-content-md5", MD5_64), range], false), md5);
        assert_eq!(read(&[("etag", &format!("\"{MD5}\"")), range], true), md5);
    }
}
