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

#[test]
fn empty_objects_are_empty() {
    let empty = [("416 Range Not Satisfiable", "Content-Range: bytes */0\r\n"), ("200 OK", "")];
    for (status, headers) in empty {
        let server = Server::start(move |_, answer| answer.status(status, headers));
        let object = server.open().unwrap();
        assert_eq!(object.size(), Some(0));
        object.will_need(0, 100);
        assert_eq!(object.read_at(&mut [0; 10], 0).unwrap(), 0);
    }
    for headers in ["", "Content-Range: bytes */5\r\n", "Content-Range: bytes */*\r\n"] {
        let server = Server::start(move |_, answer| {
            answer.status("416 Range Not Satisfiable", headers);
        });
        assert_eq!(server.open().unwrap_err().kind(), ErrorKind::Protocol, "{headers}");
    }
}

#[test]
fn small_objects_are_one_request() {
    for size in [1, 65_535, 65_536, 65_537, 1 << 20] {
        let content = content(size);
        let server = Server::good(content.clone());
        let object = server.open().unwrap();
        object.will_need(0, size as u64);
        for _ in 0..2 {
            assert_eq!(read(&object, 0..size + 10).unwrap(), *content);
        }
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn first_answers_with_other_bytes_are_refused() {
    let content = content(3 << 20);
    for range in [1..100, 0..(1 << 20) + 1] {
        let bytes = content.clone();
        let server = Server::start(move |_, answer| {
            answer.partial(&bytes[range.clone()], range.clone(), bytes.len(), "");
        });
        assert_eq!(server.open().unwrap_err().kind(), ErrorKind::Protocol);
    }
    let server = Server::start(|_, answer| {
        answer.head("206 Partial Content", "Content-Range: bytes 0-9/*\r\nContent-Length: 10\r\n");
        answer.raw("0123456789");
    });
    assert_eq!(server.open().unwrap_err().kind(), ErrorKind::Protocol);
    let server = Server::start(|_, answer| {
        answer.head("200 OK", "Content-Encoding: gzip\r\nContent-Length: 10\r\n");
        answer.raw("0123456789");
    });
    assert_eq!(server.open().unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn a_user_and_a_query_are_sent_and_not_shown() {
    let content = content(10);
    let server = Server::good(content);
    let text = format!("http://user:word@127.0.0.1:{}/a%20b?token=secret", server.port());
    let object = Object::open(&text.parse().unwrap(), &options()).unwrap();
    let request = &server.requests()[0];
    assert_eq!(request.headers["authorization"], "Basic dXNlcjp3b3Jk");
    assert_eq!(request.target, "/a%20b?token=secret");
    assert_eq!(request.headers["host"], format!("127.0.0.1:{}", server.port()));
    let shown = format!("http://***@127.0.0.1:{}/a%20b?token=***", server.port());
    assert_eq!(object.url().to_string(), shown);
    assert!(!format!("{object:?}").contains("secret"));
    let missing = Server::start(|_, answer| answer.status("404 Not Found", ""));
    let text = format!("http://u:word@127.0.0.1:{}/?token=secret", missing.port());
    let error = Object::open(&text.parse().unwrap(), &options()).unwrap_err();
    let all = format!("{error} {error:?} {}", error.url());
    assert!(!all.contains("secret") && !all.contains("word"), "{all}");
}
