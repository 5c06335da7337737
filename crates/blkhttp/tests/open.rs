//! What opening an object accepts, follows and refuses.

mod server;

use blkhttp::{ErrorKind, Object, Validator};
use server::{Server, content, options, read};

#[test]
fn a_good_server_is_read() {
    let content = content(3 << 20);
    let server = Server::good(content.clone());
    let object = server.open().unwrap();
    assert_eq!(object.size(), Some(3 << 20));
    assert!(object.has_ranges());
    assert_eq!(object.validator(), Validator::ETag("\"1\"".into()));
    assert_eq!(object.etag().as_deref(), Some("\"1\""));
    assert_eq!(read(&object, 0..3 << 20).unwrap(), *content);
    assert_eq!(object.read_at(&mut [0; 10], 3 << 20).unwrap(), 0);
    assert_eq!(object.read_at(&mut [0; 10], u64::MAX).unwrap(), 0);
    let requests = server.requests();
    assert_eq!(requests[0].headers["range"], "bytes=0-1048575");
    assert_eq!(requests[0].headers["accept-encoding"], "identity");
    assert!(!requests[0].headers.contains_key("if-match"));
    assert!(requests[1..].iter().all(|request| request.headers["if-match"] == "\"1\""));
}

#[test]
fn a_closed_port_is_reported_soon() {
    let server = Server::start(|_, _| {});
    let url = server.url("/disk");
    let port = server.port();
    drop(server);
    let listener = std::net::TcpListener::bind(("127.0.0.1", port));
    drop(listener);
    let error = Object::open(&url, &options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect, "{error}");
    assert!(error.reason().starts_with("cannot connect to 127.0.0.1, port"), "{error}");
}
