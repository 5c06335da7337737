//! Objects of JSON, one on each line, and a summary on the last one.

use std::io::Write;

use blkhash::{Algorithm, BlockSize, Salt};
use blkmap::Map;
use serde::Deserialize;

use crate::codec::{Codec, Sink, boxed};
use crate::pieces::{self, Form, Line, Piece};
use crate::shape::Shape;
use crate::text;
use crate::walk::{self, Hex, Kind, walk};

pub(crate) const CODEC: Codec = Codec {
    name: "json",
    noun: "a list of digests",
    suffix: None,
    is_start: |head| head.starts_with(START),
    open: |file, options| pieces::open(file, FORM, options).map(boxed),
    write: Some(write),
};

const FORM: Form = Form { head: None, has_summary: true, parse };

/// The first bytes.
const START: &[u8] = br#"{"type":""#;

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
            (block, offset, length, Kind::Digest(text::digest(digest.as_bytes())?))
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
            let id = text::digest(text.as_bytes())?;
            let id = <[u8; 32]>::try_from(id.as_bytes());
            Some(id.map_err(|_| "a content id that is none".to_owned())?)
        }
    };
    let shape = Shape { algorithm, block_size, salt, image_size, content_id };
    Ok(Line::Summary(Box::new(shape)))
}

/// Writes the objects. No string needs escapes.
fn write(map: &Map, output: &mut Sink<'_>) -> blkmap::Result<()> {
    let counts = walk(map, |piece| {
        let walk::Piece { block, blocks, offset, length, kind } = piece;
        let name = match kind {
            Kind::Digest(digest) => {
                let digest = Hex(digest);
                return writeln!(
                    output,
                    r#"{{"type":"block","block":{block},"offset":{offset},"length":{length},"digest":"{digest}"}}"#
                );
            }
            Kind::Zeros => "zeros",
            Kind::Unknown => "unknown",
        };
        writeln!(
            output,
            r#"{{"type":"{name}","block":{block},"blocks":{blocks},"offset":{offset},"length":{length}}}"#
        )
    })?;
    let (header, commit) = (map.header(), map.commit());
    let hash = |hash: Option<[u8; 32]>| {
        hash.map_or_else(|| "null".to_owned(), |hash| format!("\"{}\"", Hex(&hash)))
    };
    writeln!(
        output,
        r#"{{"type":"summary","digest":"{}","block_size":{},"salt":"{}","size":{},"blocks":{},"data_blocks":{},"zero_blocks":{},"unknown_blocks":{},"root":{},"content_id":{}}}"#,
        header.algorithm.name(),
        header.block_size.get(),
        Hex(header.salt.as_bytes()),
        commit.image_size(),
        commit.blocks(),
        counts.data,
        counts.zeros,
        counts.unknown,
        hash(commit.root()),
        hash(commit.content_id(header)),
    )?;
    Ok(())
}
