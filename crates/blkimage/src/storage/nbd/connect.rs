//! Opens connections from a URI or a socket, up to the choice of an export.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use super::extents::{ALLOCATION, MetaContext};
use super::library::{Fault, Handle, State, Tls};
use super::options::NbdOptions;
use super::talk::{Excess, Talk};
use super::tls::Trust;
use super::uri::Uri;
use crate::error::excerpt;
use crate::hint::Hint;
use crate::sys;

/// The address of a server.
pub(super) enum Server<'a> {
    Uri(&'a Uri),
    #[cfg_attr(not(feature = "qemu-nbd"), allow(dead_code))]
    Socket(OwnedFd),
}

/// The reason why there is no connection.
pub(super) struct NotConnected {
    pub reason: String,
    pub hint: Option<Hint>,
}

impl From<String> for NotConnected {
    fn from(reason: String) -> Self {
        Self { reason, hint: None }
    }
}

/// Connects and chooses the export.
pub(super) fn connect(server: Server<'_>, options: &NbdOptions) -> Result<Handle, NotConnected> {
    let mut attempt = Attempt::prepare(&server, options)?;
    let bitmap = options.bitmap.as_deref().and_then(MetaContext::of_bitmap);
    for context in [ALLOCATION].into_iter().chain(bitmap) {
        attempt.handle.add_meta_context(&context.name).map_err(|fault| fault.text)?;
    }
    let (uri, started) = match server {
        Server::Uri(uri) => (Some(uri), attempt.handle.connect_uri(&uri.text)),
        Server::Socket(socket) => (None, attempt.connect_socket(socket)),
    };
    let negotiated = started
        .map_err(Stop::Failed)
        .and_then(|()| attempt.drive(|handle| handle.state() == State::Ready));
    match (negotiated, uri) {
        (Ok(()), Some(uri)) if uri.is_encrypted => {
            attempt.check_encryption()?;
            Ok(attempt.end())
        }
        (Ok(()), _) => Ok(attempt.end()),
        (Err(Stop::Excess(Excess::TooLate)), _) => {
            Err(NotConnected { reason: late(options), hint: Some(Hint::Timeout) })
        }
        (Err(Stop::Excess(Excess::TooMuch)), _) => {
            Err("the server does not come to the end of its greeting".to_owned().into())
        }
        (Err(Stop::Failed(fault)), Some(uri)) => Err(attempt.explain(&fault, uri, options).into()),
        (Err(Stop::Failed(fault)), None) => Err(format!("cannot connect: {}", fault.text).into()),
    }
}

/// A connection that is being made.
struct Attempt {
    handle: Handle,
    talk: Arc<Talk>,
    had_debug: bool,
    /// Authentication of the server. `None` without TLS.
    trust: Option<Trust>,
}

/// The reason why negotiation ended early.
enum Stop {
    Failed(Fault),
    Excess(Excess),
}

impl Attempt {
    /// Creates a handle with all settings that are needed before it connects.
    fn prepare(server: &Server<'_>, options: &NbdOptions) -> Result<Self, String> {
        let handle = Handle::new()?;
        let trust = match server {
            Server::Uri(uri) if uri.is_encrypted => {
                Some(Trust::find(uri, options, &handle.version())?)
            }
            _ => None,
        };
        let talk = Arc::new(Talk::new(options.timeout.map(|timeout| Instant::now() + timeout)));
        let set = || -> Result<bool, Fault> {
            // The names of files were removed from the URI.
            handle.allow_local_files(false)?;
            handle.set_tls(if trust.is_some() { Tls::Require } else { Tls::Disable })?;
            if let Some(trust) = &trust {
                trust.apply(&handle)?;
            }
            handle.watch(&talk)
        };
        let had_debug = set().map_err(|fault| fault.text)?;
        Ok(Self { handle, talk, had_debug, trust })
    }

    fn connect_socket(&self, socket: OwnedFd) -> Result<(), Fault> {
        if let Ok(socket) = socket.try_clone() {
            self.talk.watch(socket);
        }
        self.handle.connect_socket(socket)
    }

