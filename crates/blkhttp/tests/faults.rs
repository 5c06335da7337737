//! Servers that fail or are wrong: reads give the right bytes or an error.

mod server;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use blkhttp::{ErrorKind, Object};
use server::{Answer, Request, Server, content, content_of, inner, options, read};

const MIB: usize = 1 << 20;
const SIZE: usize = 4 * MIB;

/// Starts a server that is good for the first request, and opens its object.
fn after_opening(
    content: &Arc<Vec<u8>>,
    headers: &'static str,
    handler: impl Fn(&Request, &mut Answer, &[u8]) + Send + Sync + 'static,
) -> (Server, Object) {
    let content = content.clone();
    let server = Server::start(move |request, answer| {
        if request.number == 0 {
            answer.serve(request, &content, headers);
        } else {
            handler(request, answer, &content);
        }
    });
    let object = server.open().unwrap();
    read(&object, 0..MIB).unwrap();
    (server, object)
}

/// Reads announced bytes and others, and returns the kind of the error that both give.
fn kind_of_reads(object: &Object) -> ErrorKind {
    object.will_need(2 * MIB as u64, 100_000);
    let announced = read(object, 2 * MIB..2 * MIB + 1000).expect_err("announced bytes");
    let other = read(object, 3 * MIB..3 * MIB + 1000).expect_err("other bytes");
    assert_eq!(inner(&announced).kind(), inner(&other).kind(), "{announced}; {other}");
    inner(&announced).kind()
}

/// Reads everything, announced and not, and compares it.
fn check_all(object: &Object, content: &[u8]) {
    object.will_need(MIB as u64, MIB as u64);
    assert!(read(object, 0..SIZE).unwrap() == content);
}

#[test]
fn wrong_ranges_are_no_bytes() {
    type Wrong = fn(&mut Answer, std::ops::Range<usize>, &[u8]);
    let cases: [(&str, Wrong, ErrorKind); 10] = [
        (
            "shifted",
            |a, r, c| a.partial(&c[r.start - 1..r.end - 1], r.start - 1..r.end - 1, SIZE, ""),
            ErrorKind::Protocol,
        ),
        (
            "longer",
            |a, r, c| a.partial(&c[r.start..r.end + 1], r.start..r.end + 1, SIZE, ""),
            ErrorKind::Protocol,
        ),
        (
            "whole",
            |a, _, c| {
                a.head("200 OK", &format!("Content-Length: {SIZE}\r\n"));
                a.raw(c);
                a.close();
            },
            ErrorKind::Protocol,
        ),
        (
            "other whole",
            |a, _, _| {
                a.head("200 OK", "Content-Length: 5\r\n");
                a.raw("12345");
            },
            ErrorKind::Changed,
        ),
        ("other length", |a, r, c| a.partial(&c[r.clone()], r, SIZE + 1, ""), ErrorKind::Changed),
        (
            "no length",
            |a, r, c| {
                a.head(
                    "206 Partial Content",
                    &format!(
                        "Content-Range: bytes {}-{}/*\r\nContent-Length: {}\r\n",
                        r.start,
                        r.end - 1,
                        r.len()
                    ),
                );
                a.raw(&c[r]);
            },
            ErrorKind::Protocol,
        ),
        (
            "no range",
            |a, r, c| {
                a.head("206 Partial Content", &format!("Content-Length: {}\r\n", r.len()));
                a.raw(&c[r]);
            },
            ErrorKind::Protocol,
        ),
        (
            "416",
            |a, _, _| {
                a.status(
                    "416 Range Not Satisfiable",
                    &format!("Content-Range: bytes */{SIZE}\r\n"),
                );
            },
            ErrorKind::Protocol,
        ),
        (
            "multipart",
            |a, r, c| {
                a.partial(
                    &c[r.clone()],
                    r,
                    SIZE,
                    "Content-Type: multipart/byteranges; boundary=x\r\n",
                );
            },
            ErrorKind::Protocol,
        ),
        (
            "gzip",
            |a, r, c| a.partial(&c[r.clone()], r, SIZE, "Content-Encoding: gzip\r\n"),
            ErrorKind::Unsupported,
        ),
    ];
    let content = content(SIZE);
    for (name, wrong, kind) in cases {
        let (_server, object) = after_opening(&content, "", move |request, answer, content| {
            wrong(answer, request.range(SIZE), content);
        });
        assert_eq!(kind_of_reads(&object), kind, "{name}");
        assert_eq!(object.changed().is_some(), kind == ErrorKind::Changed, "{name}");
        // What was read before is known, unless it changed.
        assert_eq!(read(&object, 0..10).is_ok(), kind != ErrorKind::Changed, "{name}");
    }
}

