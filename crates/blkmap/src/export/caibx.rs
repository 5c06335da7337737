//! The index of a file in a chunk store of casync, as `casync make --chunk-size=SIZE:SIZE:SIZE` writes it.
//! [`crate::foreign`] has the fields.

use std::io::Write;

use blkhash::Algorithm;

use super::digests;
use crate::foreign::caibx::{header_of, tail_of};
use crate::{Error, Map, Result};

pub(super) fn write(map: &Map, output: &mut impl Write) -> Result<()> {
    let (parameters, commit) = (map.header(), map.commit());
    digests::check(map, "casync")?;
    if !matches!(parameters.algorithm, Algorithm::Sha512_256 | Algorithm::Sha256) {
        let reason = format!(
            "has digests of {}, and casync knows only sha512-256 and sha256",
            parameters.algorithm
        );
        return Err(Error::Unsupported(reason));
    }
    output.write_all(&header_of(parameters.algorithm, parameters.block_size))?;
    let mut end = 0_u64;
    digests::each(map, |digest| {
        end = end.saturating_add(parameters.block_size.into()).min(commit.image_size);
        output.write_all(&end.to_le_bytes())?;
        Ok(output.write_all(digest)?)
    })?;
    Ok(output.write_all(&tail_of(commit.blocks))?)
}
