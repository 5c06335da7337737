//! Objects of JSON, one on each line, and a summary on the last one.

use blkhash::{Algorithm, BlockSize, Salt};
use serde::Deserialize;

use super::digest_text;
use super::pieces::{Form, Kind, Line, Piece};
use super::shape::Shape;

pub(super) const FORM: Form = Form { head: None, has_summary: true, parse };

/// The first bytes.
pub(super) const START: &[u8] = br#"{"type":""#;

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Record {
    Block { block: u64, offset: u64, length: u64, digest: String },
    Zeros { block: u64, offset: u64, length: u64 },
    Unknown { block: u64, offset: u64, length: u64 },
    Summary { digest: String, block_size: u64, salt: String, size: u64, content_id: Option<String> },
}

fn parse(line: &[u8]) -> Result<Line, String> {
    let record = serde_json::from_slice(line).map_err(|error| {
        let text = error.to_string();
        format!("is not an object of an export: {}", text.escape_default())
    })?;
    let (block, offset, length, kind) = match record {
        Record::Block { block, offset, length, digest } => {
            (block, offset, length, Kind::Digest(digest_text::parse(digest.as_bytes())?))
        }
        Record::Zeros { block, offset, length } => (block, offset, length, Kind::Zeros),
        Record::Unknown { block, offset, length } => (block, offset, length, Kind::Unknown),
        Record::Summary { digest, block_size, salt, size, content_id } => {
            return summary(&digest, block_size, &salt, size, content_id.as_deref());
        }
    };
    Ok(Line::Piece(Piece { block: Some(block), offset, length, kind }))
}

fn summary(
    digest: &str,
    block_size: u64,
    salt: &str,
    image_size: u64,
    content_id: Option<&str>,
) -> Result<Line, String> {
    let algorithm: Algorithm = digest.parse().map_err(|_| "an unknown digest".to_owned())?;
    let block_size = BlockSize::try_from(block_size).map_err(|error| error.to_string())?;
    let salt = match salt {
        "" => Salt::EMPTY,
        salt => salt.parse().map_err(|_| "a salt that is none".to_owned())?,
    };
    let content_id = match content_id {
        None => None,
        Some(text) => {
            let id = digest_text::parse(text.as_bytes())?;
            let id = <[u8; 32]>::try_from(id.as_bytes());
            Some(id.map_err(|_| "a content id that is none".to_owned())?)
        }
    };
    let shape = Shape { algorithm, block_size, salt, image_size, content_id };
    Ok(Line::Summary(Box::new(shape)))
}