#[test]
fn a_change_ends_all_reads() {
    let cases = [
        ("ETag: \"1\"\r\n", "ETag: \"2\"\r\n", "ETag was \"1\", is \"2\""),
        ("ETag: W/\"1\"\r\n", "ETag: W/\"2\"\r\n", "ETag was W/\"1\", is W/\"2\""),
        (
            "Last-Modified: Sat, 01 Jan 2000 00:00:00 GMT\r\n",
            "Last-Modified: Sat, 01 Jan 2000 00:00:09 GMT\r\n",
            "Last-Modified was Sat, 01 Jan 2000 00:00:00 GMT, is Sat, 01 Jan 2000 00:00:09 GMT",
        ),
    ];
    for (before, after, message) in cases {
        let (old, new) = (content(SIZE), content_of(SIZE, 2));
        let (_server, object) = after_opening(&old, before, move |request, answer, _| {
            answer.serve(request, &new, after);
        });
        assert_eq!(object.changed(), None);
        assert_eq!(kind_of_reads(&object), ErrorKind::Changed);
        assert_eq!(object.changed().unwrap(), format!("changed while it was read: {message}"));
        assert!(read(&object, 0..10).is_err());
    }
    let (_server, object) = after_opening(&content(SIZE), "ETag: \"1\"\r\n", |_, answer, _| {
        answer.status("412 Precondition Failed", "");
    });
    assert_eq!(kind_of_reads(&object), ErrorKind::Changed);
}

#[test]
fn replicas_of_two_versions_are_not_mixed() {
    let (old, new) = (content(SIZE), content_of(SIZE, 2));
    let other = old.clone();
    let server = Server::start(move |request, answer| match request.number % 3 {
        2 => answer.serve(request, &new, "ETag: \"2\"\r\n"),
        _ => answer.serve(request, &old, "ETag: \"1\"\r\n"),
    });
    let object = server.open().unwrap();
    object.will_need(MIB as u64, 3 * MIB as u64);
    let mut failed = false;
    for start in (0..SIZE).step_by(MIB / 2) {
        match read(&object, start..start + MIB / 2) {
            Ok(bytes) => assert!(other[start..].starts_with(&bytes)),
            Err(error) => {
                assert_eq!(inner(&error).kind(), ErrorKind::Changed);
                failed = true;
            }
        }
    }
    assert!(failed);
}

#[test]
fn passing_faults_are_retried() {
    type Wrong = fn(&mut Answer, std::ops::Range<usize>, &[u8]);
    let cases: [(&str, Wrong); 9] = [
        ("503", |a, _, _| a.status("503 Service Unavailable", "Retry-After: 0\r\n")),
        ("429", |a, _, _| a.status("429 Too Many Requests", "")),
        ("500", |a, _, _| {
            a.head("500 Oops", "Content-Length: 5\r\n");
            a.raw("sorry");
        }),
        ("closed", |a, _, _| a.close()),
        ("half headers", |a, _, _| {
            a.raw("HTTP/1.1 206 Part");
            a.close();
        }),
        ("short", |a, r, c| {
            a.head(
                "206 Partial Content",
                &format!(
                    "Content-Range: bytes {}-{}/{SIZE}\r\nContent-Length: {}\r\n",
                    r.start,
                    r.end - 1,
                    r.len()
                ),
            );
            a.raw(&c[r.start..r.start + r.len() / 2]);
            a.close();
        }),
        ("short chunks", |a, r, c| {
            a.head(
                "206 Partial Content",
                &format!(
                    "Content-Range: bytes {}-{}/{SIZE}\r\nTransfer-Encoding: chunked\r\n",
                    r.start,
                    r.end - 1
                ),
            );
            a.raw(format!("{:x}\r\n", 100));
            a.raw(&c[r.start..r.start + 100]);
            a.raw("\r\n0\r\n\r\n");
        }),
        ("shortened", |a, r, c| {
            a.partial(&c[r.start..r.start + 1], r.start..r.start + 1, SIZE, "");
        }),
        ("silent", |a, r, c| {
            a.head(
                "206 Partial Content",
                &format!(
                    "Content-Range: bytes {}-{}/{SIZE}\r\nContent-Length: {}\r\n",
                    r.start,
                    r.end - 1,
                    r.len()
                ),
            );
            a.raw(&c[r.start..r.start + 10]);
            thread::sleep(Duration::from_secs(1));
            a.close();
        }),
    ];
    let content = content(SIZE);
    for (name, wrong) in cases {
        let (_server, object) = after_opening(&content, "", move |request, answer, content| {
            if request.number % 2 == 1 && request.number < 8 {
                wrong(answer, request.range(SIZE), content);
            } else {
                answer.serve(request, content, "");
            }
        });
        check_all(&object, &content);
        // A connection that ends before an answer may have been idle for too long.
        let counts = !matches!(name, "shortened" | "closed" | "half headers");
        assert!(!counts || object.statistics().retries > 0, "{name}");
    }
}

