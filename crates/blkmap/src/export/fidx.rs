//! The fixed index of a Proxmox backup. [`crate::foreign`] has the fields.
//!
//! The header has a digest of all digests, so the map is walked twice.

use std::io::Write;

use blkhash::{Algorithm, Digester};

use super::digests;
use crate::bytes::put;
use crate::foreign::fidx::{CHECKSUM, CHUNK_SIZE, HEADER, MAGIC, SIZE, UUID};
use crate::{Error, Map, Result};

pub(super) fn write(map: &Map, output: &mut impl Write) -> Result<()> {
    let (parameters, commit) = (map.header(), map.commit());
    digests::check(map, "Proxmox")?;
    if parameters.algorithm != Algorithm::Sha256 {
        let reason = format!("has digests of {}, and .fidx has sha256", parameters.algorithm);
        return Err(Error::Unsupported(reason));
    }
    let mut whole = Digester::new(Algorithm::Sha256).start();
    digests::each(map, |digest| {
        whole.update(digest);
        Ok(())
    })?;
    let mut header = [0; HEADER];
    put(&mut header, 0, &MAGIC);
    put(&mut header, UUID, &uuid(&commit.content_id(parameters).unwrap_or_default()));
    put(&mut header, CHECKSUM, whole.finalize().as_bytes());
    put(&mut header, SIZE, &commit.image_size.to_le_bytes());
    put(&mut header, CHUNK_SIZE, &u64::from(parameters.block_size).to_le_bytes());
    output.write_all(&header)?;
    digests::write(map, output)
}

/// Returns the first bytes of a content id as a UUID of version 8, so that equal content has equal indexes.
fn uuid(id: &[u8; 32]) -> [u8; 16] {
    let mut uuid = [0; 16];
    uuid.copy_from_slice(&id[..16]);
    uuid[6] = 0x80 | (uuid[6] & 0x0f);
    uuid[8] = 0x80 | (uuid[8] & 0x3f);
    uuid
}
