//! Redirects: where they lead, what they carry, and what happens when they expire.

mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use blkhttp::{ErrorKind, Object, Url};
use server::{Server, content, content_of, options, read};

const MIB: usize = 1 << 20;

#[test]
fn redirects_are_followed_and_pinned() {
    let content = content(3 * MIB);
    for status in ["301 Moved", "302 Found", "303 See Other", "307 Temp", "308 Permanent"] {
        let bytes = content.clone();
        let server = Server::start(move |request, answer| match request.target.as_str() {
            "/disk" => answer.status(status, "Location: images/a?sig=x#y\r\n"),
            "/images/a?sig=x" => answer.status(status, "Location: ../b\r\n"),
            "/b" => answer.serve(request, &bytes, "ETag: \"1\"\r\n"),
            other => panic!("{other}"),
        });
        let object = server.open().unwrap();
        assert_eq!(object.url(), server.url("/b"));
        assert!(read(&object, 0..3 * MIB).unwrap() == *content);
        let requests = server.requests();
        assert!(requests[3..].iter().all(|request| request.target == "/b"));
    }
}

#[test]
fn circles_and_long_ways_are_refused() {
    let server = Server::start(|request, answer| {
        let next = if request.target == "/disk" { "/other" } else { "/disk" };
        answer.status("302 Found", &format!("Location: {next}\r\n"));
    });
    let error = server.open().unwrap_err();
    assert_eq!(
        (error.kind(), error.reason()),
        (ErrorKind::Protocol, "the server redirects in a circle")
    );
    let server = Server::start(|request, answer| {
        answer.status("302 Found", &format!("Location: /{}\r\n", request.number));
    });
    let error = server.open().unwrap_err();
    assert_eq!(error.reason(), "the server redirects more than 10 times");
    assert_eq!(server.requests().len(), 11);
    for location in ["ftp://h/x", "file:///etc/passwd", "http://", "s3://b/k", "//"] {
        let server = Server::start(move |_, answer| {
            answer.status("302 Found", &format!("Location: {location}\r\n"));
        });
        let error = server.open().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol, "{location}: {error}");
    }
}

#[test]
fn passwords_stay_with_their_host() {
    let content = content(2 * MIB);
    let bytes = content.clone();
    let store = Server::start(move |request, answer| answer.serve(request, &bytes, ""));
    let there = store.url("/x?signature=1");
    let location = format!("http://127.0.0.1:{}/x?signature=1", there.port().unwrap());
    let server = Server::start(move |request, answer| match request.target.as_str() {
        "/disk" => answer.status("302 Found", "Location: /second\r\n"),
        _ => answer.status("302 Found", &format!("Location: {location}\r\n")),
    });
    let url: Url = format!("http://user:word@127.0.0.1:{}/disk", server.port()).parse().unwrap();
    let object = Object::open(&url, &options()).unwrap();
    assert!(read(&object, 0..2 * MIB).unwrap() == *content);
    for request in server.requests() {
        // printf user:word | base64
        assert_eq!(request.headers["authorization"], "Basic dXNlcjp3b3Jk");
    }
    assert!(store.requests().iter().all(|request| !request.headers.contains_key("authorization")));
    assert_eq!(
        object.url().to_string(),
        format!("http://127.0.0.1:{}/x?signature=***", store.port())
    );
}

#[test]
fn an_absolute_redirect_to_the_same_host_keeps_the_password() {
    let content = content(10);
    let server = Server::start(move |request, answer| {
        if request.headers.get("authorization").map(String::as_str) != Some("Basic dXNlcjp3b3Jk") {
            return answer.status("401 Unauthorized", "");
        }
        match request.target.as_str() {
            "/disk" => {
                let host = &request.headers["host"];
                answer.status("302 Found", &format!("Location: http://{host}/x\r\n"));
            }
            _ => answer.serve(request, &content, ""),
        }
    });
    let url = format!("http://user:word@127.0.0.1:{}/disk", server.port()).parse().unwrap();
    assert_eq!(Object::open(&url, &options()).unwrap().size(), Some(10));
    assert_eq!(server.open().unwrap_err().kind(), ErrorKind::Denied);
}

/// Starts a server that redirects to URLs of which each is good for a number of requests.
fn expiring(uses: usize, contents: [Arc<Vec<u8>>; 2]) -> Server {
    let (issued, used) = (AtomicUsize::new(0), AtomicUsize::new(0));
    Server::start(move |request, answer| match request.target.strip_prefix("/signed?") {
        None => {
            let issue = issued.fetch_add(1, Ordering::SeqCst) + 1;
            used.store(0, Ordering::SeqCst);
            answer.status("302 Found", &format!("Location: /signed?{issue}\r\n"));
        }
        Some(issue) => {
            let is_last = issue.parse() == Ok(issued.load(Ordering::SeqCst));
            if !is_last || used.fetch_add(1, Ordering::SeqCst) >= uses {
                return answer.status("403 Forbidden", "");
            }
            let i = usize::from(issue != "1");
            answer.serve(request, &contents[i], if i == 0 { "ETag: \"1\"\r\n" } else { "" });
        }
    })
}

#[test]
fn expired_urls_are_resolved_again() {
    let content = content(6 * MIB);
    let bytes = content.clone();
    let (issued, used) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let server = Server::start(move |request, answer| {
        if request.target == "/disk" {
            let issue = issued.fetch_add(1, Ordering::SeqCst);
            used.store(0, Ordering::SeqCst);
            return answer.status("302 Found", &format!("Location: /signed?{issue}\r\n"));
        }
        if used.fetch_add(1, Ordering::SeqCst) >= 2 {
            return answer
                .status(["403 Forbidden", "410 Gone", "404 Not Found"][request.number % 3], "");
        }
        answer.serve(request, &bytes, "ETag: \"1\"\r\n");
    });
    let object = server.open().unwrap();
    assert!(read(&object, 0..6 * MIB).unwrap() == *content);
    let resolved = server.requests().iter().filter(|request| request.target == "/disk").count();
    assert!(resolved >= 2, "{resolved}");
}

#[test]
fn an_expired_url_must_lead_to_the_same_version() {
    let server = expiring(1, [content(6 * MIB), content_of(6 * MIB, 2)]);
    let object = server.open().unwrap();
    read(&object, 0..MIB).unwrap();
    read(&object, 2 * MIB..3 * MIB).unwrap_err();
}

#[test]
fn an_object_that_is_gone_is_not_found() {
    for (status, kind) in [
        ("404 Not Found", ErrorKind::NotFound),
        ("410 Gone", ErrorKind::NotFound),
        ("403 Forbidden", ErrorKind::Denied),
        ("401 Unauthorized", ErrorKind::Denied),
        ("400 Bad Request", ErrorKind::Unsupported),
        ("501 Not Implemented", ErrorKind::Protocol),
        ("204 No Content", ErrorKind::Protocol),
        ("304 Not Modified", ErrorKind::Protocol),
    ] {
        let server = Server::start(move |_, answer| answer.status(status, ""));
        let error = server.open().unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(server.requests().len(), 1);
    }
}