#[test]
fn retries_end() {
    let content = content(SIZE);
    let (server, object) = after_opening(&content, "", |_, answer, _| {
        answer.status("503 Service Unavailable", "");
    });
    let error = read(&object, 3 * MIB..4 * MIB).unwrap_err();
    assert_eq!(inner(&error).kind(), ErrorKind::Unavailable);
    let message = "the server answered 503 Service Unavailable, after 4 attempts";
    assert_eq!(error.to_string(), message);
    assert_eq!(server.requests().len(), 5);
    assert_eq!(object.statistics().retries, 3);
}

#[test]
fn a_silent_server_ends_opening() {
    let server = Server::start(|_, answer| {
        thread::sleep(Duration::from_secs(3));
        answer.close();
    });
    let mut options = options();
    options.retries = 0;
    let error = Object::open(&server.url("/disk"), &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(error.reason(), "the server sent no answer for 0.5 seconds");
}

#[test]
fn a_drip_ends() {
    let content = content(SIZE);
    let (_server, object) = after_opening(&content, "", |request, answer, content| {
        let range = request.range(SIZE);
        answer.head(
            "206 Partial Content",
            &format!(
                "Content-Range: bytes {}-{}/{SIZE}\r\nContent-Length: {}\r\n",
                range.start,
                range.end - 1,
                range.len()
            ),
        );
        for byte in &content[range] {
            answer.raw([*byte]);
            thread::sleep(Duration::from_millis(100));
        }
    });
    let start = Instant::now();
    let error = read(&object, 2 * MIB..3 * MIB).unwrap_err();
    assert_eq!(inner(&error).kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("1 KiB a second"), "{error}");
    assert!(start.elapsed() >= Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn too_many_bytes_are_cut_or_refused() {
    let content = content(SIZE);
    // Past the stated length. If they arrive with the next request they are its answer, which is refused then.
    let (_server, object) = after_opening(&content, "", |request, answer, content| {
        answer.serve(request, content, "");
        answer.raw("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-1/2\r\n\r\nxx");
    });
    object.will_need(MIB as u64, MIB as u64);
    for start in (0..SIZE).step_by(MIB / 2) {
        if let Ok(bytes) = read(&object, start..start + MIB / 2) {
            assert!(bytes == content[start..start + MIB / 2]);
        }
    }
    // In chunks, which state no length.
    let (_server, object) = after_opening(&content, "", |request, answer, content| {
        let range = request.range(SIZE);
        answer.head(
            "206 Partial Content",
            &format!(
                "Content-Range: bytes {}-{}/{SIZE}\r\nTransfer-Encoding: chunked\r\n",
                range.start,
                range.end - 1
            ),
        );
        answer.raw(format!("{:x}\r\n", range.len() + 1));
        answer.raw(&content[range.start - 1..range.end]);
        answer.raw("\r\n0\r\n\r\n");
    });
    // Up to the end of the answer: bytes before it are passed on as they come.
    let error = read(&object, MIB..SIZE).expect_err("too many bytes");
    assert_eq!(inner(&error).kind(), ErrorKind::Protocol, "{error}");
}

#[test]
fn invalid_http_is_refused() {
    let huge = format!("X: {}\r\n", "a".repeat(300_000));
    let many = "X: 1\r\n".repeat(1000);
    for headers in [
        huge.as_str(),
        many.as_str(),
        "Content-Length: 99999999999999999999\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "bad header\r\n",
    ] {
        let head = format!("HTTP/1.1 200 OK\r\n{headers}\r\n12345");
        let server = Server::start(move |_, answer| {
            answer.raw(&head);
            answer.close();
        });
        let mut options = options();
        options.retries = 0;
        let error = Object::open(&server.url("/disk"), &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
        assert!(error.reason().len() < 400, "{error}");
    }
    let server = Server::start(|_, answer| {
        answer.raw("SSH-2.0-OpenSSH_9.9\r\n");
        answer.close();
    });
    let error = server.open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
}

#[test]
fn texts_of_servers_are_escaped() {
    let server = Server::start(|_, answer| {
        answer.raw(b"HTTP/1.1 200 OK\r\nContent-Encoding: x\xff\t1\r\nContent-Length: 0\r\n\r\n");
    });
    let error = server.open().unwrap_err();
    assert_eq!(error.reason(), "the server sends it encoded as \"x\u{fffd}\\t1\"");
}

#[test]
fn connections_that_close_between_requests_are_no_faults() {
    let content = content(SIZE);
    let (server, object) = after_opening(&content, "", |request, answer, content| {
        answer.serve(request, content, "");
        answer.close();
    });
    for start in (MIB..SIZE).step_by(300_000) {
        assert_eq!(read(&object, start..start + 1).unwrap(), [content[start]]);
    }
    assert_eq!(object.statistics().retries, 0);
    assert!(server.connections() > 5);
}
