//! What calls of the library come to.

use std::io;

/// What the library says of a failure.
#[derive(Clone, Debug)]
pub(in crate::storage::nbd) struct Fault {
    /// 0 if there is none.
    pub errno: i32,
    pub text: String,
}

impl Fault {
    pub(super) fn unknown() -> Self {
        Self { errno: 0, text: "unknown error".into() }
    }
}

/// Why a read failed: the first of its requests that did.
#[derive(Clone, Debug)]
pub(in crate::storage::nbd) struct ReadFault {
    pub offset: u64,
    pub length: usize,
    pub reason: ReadFaultReason,
}

#[derive(Clone, Debug)]
pub(in crate::storage::nbd) enum ReadFaultReason {
    /// The server's error, or that of the connection.
    Errno(i32),
    /// What is wrong with the answer.
    Malformed(&'static str),
    /// The library did not take the request.
    Refused(Fault),
}

/// Takes what the server says about extents: the context, the first byte, lengths and flags. Returns
/// about how many bytes of what was asked for it is.
pub(in crate::storage::nbd) trait ExtentSink: Send {
    fn extents(
        &mut self,
        context: &[u8],
        offset: u64,
        entries: &mut dyn Iterator<Item = (u64, u64)>,
    ) -> u64;
}

/// What the system calls an error.
pub(in crate::storage::nbd) fn errno_text(errno: i32) -> String {
    let text = io::Error::from_raw_os_error(errno).to_string();
    text.strip_suffix(&format!(" (os error {errno})")).unwrap_or(&text).to_owned()
}