    /// Runs the library until `is_done` returns `true`.
    fn drive(&mut self, is_done: impl Fn(&Handle) -> bool) -> Result<(), Stop> {
        let result = self.drive_on(is_done);
        // The library's error about a socket that was shut down here is not the cause.
        match self.talk.excess() {
            Some(excess) if result.is_err() => Err(Stop::Excess(excess)),
            _ => result,
        }
    }

    fn drive_on(&mut self, is_done: impl Fn(&Handle) -> bool) -> Result<(), Stop> {
        let lost = || Fault { errno: 0, text: "the server closed the connection".into() };
        loop {
            if is_done(&self.handle) {
                return Ok(());
            }
            if self.handle.state() == State::Dead {
                return Err(Stop::Failed(lost()));
            }
            // The server may send without a pause.
            if self.talk.is_late() {
                return Err(Stop::Excess(Excess::TooLate));
            }
            let direction = self.handle.direction();
            // There is a new socket for every address of the host.
            let socket = self.handle.socket().ok_or_else(|| Stop::Failed(lost()))?;
            let mut events = PollFlags::empty();
            events.set(PollFlags::IN, direction.read);
            events.set(PollFlags::OUT, direction.write);
            let mut descriptor = [PollFd::new(&socket, events)];
            match sys::poll(&mut descriptor, self.talk.deadline()) {
                Ok(true) => {}
                Ok(false) => return Err(Stop::Excess(Excess::TooLate)),
                Err(error) => {
                    return Err(Stop::Failed(Fault { errno: 0, text: error.to_string() }));
                }
            }
            let can_read = direction.read && descriptor[0].revents() != PollFlags::OUT;
            self.talk.watch(socket);
            let result =
                if can_read { self.handle.notify_read() } else { self.handle.notify_write() };
            result.map_err(Stop::Failed)?;
        }
    }

    /// Fails unless the library authenticated the server as required.
    fn check_encryption(&self) -> Result<(), String> {
        if !self.handle.is_encrypted() {
            return Err("the server does not encrypt the connection".into());
        }
        let holds = self.trust.as_ref().is_some_and(Trust::holds);
        if !holds || !self.handle.verifies_peer() {
            return Err("the server's certificate was not checked: ca-cert.pem has changed".into());
        }
        Ok(())
    }

    /// Returns the connection and ends the reports of the library.
    fn end(self) -> Handle {
        self.handle.unwatch(self.had_debug);
        self.handle
    }

    /// Turns an error of the library into a message with advice for the user.
    fn explain(&self, fault: &Fault, uri: &Uri, options: &NbdOptions) -> String {
        // Sockets and certificates can be missing as well.
        let is_export = fault.text.starts_with("handshake:") && fault.text.contains("export");
        if is_export && fault.errno == Errno::NOENT.raw_os_error() {
            let exports = list_exports(uri, options).unwrap_or_default();
            return format!("the server has no such export{exports}: see nbdinfo --list");
        }
        match &self.trust {
            Some(trust) if fault.text.starts_with("gnutls_") => {
                let demand = trust.demand();
                format!("TLS does not know the server: {demand} ({})", fault.text)
            }
            _ => format!("cannot connect: {}", fault.text),
        }
    }
}

/// Returns the names of some exports for a message. A server need not list them.
fn list_exports(uri: &Uri, options: &NbdOptions) -> Option<String> {
    let mut attempt = Attempt::prepare(&Server::Uri(uri), options).ok()?;
    attempt.handle.set_option_mode().ok()?;
    attempt.handle.connect_uri(&uri.text).ok()?;
    attempt.drive(|handle| handle.state() == State::Negotiating).ok()?;
    if attempt.trust.is_some() {
        attempt.check_encryption().ok()?;
    }
    let exports = attempt.handle.list_exports(MAX_EXPORTS).ok()?;
    let listed = attempt.drive(|_| exports.is_completed());
    let names = exports.names();
    // If the list is too long, its beginning is enough.
    if listed.is_err() && names.len() <= MAX_EXPORTS {
        return None;
    }
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

fn late(options: &NbdOptions) -> String {
    let seconds = options.timeout.unwrap_or_default().as_secs_f64();
    format!("the server did not answer for {seconds} seconds")
}

/// Maximum number of exports of a server in a message.
/// Limit in exports.
const MAX_EXPORTS: usize = 5;

/// Maximum length of the name of an export in a message.
/// Limit in bytes.
const MAX_NAME: usize = 64;
