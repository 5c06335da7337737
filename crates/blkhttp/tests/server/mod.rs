//! A server of HTTP whose answers the tests write themselves, so that they may be wrong in any way.

// Each test file uses some of it.
#![allow(dead_code)]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use blkhttp::{HttpOptions, Object, Url};

/// A running server.
pub struct Server {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    requests: Mutex<Vec<Request>>,
    connections: AtomicUsize,
    sent: AtomicU64,
    stopped: AtomicBool,
}

/// A request that arrived.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub target: String,
    /// Names are in lower case.
    pub headers: HashMap<String, String>,
    /// How many requests came before.
    pub number: usize,
}

/// Writes the answer to one request.
pub struct Answer<'a> {
    stream: &'a mut dyn Stream,
    state: &'a State,
    close: bool,
}

/// A connection, plain or encrypted.
pub trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

impl Request {
    /// Returns the range that is asked for, within a content of `length` bytes. All of it without a range.
    pub fn range(&self, length: usize) -> Range<usize> {
        let Some(range) = self.headers.get("range") else { return 0..length };
        let (first, last) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
        let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
        first.min(length)..(last + 1).min(length)
    }
}

impl Answer<'_> {
    /// Sends text as it is.
    pub fn raw(&mut self, bytes: impl AsRef<[u8]>) {
        // The client may have gone away.
        let _ = self.stream.write_all(bytes.as_ref());
        let _ = self.stream.flush();
    }

    /// Sends a status line and headers, which end with line breaks.
    pub fn head(&mut self, status: &str, headers: &str) {
        self.raw(format!("HTTP/1.1 {status}\r\n{headers}\r\n"));
    }

    /// Sends bytes of content, and counts them.
    pub fn body(&mut self, bytes: &[u8]) {
        self.state.sent.fetch_add(bytes.len() as u64, Ordering::SeqCst);
        self.raw(bytes);
    }

    /// Sends a status without content.
    pub fn status(&mut self, status: &str, headers: &str) {
        self.head(status, &format!("Content-Length: 0\r\n{headers}"));
    }

    /// Sends what was asked for, as a server should.
    pub fn serve(&mut self, request: &Request, content: &[u8], headers: &str) {
        let range = request.range(content.len());
        self.partial(&content[range.clone()], range, content.len(), headers);
    }

    /// Sends bytes as a range.
    pub fn partial(&mut self, bytes: &[u8], range: Range<usize>, length: usize, headers: &str) {
        let (first, last, n) = (range.start, range.end - 1, bytes.len());
        self.head(
            "206 Partial Content",
            &format!(
                "Content-Length: {n}\r\nContent-Range: bytes {first}-{last}/{length}\r\n{headers}"
            ),
        );
        self.body(bytes);
    }

    /// Closes the connection after this answer.
    pub fn close(&mut self) {
        self.close = true;
    }
}

impl Server {
    /// Starts a server that answers each request with a function.
    pub fn start(handler: impl Fn(&Request, &mut Answer) + Send + Sync + 'static) -> Self {
        Self::start_with(|stream| Some(Box::new(stream)), handler)
    }

    /// Starts a server whose connections are wrapped, as in TLS.
    pub fn start_with(
        wrap: impl Fn(TcpStream) -> Option<Box<dyn Stream>> + Send + Sync + 'static,
        handler: impl Fn(&Request, &mut Answer) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        let (shared, wrap, handler) = (state.clone(), Arc::new(wrap), Arc::new(handler));
        thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.stopped.load(Ordering::SeqCst) {
                    return;
                }
                let (state, wrap, handler) = (shared.clone(), wrap.clone(), handler.clone());
                state.connections.fetch_add(1, Ordering::SeqCst);
                let stream = stream.unwrap();
                stream.set_nodelay(true).unwrap();
                thread::spawn(move || {
                    if let Some(stream) = wrap(stream) {
                        connection(stream, &state, &*handler);
                    }
                });
            }
        });
        Self { address, state }
    }

    /// Starts a server that does everything right.
    pub fn good(content: Arc<Vec<u8>>) -> Self {
        Self::start(move |request, answer| answer.serve(request, &content, "ETag: \"1\"\r\n"))
    }

    /// Returns the URL of a path, which begins with a slash.
    pub fn url(&self, path: &str) -> Url {
        format!("http://{}{path}", self.address).parse().unwrap()
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Opens the object `/disk` with a short timeout.
    pub fn open(&self) -> blkhttp::Result<Object> {
        Object::open(&self.url("/disk"), &options())
    }

    /// Opens the object `/disk` with a timeout that no test reaches.
    pub fn open_patiently(&self) -> Object {
        let mut options = options();
        options.timeout = Some(Duration::from_secs(300));
        Object::open(&self.url("/disk"), &options).unwrap()
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.state.requests.lock().unwrap().clone()
    }

    /// Returns the number of connections so far.
    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// Returns the bytes of content that were sent so far.
    pub fn sent(&self) -> u64 {
        self.state.sent.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.state.stopped.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

/// Answers the requests of a connection until it ends.
fn connection(
    stream: Box<dyn Stream>,
    state: &State,
    handler: &(dyn Fn(&Request, &mut Answer) + Send + Sync),
) {
    let mut reader = BufReader::new(stream);
    while let Some(mut request) = read_request(&mut reader) {
        {
            let mut requests = state.requests.lock().unwrap();
            request.number = requests.len();
            requests.push(request.clone());
        }
        let mut answer = Answer { stream: reader.get_mut(), state, close: false };
        handler(&request, &mut answer);
        if answer.close {
            return;
        }
    }
}

fn read_request(reader: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    if reader.read_line(&mut line).ok()? == 0 {
        return None;
    }
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    Some(Request { method, target, headers, number: 0 })
}

/// Returns options for servers that are wrong on purpose.
pub fn options() -> HttpOptions {
    let mut options = HttpOptions::default();
    options.timeout = Some(Duration::from_millis(500));
    options.retries = 3;
    options
}

/// Returns content of which no two parts are equal.
pub fn content(length: usize) -> Arc<Vec<u8>> {
    content_of(length, 1)
}

/// Returns another content for another seed.
pub fn content_of(length: usize, seed: u64) -> Arc<Vec<u8>> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    Arc::new(bytes)
}

/// Reads all bytes of a range.
pub fn read(object: &Object, range: Range<usize>) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; range.len()];
    let mut done = 0;
    while done < bytes.len() {
        let n = object.read_at(&mut bytes[done..], (range.start + done) as u64)?;
        if n == 0 {
            break;
        }
        done += n;
    }
    bytes.truncate(done);
    Ok(bytes)
}

/// Returns the error of this crate in an error of a read.
pub fn inner(error: &std::io::Error) -> &blkhttp::Error {
    error.get_ref().and_then(|inner| inner.downcast_ref()).expect("an error of the crate")
}
