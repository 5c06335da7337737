//! Connections: names of hosts, proxies and TLS.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, PROXY_AUTHORIZATION};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::Full;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::error::{ErrorKind, Fault, quoted};
use crate::url::Origin;

/// Sends requests on one connection.
pub(super) type Sender = SendRequest<Full<Bytes>>;

/// A connection, and how requests are written for it.
pub(super) struct Connected {
    pub sender: Sender,
    /// The proxy that gets whole URLs, because it forwards requests without encryption.
    pub forwarder: Option<Intercept>,
}

/// Connects to a server, through a proxy if the environment names one for it.
pub(super) async fn connect(
    origin: &Origin,
    proxies: Option<&Matcher>,
    tls: Option<Arc<ClientConfig>>,
) -> Result<Connected, Fault> {
    let Some(proxy) = proxies.and_then(|proxies| proxies.intercept(&address(origin)?)) else {
        let stream = tcp(&origin.host, origin.port).await?;
        let sender = match tls {
            Some(tls) => handshake(encrypt(stream, origin, tls).await?).await?,
            None => handshake(stream).await?,
        };
        return Ok(Connected { sender, forwarder: None });
    };
    let stream = to_proxy(&proxy).await?;
    match tls {
        Some(tls) => {
            let tunnel = tunnel(stream, &proxy, origin).await?;
            let sender = handshake(encrypt(tunnel, origin, tls).await?).await?;
            Ok(Connected { sender, forwarder: None })
        }
        None => Ok(Connected { sender: handshake(stream).await?, forwarder: Some(proxy) }),
    }
}

/// Returns the URI by which a proxy is chosen.
fn address(origin: &Origin) -> Option<Uri> {
    let scheme = if origin.is_encrypted { "https" } else { "http" };
    format!("{scheme}://{}:{}/", origin.host, origin.port).parse().ok()
}

/// Connects to a proxy.
async fn to_proxy(proxy: &Intercept) -> Result<TcpStream, Fault> {
    let uri = proxy.uri();
    if uri.scheme_str() != Some("http") {
        let scheme = uri.scheme_str().unwrap_or_default();
        return Err(Fault::Final(
            ErrorKind::Unsupported,
            format!(
                "needs a proxy of {scheme}, as the environment says; only http proxies can be used"
            ),
        ));
    }
    let (host, port) = (uri.host().unwrap_or_default(), uri.port_u16().unwrap_or(80));
    tcp(host, port).await.map_err(|fault| match fault {
        Fault::Temporary { reason, wait, cause } => {
            Fault::Temporary { reason: format!("the proxy: {reason}"), wait, cause }
        }
        other => other,
    })
}

/// Asks a proxy for a connection to a server.
async fn tunnel(
    stream: TcpStream,
    proxy: &Intercept,
    origin: &Origin,
) -> Result<TokioIo<hyper::upgrade::Upgraded>, Fault> {
    let mut sender = handshake(stream).await?;
    let authority = format!("{}:{}", origin.host, origin.port);
    let mut request =
        Request::builder().method(Method::CONNECT).uri(&authority).header(HOST, &authority);
    if let Some(authorization) = proxy.basic_auth() {
        request = request.header(PROXY_AUTHORIZATION, authorization);
    }
    let request = request
        .body(Full::default())
        .map_err(|e| Fault::Final(ErrorKind::Url, format!("has no valid host: {e}")))?;
    let answer = sender
        .send_request(request)
        .await
        .map_err(|e| Fault::unreachable(format!("the proxy failed: {e}")))?;
    match answer.status() {
        StatusCode::OK => {}
        StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
            let reason = "the proxy needs a name and a password, as in http://USER:PASSWORD@PROXY";
            return Err(Fault::Final(ErrorKind::Denied, reason.to_owned()));
        }
        StatusCode::FORBIDDEN => {
            let reason = format!("the proxy does not allow connections to {origin}");
            return Err(Fault::Final(ErrorKind::Denied, reason));
        }
        status => {
            let reason = format!("the proxy cannot connect to {origin}: it answered {status}");
            return Err(Fault::unreachable(reason));
        }
    }
    let upgraded = hyper::upgrade::on(answer)
        .await
        .map_err(|e| Fault::unreachable(format!("the proxy failed: {e}")))?;
    Ok(TokioIo::new(upgraded))
}

