//! The client: one thread for all connections of a process.

mod connect;
mod pool;
mod reply;
mod runtime;
mod tls;

use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, HeaderValue, PROXY_AUTHORIZATION};
use http::{Request, Uri};
use http_body_util::Full;
use hyper_util::client::proxy::matcher::Matcher;
use tokio::runtime::Handle;

pub(crate) use reply::Reply;

use crate::answer::Answer;
use crate::error::Fault;
use crate::retry::Backoff;
use crate::sign::Signer;
use crate::url::Origin;
use crate::{Error, ErrorKind, HttpOptions, Result, Url};

/// Connections with one set of certificate authorities. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Client {
    shared: Arc<Shared>,
    handle: Handle,
}

struct Shared {
    /// The process whose connections these are.
    process: u32,
    tls_ca: Option<PathBuf>,
    proxies: Matcher,
    pool: pool::Pool,
}

/// How a small request is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// Maximum time in which the server may be silent, and that connecting may take. `None` waits forever.
    pub timeout: Option<Duration>,
    /// Maximum number of attempts after the first one failed because the server is unreachable or busy.
    pub retries: u32,
    /// Whether a proxy of the environment is used.
    pub proxy: bool,
}

impl Client {
    /// Returns a client. The first one of a process starts the thread.
    ///
    /// # Errors
    ///
    /// Fails if the file of certificate authorities cannot be read or the thread cannot start.
    pub fn new(url: &Url, options: &HttpOptions) -> Result<Self> {
        static CLIENTS: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());
        let handle = runtime::handle().map_err(|e| {
            Error::new(ErrorKind::Unavailable, url, format!("cannot start a thread: {e}"))
        })?;
        if url.is_encrypted() || options.tls_ca.is_some() {
            // Later is too late to say that there are none.
            tls::config(options.tls_ca.as_deref())
                .map_err(|reason| Error::new(ErrorKind::Connect, url, reason))?;
        }
        let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|client| client.strong_count() > 0);
        let known = clients.iter().filter_map(Weak::upgrade);
        let process = std::process::id();
        let is_same =
            |shared: &Arc<Shared>| shared.process == process && shared.tls_ca == options.tls_ca;
        let same = known.into_iter().find(is_same);
        let shared = same.unwrap_or_else(|| {
            let shared = Arc::new(Shared {
                process,
                tls_ca: options.tls_ca.clone(),
                proxies: proxies(),
                pool: pool::Pool::default(),
            });
            clients.push(Arc::downgrade(&shared));
            shared
        });
        Ok(Self { shared, handle })
    }

    /// Returns the handle of the thread.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Sends a small request, blocks, and returns the answer, whatever its status is, after as many attempts as the terms allow.
    /// Redirects are not followed.
    ///
    /// Must not be called on the thread of the client. Errors are about `url`, which may be another one than the URL of
    /// the request.
    ///
    /// # Errors
    ///
    /// Fails if the URI is not absolute, the server cannot be reached, or the body is longer than 1 MiB.
    pub fn request(
        &self,
        url: &Url,
        request: &Request<Bytes>,
        signer: Option<&dyn Signer>,
        terms: Terms,
    ) -> Result<Answer> {
        let target: Url = request.uri().to_string().parse()?;
        let mut backoff = Backoff::new(terms.retries);
        loop {
            let mut signed = request.clone();
            if let Some(signer) = signer {
                if signer.is_stale() {
                    signer.renew()?;
                }
                let (mut parts, body) = signed.into_parts();
                signer.sign(&mut parts)?;
                signed = Request::from_parts(parts, body);
            }
            let (client, origin) = (self.clone(), target.origin());
            let (sender, receiver) = tokio::sync::oneshot::channel();
            self.handle.spawn(async move {
                let whole = async {
                    let (reply, _) =
                        client.exchange(&origin, signed, terms.timeout, terms.proxy).await?;
                    reply.whole().await
                };
                let _ = sender.send(whole.await);
            });
            let received = receiver.blocking_recv().unwrap_or_else(|_| {
                Err(Fault::Final(ErrorKind::Unavailable, "the client ended".to_owned()))
            });
            let asked = match &received {
                Ok(answer) if !Backoff::is_temporary(answer.status) => None,
                Ok(answer) => Some(Backoff::wait_of(&answer.headers)),
                Err(Fault::Temporary { wait, .. }) => Some(*wait),
                Err(Fault::Final(..)) => None,
            };
            match asked.and_then(|asked| backoff.next(asked)) {
                Some(wait) => thread::sleep(wait),
                None => return received.map_err(|fault| fault.into_error(url)),
            }
        }
    }

    /// Sends one request, whose URI is absolute, and returns the answer when its headers are there, and whether it took a new
    /// connection.
    ///
    /// A connection that the server closed while it was idle is no fault: the request is sent on a new one.
    pub async fn exchange(
        &self,
        origin: &Origin,
        request: Request<Bytes>,
        timeout: Option<Duration>,
        proxy: bool,
    ) -> Result<(Reply, bool), Fault> {
        let key = pool::Key { origin: origin.clone(), proxy };
        if let Some(mut lease) = self.shared.pool.take(&key) {
            let sent = send(&mut lease, &request, origin, timeout).await;
            match sent {
                Ok(answer) => return Ok((Reply::new(answer, lease, timeout), false)),
                Err(Sent::Fault(fault)) => return Err(fault),
                Err(Sent::Broken(_)) => {}
            }
        }
        let tls = if origin.is_encrypted {
            let config = tls::config(self.shared.tls_ca.as_deref());
            Some(config.map_err(|reason| Fault::Final(ErrorKind::Connect, reason))?)
        } else {
            None
        };
        let proxies = proxy.then_some(&self.shared.proxies);
        let connecting = connect::connect(origin, proxies, tls);
        let connected = match timeout {
            None => connecting.await?,
            Some(timeout) => match tokio::time::timeout(timeout, connecting).await {
                Ok(connected) => connected?,
                Err(_) => {
                    let seconds = timeout.as_secs_f32();
                    let reason = format!("cannot connect to {origin} within {seconds} seconds");
                    return Err(Fault::unreachable(reason));
                }
            },
        };
        let mut lease = self.shared.pool.lease(key, connected);
        match send(&mut lease, &request, origin, timeout).await {
            Ok(answer) => Ok((Reply::new(answer, lease, timeout), true)),
            Err(Sent::Fault(fault) | Sent::Broken(fault)) => Err(fault),
        }
    }
}

