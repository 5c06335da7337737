//! The result of `blkhash.copy()` and `apply_delta()`.

use blkcopy::{Amounts, Copied, Verify};
use blkimage::ReadMethod;
use pyo3::prelude::*;

use crate::types;

/// The result of a copy.
pub struct Done {
    pub copied: Copied,
    pub format: &'static str,
    pub verify: Verify,
}

impl Done {
    pub fn into_result(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let Self { copied, format, verify } = self;
        let Copied { digests, size, amounts, read_back, destination_size, .. } = copied;
        let all = Amounts { written: size, ..Amounts::default() };
        let Amounts { written, zeroed, equal, shared, .. } = amounts.unwrap_or(all);
        let checksum = digests[0].to_string();
        let verified = match verify {
            Verify::ReadBack => "readback",
            Verify::Source => "source",
        };
        let read_back = read_back.map(ReadMethod::name);
        types::COPIED.make(
            py,
            (
                checksum,
                size,
                format,
                written,
                zeroed,
                equal,
                verified,
                read_back,
                destination_size,
                shared,
            ),
        )
    }
}