/// Connects to the first address of a host that answers. Each has a head start over the next one.
async fn tcp(host: &str, port: u16) -> Result<TcpStream, Fault> {
    let name = host.trim_start_matches('[').trim_end_matches(']');
    let found = lookup_host((name, port)).await;
    let found =
        found.map_err(|e| Fault::unreachable(format!("the host {host} is not found: {e}")))?;
    let mut addresses = alternating(found).into_iter();
    let mut attempts = JoinSet::new();
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        let ended = match addresses.next() {
            Some(address) => {
                attempts.spawn(TcpStream::connect(address));
                timeout(HEAD_START, attempts.join_next()).await.ok()
            }
            None => Some(attempts.join_next().await),
        };
        match ended.map(Option::transpose) {
            // The next address is tried as well.
            None => {}
            Some(Ok(Some(Ok(stream)))) => {
                // Requests are small, and each is sent as a whole.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Some(Ok(Some(Err(error)))) => last = error,
            Some(Err(error)) => last = io::Error::other(error),
            Some(Ok(None)) => break,
        }
    }
    let reason = format!("cannot connect to {host}, port {port}: {last}");
    // A sandbox or a filter of packets refuses it the next time as well.
    Err(match last.kind() {
        io::ErrorKind::PermissionDenied => Fault::Final(ErrorKind::Connect, reason),
        _ => Fault::unreachable(reason),
    })
}

/// Returns at most [`MAX_ADDRESSES`] addresses, IPv6 and IPv4 in turn, in the order in which each was found.
fn alternating(found: impl Iterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let (six, four): (Vec<_>, Vec<_>) = found.partition(SocketAddr::is_ipv6);
    let longest = six.len().max(four.len());
    let pairs = (0..longest).flat_map(|i| [six.get(i).copied(), four.get(i).copied()]);
    pairs.flatten().take(MAX_ADDRESSES).collect()
}

/// Starts TLS.
async fn encrypt<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    origin: &Origin,
    tls: Arc<ClientConfig>,
) -> Result<tokio_rustls::client::TlsStream<S>, Fault> {
    let name = origin.host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = ServerName::try_from(name).map_err(|_| {
        Fault::Final(ErrorKind::Url, "has no host that a certificate can name".into())
    })?;
    TlsConnector::from(tls).connect(name, stream).await.map_err(|error| {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match inner {
            Some(rustls::Error::InvalidCertificate(reason)) => Fault::Final(
                ErrorKind::Connect,
                format!("the certificate of {origin} is not trusted: {}", certificate(reason)),
            ),
            Some(other) => Fault::Final(
                ErrorKind::Connect,
                format!("{origin} cannot be reached over TLS: {other}"),
            ),
            None => Fault::unreachable(format!("{origin} ended the start of TLS: {error}")),
        }
    })
}

/// Says what is wrong with a certificate.
fn certificate(error: &rustls::CertificateError) -> String {
    use rustls::CertificateError::{Expired, NotValidForName, UnknownIssuer};
    match error {
        UnknownIssuer => "no known authority issued it; a file of authorities can be given".into(),
        Expired => "it expired".into(),
        NotValidForName => "it is for another host".into(),
        other => quoted(other.to_string().as_bytes()),
    }
}

/// Starts HTTP. The connection lives until its sender and the last body are dropped.
async fn handshake<S>(stream: S) -> Result<Sender, Fault>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = Builder::new()
        .max_buf_size(MAX_BUFFER)
        .max_headers(MAX_HEADERS)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|e| Fault::unreachable(format!("cannot start HTTP: {e}")))?;
    tokio::spawn(async move {
        // The request or the body that waits gets the error.
        let _ = connection.with_upgrades().await;
    });
    Ok(sender)
}

/// Time after which the next address of a host is tried as well, as in RFC 8305.
const HEAD_START: Duration = Duration::from_millis(250);

/// Maximum number of addresses of a host that are tried.
const MAX_ADDRESSES: usize = 8;

/// Maximum size of the headers of an answer, and of what is read at once.
/// Limit in bytes.
const MAX_BUFFER: usize = 128 << 10;

/// Maximum number of headers of an answer.
const MAX_HEADERS: usize = 128;
