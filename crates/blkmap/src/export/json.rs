//! JSON objects, one on each line. No string needs escapes.

use std::io::Write;

use super::{Hex, Kind, walk};
use crate::{Map, Result};

pub(super) fn write(map: &Map, output: &mut impl Write) -> Result<()> {
    let counts = walk(map, |piece| {
        let super::Piece { block, blocks, offset, length, kind } = piece;
        let name = match kind {
            Kind::Data(digest) => {
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
        commit.image_size,
        commit.blocks,
        counts.data,
        counts.zeros,
        counts.unknown,
        hash(commit.root),
        hash(commit.content_id(header)),
    )?;
    Ok(())
}
