//! Proxies that the environment names.

mod authority;
mod server;

use std::env;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use authority::Authority;
use blkhttp::{HttpOptions, Object};
use server::{Server, content, options, read};

/// Variable with the URL that a child opens, because the environment of a process with threads cannot be changed.
const URL: &str = "BLKHTTP_TEST_URL";
const CA: &str = "BLKHTTP_TEST_CA";
const SIZE: usize = 3 << 20;

/// Runs this test in a process with other variables, which opens a URL, and returns its output.
fn open_with(test: &str, url: &str, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(URL, url);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "REQUEST_METHOD"] {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    let output = command.envs(variables.iter().copied()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Opens the URL of the environment if there is one, and says how that went.
fn is_child() -> bool {
    let Ok(url) = env::var(URL) else { return false };
    let mut options: HttpOptions = options();
    options.timeout = Some(std::time::Duration::from_secs(60));
    options.tls_ca = env::var_os(CA).map(Into::into);
    match Object::open(&url.parse().unwrap(), &options) {
        Ok(object) => {
            let same = read(&object, 0..SIZE).unwrap() == *content(SIZE);
            println!("read {same}");
        }
        Err(error) => println!("failed: {error}"),
    }
    true
}

#[test]
fn requests_without_encryption_are_forwarded() {
    if is_child() {
        return;
    }
    let content = content(SIZE);
    let proxy = Server::good(content.clone());
    let test = "requests_without_encryption_are_forwarded";
    let address = format!("http://user:word@127.0.0.1:{}", proxy.port());
    let output = open_with(test, "http://images.invalid:81/disk?x=1", &[("http_proxy", &address)]);
    assert!(output.contains("read true"), "{output}");
    for request in proxy.requests() {
        assert_eq!(request.target, "http://images.invalid:81/disk?x=1");
        assert_eq!(request.headers["host"], "images.invalid:81");
        // printf user:word | base64
        assert_eq!(request.headers["proxy-authorization"], "Basic dXNlcjp3b3Jk");
    }
    // Not for hosts that are excluded.
    let (direct, before) = (Server::good(content), proxy.requests().len());
    let url = direct.url("/disk").to_string();
    let variables = [("http_proxy", address.as_str()), ("no_proxy", "127.0.0.1")];
    assert!(open_with(test, &url, &variables).contains("read true"));
    assert!(direct.requests().iter().all(|r| !r.headers.contains_key("proxy-authorization")));
    assert_eq!(proxy.requests().len(), before);
    // One that cannot be used is not left out.
    let output = open_with(test, &url, &[("ALL_PROXY", "socks5://127.0.0.1:1")]);
    assert!(output.contains("needs a proxy of socks5"), "{output}");
}

/// A proxy that connects to one address whatever it is asked for, and keeps the first lines.
struct Tunnel {
    listener: TcpListener,
    asked: Mutex<Vec<String>>,
    to: u16,
    status: &'static str,
}

impl Tunnel {
    fn start(to: u16, status: &'static str) -> Arc<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let tunnel = Arc::new(Self { listener, asked: Mutex::default(), to, status });
        let shared = tunnel.clone();
        thread::spawn(move || {
            for stream in shared.listener.incoming() {
                let shared = shared.clone();
                thread::spawn(move || shared.connect(stream.unwrap()));
            }
        });
        tunnel
    }

    fn connect(&self, mut client: TcpStream) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            if client.read(&mut byte).unwrap_or(0) == 0 {
                return;
            }
            head.push(byte[0]);
        }
        self.asked.lock().unwrap().push(String::from_utf8(head).unwrap());
        let _ = client.write_all(format!("HTTP/1.1 {}\r\n\r\n", self.status).as_bytes());
        if !self.status.starts_with("200") {
            return;
        }
        let mut server = TcpStream::connect(("127.0.0.1", self.to)).unwrap();
        let (mut from_client, mut to_server) =
            (client.try_clone().unwrap(), server.try_clone().unwrap());
        thread::spawn(move || {
            let _ = io::copy(&mut from_client, &mut to_server);
            let _ = to_server.shutdown(Shutdown::Both);
        });
        let _ = io::copy(&mut server, &mut client);
        let _ = client.shutdown(Shutdown::Both);
    }

    fn url(&self) -> String {
        format!("http://user:word@127.0.0.1:{}", self.listener.local_addr().unwrap().port())
    }
}

#[test]
fn encrypted_requests_go_through_a_tunnel() {
    if is_child() {
        return;
    }
    let content = content(SIZE);
    let authority = Authority::new("one");
    let server = authority.start("images.invalid", move |request, answer| {
        assert!(!request.headers.contains_key("proxy-authorization"));
        answer.serve(request, &content, "");
    });
    let test = "encrypted_requests_go_through_a_tunnel";
    let ca = authority.options().tls_ca.unwrap();
    let ca = (CA, ca.to_str().unwrap());
    let url = "https://images.invalid/disk";
    let tunnel = Tunnel::start(server.port(), "200 Connection established");
    let output = open_with(test, url, &[("HTTPS_PROXY", &tunnel.url()), ca]);
    assert!(output.contains("read true"), "{output}");
    let asked = tunnel.asked.lock().unwrap()[0].to_lowercase();
    assert!(asked.starts_with("connect images.invalid:443 http/1.1\r\n"), "{asked}");
    assert!(asked.contains("proxy-authorization: basic dxnlcjp3b3jk\r\n"), "{asked}");
    assert!(server.requests().iter().all(|request| request.target == "/disk"));
    for (status, message) in [
        ("407 Proxy Authentication Required", "the proxy needs a name and a password"),
        ("403 Forbidden", "the proxy does not allow connections to images.invalid"),
        ("502 Bad Gateway", "the proxy cannot connect to images.invalid: it answered 502"),
    ] {
        let tunnel = Tunnel::start(server.port(), status);
        let output = open_with(test, url, &[("ALL_PROXY", &tunnel.url()), ca]);
        assert!(output.contains(message), "{output}");
    }
}
