//! From a URI or a socket to a connection with an export chosen.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use super::NbdOptions;
use super::extents::ALLOCATION;
use super::library::{Fault, Handle, State, Tls};
use super::uri::Uri;
use crate::error::excerpt;
use crate::sys;

/// Where a server is.
pub(super) enum Server<'a> {
    Uri(&'a Uri),
    Socket(OwnedFd),
}

/// Connects, and chooses the export. The error is the reason that there is no connection.
pub(super) fn connect(server: Server<'_>, options: &NbdOptions) -> Result<Handle, String> {
    let deadline = deadline(options);
    let mut handle = prepare(&server, options)?;
    handle.add_meta_context(ALLOCATION.name).map_err(|fault| fault.text)?;
    let (uri, started) = match server {
        Server::Uri(uri) => (Some(uri), handle.connect_uri(&uri.text)),
        Server::Socket(socket) => (None, handle.connect_socket(socket)),
    };
    let negotiated = started
        .map_err(Stop::Failed)
        .and_then(|()| drive(&mut handle, deadline, |handle| handle.state() == State::Ready));
    match (negotiated, uri) {
        (Ok(()), Some(uri)) if uri.is_encrypted && !handle.is_encrypted() => {
            Err("the server does not encrypt the connection".into())
        }
        (Ok(()), _) => Ok(handle),
        (Err(Stop::Expired), _) => Err(late(options)),
        (Err(Stop::Failed(fault)), Some(uri)) => Err(explain(&fault, uri, options)),
        (Err(Stop::Failed(fault)), None) => Err(format!("cannot connect: {}", fault.text)),
    }
}

/// A handle with all that has to be known before it connects.
fn prepare(server: &Server<'_>, options: &NbdOptions) -> Result<Handle, String> {
    let handle = Handle::new()?;
    let set = || -> Result<(), Fault> {
        handle.allow_local_files(options.allow_local_files)?;
        let is_encrypted = matches!(server, Server::Uri(uri) if uri.is_encrypted);
        handle.set_tls(if is_encrypted { Tls::Require } else { Tls::Disable })?;
        if let Some(folder) = options.tls_certificates.as_ref().filter(|_| is_encrypted) {
            // A path of the command line has no NUL.
            let folder = CString::new(folder.as_os_str().as_bytes()).unwrap_or_default();
            handle.set_tls_certificates(&folder)?;
        }
        Ok(())
    };
    set().map_err(|fault| fault.text)?;
    Ok(handle)
}

/// Why negotiation ended early.
enum Stop {
    Failed(Fault),
    Expired,
}

/// Lets the library connect and negotiate until `is_done`.
fn drive(
    handle: &mut Handle,
    deadline: Option<Instant>,
    is_done: impl Fn(&Handle) -> bool,
) -> Result<(), Stop> {
    let lost = || Fault { errno: 0, text: "the server closed the connection".into() };
    loop {
        if is_done(handle) {
            return Ok(());
        }
        if handle.state() == State::Dead {
            return Err(Stop::Failed(lost()));
        }
        let direction = handle.direction();
        // A new one for every host address that is tried.
        let socket = handle.socket().ok_or_else(|| Stop::Failed(lost()))?;
        let mut events = PollFlags::empty();
        events.set(PollFlags::IN, direction.read);
        events.set(PollFlags::OUT, direction.write);
        let mut descriptor = [PollFd::new(&socket, events)];
        match sys::poll(&mut descriptor, deadline) {
            Ok(true) => {}
            Ok(false) => return Err(Stop::Expired),
            Err(error) => {
                return Err(Stop::Failed(Fault { errno: 0, text: error.to_string() }));
            }
        }
        let result = if direction.read && descriptor[0].revents() != PollFlags::OUT {
            handle.notify_read()
        } else {
            handle.notify_write()
        };
        result.map_err(Stop::Failed)?;
    }
}

/// Adds to what the library says what the user may do about it.
fn explain(fault: &Fault, uri: &Uri, options: &NbdOptions) -> String {
    // Sockets and certificates can be missing as well.
    let is_export = fault.text.starts_with("handshake:") && fault.text.contains("export");
    if is_export && fault.errno == Errno::NOENT.raw_os_error() {
        let exports = list_exports(uri, options).unwrap_or_default();
        return format!("the server has no such export{exports}: see nbdinfo --list");
    }
    format!("cannot connect: {}", fault.text)
}

/// Names of exports that the server has, in words. A server need not tell.
fn list_exports(uri: &Uri, options: &NbdOptions) -> Option<String> {
    let deadline = deadline(options);
    let mut handle = prepare(&Server::Uri(uri), options).ok()?;
    handle.set_option_mode().ok()?;
    handle.connect_uri(&uri.text).ok()?;
    drive(&mut handle, deadline, |handle| handle.state() == State::Negotiating).ok()?;
    let exports = handle.list_exports(MAX_EXPORTS).ok()?;
    drive(&mut handle, deadline, |_| exports.is_completed()).ok()?;
    let names = exports.names();
    let shown: Vec<String> = names
        .iter()
        .take(MAX_EXPORTS)
        .map(|name| format!("\"{}\"", excerpt(&name[..name.len().min(MAX_NAME)])))
        .collect();
    if shown.is_empty() {
        return None;
    }
    let more = if names.len() > shown.len() { " and more" } else { "" };
    Some(format!(", but {}{more}", shown.join(", ")))
}

/// When the server must have negotiated.
fn deadline(options: &NbdOptions) -> Option<Instant> {
    options.timeout.map(|timeout| Instant::now() + timeout)
}

fn late(options: &NbdOptions) -> String {
    let seconds = options.timeout.unwrap_or_default().as_secs_f64();
    format!("the server did not answer for {seconds} seconds")
}

/// Names of exports that an error tells.
const MAX_EXPORTS: usize = 5;

/// How much of each.
const MAX_NAME: usize = 64;
