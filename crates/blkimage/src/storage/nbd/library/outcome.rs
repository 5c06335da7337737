//! Results of calls of the library.

use std::io;

/// An error of the library.
#[derive(Clone, Debug)]
pub(in crate::storage::nbd) struct Fault {
    /// The errno value, or 0 if there is none.
    pub errno: i32,
    pub text: String,
}

impl Fault {
    pub(super) fn unknown() -> Self {
        Self { errno: 0, text: "unknown error".into() }
    }
}

/// The failure of the first failed request of a transfer.
#[derive(Clone, Debug)]
pub(in crate::storage::nbd) struct ReadFault {
    pub offset: u64,
    pub length: u64,
    pub reason: ReadFaultReason,
}

#[derive(Clone, Debug)]
pub(in crate::storage::nbd) enum ReadFaultReason {
    /// Error of the server or the connection.
    Errno(i32),
    /// Description of an invalid reply.
    Malformed(&'static str),
    /// Error of the library, which did not accept the request.
    Refused(Fault),
}

/// Takes the extents that the server reports: the context, the first byte, lengths and flags. Returns
/// the number of requested bytes that they describe.
pub(in crate::storage::nbd) trait ExtentSink: Send {
    fn extents(
        &mut self,
        context: &[u8],
        offset: u64,
        entries: &mut dyn Iterator<Item = (u64, u64)>,
    ) -> u64;
}

/// Returns the system's description of an error.
pub(in crate::storage::nbd) fn errno_text(errno: i32) -> String {
    let text = io::Error::from_raw_os_error(errno).to_string();
    text.strip_suffix(&format!(" (os error {errno})")).unwrap_or(&text).to_owned()
}