/// Reads the certificate authorities that the options name, or the system's, so that connections need no file later.
///
/// A program that gives up the right to open files calls this before.
///
/// # Errors
///
/// Fails with the reason if there are none.
pub fn prepare(options: &HttpOptions) -> Result<(), String> {
    tls::config(options.tls_ca.as_deref()).map(|_| ())
}

/// Returns the proxies of the environment. As in curl, `no_proxy` with an asterisk alone is all hosts.
fn proxies() -> Matcher {
    let mut exceptions = ["no_proxy", "NO_PROXY"].into_iter().filter_map(std::env::var_os);
    match exceptions.next().is_some_and(|hosts| hosts == "*") {
        true => Matcher::builder().build(),
        false => Matcher::from_env(),
    }
}

/// Why a request got no answer.
enum Sent {
    /// The connection failed before any byte of an answer.
    Broken(Fault),
    /// The server failed.
    Fault(Fault),
}

/// Sends a request on a connection.
async fn send(
    lease: &mut pool::Lease,
    request: &Request<Bytes>,
    origin: &Origin,
    timeout: Option<Duration>,
) -> Result<http::Response<hyper::body::Incoming>, Sent> {
    let mut sent = request.clone().map(Full::new);
    let host = HeaderValue::from_str(&origin.to_string());
    let host = host.map_err(|e| Sent::Fault(Fault::Final(ErrorKind::Url, e.to_string())))?;
    sent.headers_mut().insert(HOST, host);
    match lease.forwarder() {
        Some(proxy) => {
            if let Some(authorization) = proxy.basic_auth() {
                sent.headers_mut().insert(PROXY_AUTHORIZATION, authorization.clone());
            }
        }
        None => {
            let target = sent.uri().path_and_query().cloned();
            *sent.uri_mut() = target.map_or_else(Uri::default, Uri::from);
        }
    }
    let answer = within(timeout, "an answer", lease.sender().send_request(sent)).await;
    answer.map_err(Sent::Fault)?.map_err(|error| {
        if error.is_parse() {
            let reason = format!("the server answered no valid HTTP: {}", reply::cause(&error));
            return Sent::Fault(Fault::protocol(reason));
        }
        let reason = format!("the connection ended before the answer: {}", reply::cause(&error));
        Sent::Broken(Fault::temporary(reason))
    })
}

/// Waits for a server, at most for the timeout.
async fn within<T>(
    timeout: Option<Duration>,
    what: &str,
    future: impl Future<Output = T>,
) -> Result<T, Fault> {
    let Some(limit) = timeout else {
        return Ok(future.await);
    };
    tokio::time::timeout(limit, future).await.map_err(|_| {
        let seconds = limit.as_secs_f32();
        Fault::temporary(format!(
            "the server sent no {} for {seconds} seconds",
            what.trim_start_matches("an ")
        ))
    })
}
