//! Compressed clusters. Accepts the streams that QEMU accepts, and a few invalid codes at which its zlib stops and
//! libdeflate continues.
//!
//! Decoders and their buffers are pooled, one for each concurrent reader. Each keeps the cluster that
//! it decompressed last for callers that read it in pieces. Output is limited to one cluster, whatever
//! the stream contains.

use std::sync::{Mutex, MutexGuard, PoisonError};

use flate2::{Decompress, FlushDecompress};
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, ResetDirective};

use crate::error::Result;
use crate::layer::Stored;
use crate::storage::HostFile;

/// The compression of clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    /// Raw deflate.
    Deflate,
    /// Deflate with a header and a checksum, which is verified.
    Zlib,
    Zstd,
}

impl Compression {
    /// Returns the name, which differs from all others.
    pub fn name(self) -> &'static str {
        match self {
            Self::Deflate => "deflate",
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
        }
    }
}

/// A compressed cluster.
#[derive(Clone, Copy)]
pub(crate) struct Cluster<'a> {
    pub file: &'a HostFile,
    /// Offset in the file, and the maximum number of compressed bytes.
    pub stored: Stored,
    pub compression: Compression,
    /// Size of the decompressed cluster in bytes.
    pub size: usize,
    /// Minimum number of bytes that the stream must hold. Less than `size` if the disk ends within the
    /// cluster. Bytes past the end of the stream are undefined.
    pub least: usize,
}

/// The decoders of a chain.
#[derive(Default)]
pub(crate) struct Decoders {
    free: Mutex<Vec<Decoder>>,
}

impl Decoders {
    /// Fills `buf` with the bytes of `cluster` from `within` on. The cluster belongs to
    /// layer `layer` of the chain.
    pub fn read(
        &self,
        layer: u32,
        cluster: Cluster<'_>,
        buf: &mut [u8],
        within: usize,
    ) -> Result<()> {
        let mut decoder = self.lock().pop().unwrap_or_default();
        let result = decoder.read(layer, cluster, buf, within);
        let mut free = self.lock();
        if free.len() < MAX_FREE {
            free.push(decoder);
        }
        result
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Decoder>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
struct Decoder {
    codecs: Codecs,
    input: Vec<u8>,
    cluster: Vec<u8>,
    /// Layer and compressed range of the content of `cluster`.
    held: Option<(u32, Stored)>,
}

impl Decoder {
    fn read(
        &mut self,
        layer: u32,
        cluster: Cluster<'_>,
        buf: &mut [u8],
        within: usize,
    ) -> Result<()> {
        if buf.len() == cluster.size {
            return self.decode(cluster, buf);
        }
        if self.held != Some((layer, cluster.stored)) {
            self.held = None;
            let mut scratch = std::mem::take(&mut self.cluster);
            scratch.resize(cluster.size, 0);
            let result = self.decode(cluster, &mut scratch);
            self.cluster = scratch;
            result?;
            self.held = Some((layer, cluster.stored));
        }
        buf.copy_from_slice(&self.cluster[within..within + buf.len()]);
        Ok(())
    }

    fn decode(&mut self, cluster: Cluster<'_>, out: &mut [u8]) -> Result<()> {
        let Cluster { file, stored: Stored { offset, length }, compression, least, .. } = cluster;
        // The length is rounded up to sectors, but the file may end within a sector.
        let length = length.min(file.size().saturating_sub(offset));
        if length == 0 {
            let reason = "compressed cluster lies past the end of the file";
            return Err(file.corrupt(reason).at(offset));
        }
        self.input.resize(length as usize, 0);
        file.read_exact_at(&mut self.input, offset)?;
        self.codecs
            .decompress(compression, &self.input, out, least)
            .map_err(|Damaged| file.corrupt("compressed cluster cannot be decompressed").at(offset))
    }
}

/// The error for a stream that does not fill its cluster.
#[derive(Debug, PartialEq, Eq)]
struct Damaged;

/// Decoder states, each allocated on first use.
#[derive(Default)]
struct Codecs {
    deflate: Option<libdeflater::Decompressor>,
    zstd: Option<DCtx<'static>>,
}

impl Codecs {
    fn decompress(
        &mut self,
        compression: Compression,
        input: &[u8],
        out: &mut [u8],
        least: usize,
    ) -> Result<(), Damaged> {
        match compression {
            Compression::Deflate => self.inflate(input, out),
            Compression::Zlib => self.inflate_zlib(input, out, least),
            Compression::Zstd => self.decompress_zstd(input, out),
        }
    }

    fn inflate(&mut self, input: &[u8], out: &mut [u8]) -> Result<(), Damaged> {
        let fast = self.deflate.get_or_insert_with(libdeflater::Decompressor::new);
        match fast.deflate_decompress(input, out) {
            Ok(count) if count == out.len() => Ok(()),
            Ok(_) => Err(Damaged),
            // libdeflate requires the whole stream. QEMU stops when the cluster is full.
            Err(_) => inflate_until_full(input, out),
        }
    }

    /// Requires a whole stream that fits into the cluster, with the right checksum, as in QEMU.
    fn inflate_zlib(&mut self, input: &[u8], out: &mut [u8], least: usize) -> Result<(), Damaged> {
        let fast = self.deflate.get_or_insert_with(libdeflater::Decompressor::new);
        match fast.zlib_decompress(input, out) {
            Ok(count) if count >= least => Ok(()),
            _ => Err(Damaged),
        }
    }

    /// Decompresses frame after frame until the cluster is full, as in QEMU. The last frame must be
    /// complete. Bytes after it are padding.
    fn decompress_zstd(&mut self, input: &[u8], out: &mut [u8]) -> Result<(), Damaged> {
        let context = match &mut self.zstd {
            Some(context) => context,
            none => none.insert(zstd_context()?),
        };
        context.reset(ResetDirective::SessionOnly).map_err(|_| Damaged)?;
        let size = out.len();
        let mut input = InBuffer::around(input);
        let mut output = OutBuffer::around(out);
        let mut missing = 0;
        while output.pos() < size {
            let before = (input.pos, output.pos());
            missing = context.decompress_stream(&mut output, &mut input).map_err(|_| Damaged)?;
            if (input.pos, output.pos()) == before {
                return Err(Damaged);
            }
        }
        if missing == 0 { Ok(()) } else { Err(Damaged) }
    }
}

/// Accepts a stream that continues after `out` is full, or is cut off there.
fn inflate_until_full(input: &[u8], out: &mut [u8]) -> Result<(), Damaged> {
    let mut inflate = Decompress::new(false);
    let status = inflate.decompress(input, out, FlushDecompress::Finish);
    let is_full = inflate.total_out() == out.len() as u64;
    if status.is_ok() && is_full { Ok(()) } else { Err(Damaged) }
}

/// Returns a context that decompresses directly into the cluster. It needs no window buffer, for which
/// a stream could request 128 MiB.
fn zstd_context() -> Result<DCtx<'static>, Damaged> {
    let mut context = DCtx::try_create().ok_or(Damaged)?;
    context.set_parameter(DParameter::StableOutBuffer(true)).map_err(|_| Damaged)?;
    Ok(context)
}

/// Maximum number of idle decoders. With more threads, some decoders are allocated again.
const MAX_FREE: usize = 64;

#[cfg(test)]
mod tests;
