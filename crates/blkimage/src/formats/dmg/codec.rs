//! Compression of runs. Each must become as many bytes as its sectors have, and bytes behind its end do not matter, as in QEMU.

use super::adc;

/// The compression of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    Adc,
    Zlib,
    Bzip2,
    Lzfse,
    Xz,
}

impl Codec {
    /// Returns the compression of a type of runs.
    pub fn of(kind: u32) -> Option<Self> {
        Some(match kind {
            0x8000_0004 => Self::Adc,
            0x8000_0005 => Self::Zlib,
            0x8000_0006 => Self::Bzip2,
            0x8000_0007 => Self::Lzfse,
            0x8000_0008 => Self::Xz,
            _ => return None,
        })
    }

    /// Fills `out` with the content of a run. Fails with the reason.
    pub fn decode(self, input: &[u8], out: &mut [u8]) -> Result<(), &'static str> {
        let decoded = match self {
            Self::Adc => adc::decode(input, out),
            Self::Zlib => {
                let count = libdeflater::Decompressor::new().zlib_decompress(input, out).ok();
                count.filter(|count| *count == out.len()).map(drop)
            }
            Self::Bzip2 => optional::bzip2(input, out)?,
            Self::Lzfse => optional::lzfse(input, out)?,
            Self::Xz => optional::xz(input, out)?,
        };
        decoded.ok_or("cannot be decompressed")
    }
}

#[cfg(feature = "compressed")]
mod optional {
    use std::io::Read;

    use bzip2::{Decompress, Status};
    use liblzma::stream::{Action, Error, Status as XzStatus, Stream};
    use lzfse_rust::LzfseRingDecoder;

    type Decoded = Result<Option<()>, &'static str>;

    pub fn bzip2(input: &[u8], out: &mut [u8]) -> Decoded {
        let mut stream = Decompress::new(false);
        let is_end = matches!(stream.decompress(input, out), Ok(Status::StreamEnd));
        Ok((is_end && stream.total_out() == out.len() as u64).then_some(()))
    }

    pub fn lzfse(input: &[u8], out: &mut [u8]) -> Decoded {
        let mut decoder = LzfseRingDecoder::default();
        let mut reader = decoder.reader_bytes(input);
        let is_whole = reader.read_exact(out).is_ok() && matches!(reader.read(&mut [0]), Ok(0));
        Ok(is_whole.then_some(()))
    }

    pub fn xz(input: &[u8], out: &mut [u8]) -> Decoded {
        let stream = Stream::new_stream_decoder(MAX_MEMORY, 0);
        let mut stream = stream.map_err(|_| "takes more memory than there is")?;
        match stream.process(input, out, Action::Finish) {
            Ok(XzStatus::StreamEnd) => Ok((stream.total_out() == out.len() as u64).then_some(())),
            Err(Error::MemLimit) => Err("needs a larger dictionary than is allowed"),
            _ => Ok(None),
        }
    }

    /// Maximum memory for an xz stream of a dmg image, which `xz -9` needs. Each thread may need as much.
    /// Limit in bytes.
    const MAX_MEMORY: u64 = 66 << 20;
}

#[cfg(not(feature = "compressed"))]
mod optional {
    const LACKS: &str = "is compressed in a way that this build does not read";

    pub fn bzip2(_input: &[u8], _out: &mut [u8]) -> Result<Option<()>, &'static str> {
        Err(LACKS)
    }

    pub use bzip2 as lzfse;
    pub use bzip2 as xz;
}
