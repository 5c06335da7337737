//! Writes bmaps.
//!
//! A range is one block, so that bmaptool names a difference exactly. Blocks of zeros are in no range. bmaptool
//! does not write them, so a device that held other data keeps it there.
//!
//! The file has the number of ranges and its own checksum before the ranges. The map is therefore walked three
//! times instead of keeping the file in memory.

use std::io::{self, Write};

use blkhash::{Digester, State};
use blkmap::{Error, Map, Result};

use super::names::DIGESTS;
use crate::codec::Sink;
use crate::digests;
use crate::walk::{Hex, Kind, walk};

pub(super) fn write(map: &Map, output: &mut Sink<'_>) -> Result<()> {
    digests::check(map, "bmaptool")?;
    if map.commit().blocks() == 0 {
        return Err(Error::Unsupported("is of an empty image, which bmaptool refuses".into()));
    }
    let algorithm = map.header().algorithm;
    let Some((_, name)) = DIGESTS.into_iter().find(|(known, _)| *known == algorithm) else {
        let names = DIGESTS.map(|(_, name)| name).join(", ");
        let reason = format!("has digests of {algorithm}, but bmaptool knows only {names}");
        return Err(Error::Unsupported(reason));
    };
    let mapped = walk(map, |_| Ok(()))?.data;
    let zeros = vec![0; algorithm.digest_size()];
    let mut hashing = Hashing(Digester::new(algorithm).start());
    write_with(map, name, mapped, &zeros, &mut hashing)?;
    write_with(map, name, mapped, hashing.0.finalize().as_bytes(), output)
}

/// Writes the file with this checksum of its own.
fn write_with(
    map: &Map,
    name: &str,
    mapped: u64,
    checksum: &[u8],
    output: &mut impl Write,
) -> Result<()> {
    let (header, commit) = (map.header(), map.commit());
    writeln!(output, "<?xml version=\"1.0\" ?>")?;
    writeln!(output, "<bmap version=\"2.0\">")?;
    writeln!(output, "    <ImageSize> {} </ImageSize>", commit.image_size())?;
    writeln!(output, "    <BlockSize> {} </BlockSize>", header.block_size.get())?;
    writeln!(output, "    <BlocksCount> {} </BlocksCount>", commit.blocks())?;
    writeln!(output, "    <MappedBlocksCount> {mapped} </MappedBlocksCount>")?;
    writeln!(output, "    <ChecksumType> {name} </ChecksumType>")?;
    writeln!(output, "    <BmapFileChecksum> {} </BmapFileChecksum>", Hex(checksum))?;
    writeln!(output, "    <BlockMap>")?;
    walk(map, |piece| match piece.kind {
        Kind::Digest(digest) => {
            let (block, digest) = (piece.block, Hex(digest));
            writeln!(output, "        <Range chksum=\"{digest}\"> {block} </Range>")
        }
        Kind::Zeros | Kind::Unknown => Ok(()),
    })?;
    writeln!(output, "    </BlockMap>")?;
    writeln!(output, "</bmap>")?;
    Ok(())
}

/// A writer that hashes.
struct Hashing(State);

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
