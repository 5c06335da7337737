//! A header of LUKS2: 4096 bytes of fields, and an area of JSON after them.
//!
//! | offset | length | field, numbers in big endian |
//! |--:|--:|---|
//! | 0 | 6 | magic bytes, other ones in the secondary header |
//! | 6 | 2 | version |
//! | 8 | 8 | size of the header with its JSON in bytes |
//! | 16 | 8 | sequence id |
//! | 24 | 48 | label |
//! | 72 | 32 | name of the digest |
//! | 168 | 40 | UUID |
//! | 208 | 48 | subsystem |
//! | 256 | 8 | offset of this header |
//! | 448 | 64 | digest of the header with its JSON, with zeros in this field |

use blkhash::{Algorithm, Digester};

use crate::bytes::{be16_at, be64_at};
use crate::error::Result;
use crate::volume::Volume;

/// One of the two headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Primary,
    Secondary,
}

impl Role {
    pub fn magic(self) -> &'static [u8] {
        match self {
            Self::Primary => b"LUKS\xba\xbe",
            Self::Secondary => b"SKUL\xba\xbe",
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Primary => "primary header",
            Self::Secondary => "secondary header",
        }
    }
}

/// What is found at the place of a header.
pub(super) enum Copy {
    /// There are no magic bytes.
    Absent,
    Intact(Header),
    Mismatch {
        length: u64,
        reason: String,
    },
    /// A field is invalid on which the checksum depends.
    Damaged(String),
    /// The digest is not one that is computed here.
    Unknown(String),
}

/// An intact header.
pub(super) struct Header {
    /// Size with the JSON in bytes, which is the offset of the secondary header.
    pub size: u64,
    pub sequence: u64,
    pub uuid: Option<String>,
    pub label: Option<Vec<u8>>,
    subsystem: Vec<u8>,
    json: Vec<u8>,
}

impl Header {
    /// Returns whether another header has the same content.
    pub fn is_same(&self, other: &Self) -> bool {
        self.size == other.size
            && self.uuid == other.uuid
            && self.label == other.label
            && self.subsystem == other.subsystem
            && self.json == other.json
    }
}

impl Copy {
    /// Reads the header at `offset` and verifies its checksum.
    pub fn read(volume: &Volume, role: Role, offset: u64) -> Result<Self> {
        let Some(head) = head(volume, offset)? else { return Ok(Self::Absent) };
        if !head.starts_with(role.magic()) {
            return Ok(Self::Absent);
        }
        let version = be16_at(&head, 6).unwrap_or_default();
        if version != 2 {
            return Ok(Self::Damaged(format!("its version is {version}")));
        }
        let size = be64_at(&head, 8).unwrap_or_default();
        if !SIZES.contains(&size) {
            return Ok(Self::Damaged(format!("its size is {size}")));
        }
        let place = be64_at(&head, 256).unwrap_or_default();
        if place != offset {
            return Ok(Self::Damaged(format!("it belongs to offset {place}")));
        }
        if offset.checked_add(size).is_none_or(|end| end > volume.size()) {
            return Ok(Self::Damaged(format!("{size} bytes of it lie past the end")));
        }
        let name = text(&head, 72, 32).unwrap_or_default();
        let algorithm: Algorithm = match name.parse() {
            Ok(algorithm) => algorithm,
            Err(_) if OTHERS.contains(&name.as_str()) => {
                return Ok(Self::Unknown(format!("its checksum of {name} is not supported")));
            }
            Err(_) => return Ok(Self::Damaged(format!("its digest is called {name:?}"))),
        };
        if algorithm.digest_size() > CHECKSUM_SIZE {
            return Ok(Self::Damaged(format!("its digest is called {name:?}")));
        }
        let bytes = volume.read(offset, size as usize)?;
        Ok(Self::verify(bytes, algorithm))
    }

    fn verify(mut bytes: Vec<u8>, algorithm: Algorithm) -> Self {
        let mut stored = [0; CHECKSUM_SIZE];
        let field = &mut bytes[CHECKSUM..][..CHECKSUM_SIZE];
        stored.copy_from_slice(field);
        field.fill(0);
        let computed = Digester::new(algorithm).digest(&bytes);
        let expected = &stored[..algorithm.digest_size()];
        if computed.as_bytes() != expected {
            let hex: String = expected.iter().map(|byte| format!("{byte:02x}")).collect();
            let reason = format!("{algorithm} {computed}, stored {hex}");
            return Self::Mismatch { length: bytes.len() as u64, reason };
        }
        let json = &bytes[HEAD as usize..];
        let end = json.iter().position(|byte| *byte == 0).unwrap_or(json.len());
        Self::Intact(Header {
            size: bytes.len() as u64,
            sequence: be64_at(&bytes, 16).unwrap_or_default(),
            uuid: text(&bytes, 168, 40),
            label: field_at(&bytes, 24, 48),
            subsystem: field_at(&bytes, 208, 48).unwrap_or_default(),
            json: json[..end].to_vec(),
        })
    }
}

/// Reads the fields of a header, if the volume is long enough.
pub(super) fn head(volume: &Volume, offset: u64) -> Result<Option<Vec<u8>>> {
    if offset + HEAD > volume.size() {
        return Ok(None);
    }
    volume.read(offset, HEAD as usize).map(Some)
}

/// Returns a field up to the first zero, `None` if it is empty.
fn field_at(bytes: &[u8], at: usize, length: usize) -> Option<Vec<u8>> {
    let field = bytes.get(at..)?.get(..length)?;
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(length);
    (end > 0).then(|| field[..end].to_vec())
}

/// Returns a field like [`field_at`] as text.
pub(super) fn text(bytes: &[u8], at: usize, length: usize) -> Option<String> {
    field_at(bytes, at, length).map(|field| String::from_utf8_lossy(&field).into_owned())
}

/// Size of the fields of a header.
const HEAD: u64 = 4096;

const CHECKSUM: usize = 448;
const CHECKSUM_SIZE: usize = 64;

/// Sizes of a header with its JSON, as specified. Each is also a place of the secondary header.
pub(super) const SIZES: [u64; 9] =
    [0x4000, 0x8000, 0x1_0000, 0x2_0000, 0x4_0000, 0x8_0000, 0x10_0000, 0x20_0000, 0x40_0000];

/// Names of digests that cryptsetup may use and that are not computed here.
const OTHERS: [&str; 6] = ["ripemd160", "sm3", "stribog256", "stribog512", "whirlpool", "tiger"];
