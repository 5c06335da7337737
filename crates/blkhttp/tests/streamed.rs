//! Servers without ranges.

mod server;

use std::sync::Arc;
use std::thread;

use blkhttp::ErrorKind;
use server::{Server, content, inner, read};

const MIB: usize = 1 << 20;

/// Ways in which servers send an object as a whole.
const WAYS: [&str; 5] = ["length", "chunks", "1.0 length", "1.0 close", "close"];

fn start(content: &Arc<Vec<u8>>, way: &'static str) -> Server {
    let content = content.clone();
    Server::start(move |_, answer| {
        let length = format!("Content-Length: {}\r\n", content.len());
        match way {
            "length" => answer.head("200 OK", &length),
            "chunks" => answer.head("200 OK", "Transfer-Encoding: chunked\r\n"),
            "1.0 length" => answer.raw(format!("HTTP/1.0 200 OK\r\n{length}\r\n")),
            "1.0 close" => answer.raw("HTTP/1.0 200 OK\r\n\r\n"),
            _ => answer.head("200 OK", "Connection: close\r\n"),
        }
        if way == "chunks" {
            for part in content.chunks(70_001) {
                answer.raw(format!("{:x};ext=1\r\n", part.len()));
                answer.body(part);
                answer.raw("\r\n");
            }
            answer.raw("0\r\nTrailer: x\r\n\r\n");
        } else {
            answer.body(&content);
            answer.close();
        }
    })
}

#[test]
fn the_whole_is_read_in_order() {
    let content = content(80 * MIB + 5);
    for way in WAYS {
        let server = start(&content, way);
        let object = server.open_patiently();
        assert!(!object.has_ranges());
        assert_eq!(object.read_ahead(), 0);
        let has_length = way.contains("length");
        assert_eq!(object.size(), has_length.then_some(content.len() as u64), "{way}");
        // The first MiB is kept.
        assert_eq!(read(&object, 5000..5100).unwrap(), content[5000..5100]);
        for start in (0..content.len()).step_by(MIB) {
            let end = (start + MIB).min(content.len());
            assert!(read(&object, start..end).unwrap() == content[start..end], "{way} {start}");
        }
        assert_eq!(object.read_at(&mut [0; 10], content.len() as u64).unwrap(), 0, "{way}");
        assert!(read(&object, 0..MIB).unwrap() == content[..MIB]);
        // A little back is kept, more is not.
        assert!(read(&object, 60 * MIB..61 * MIB).unwrap() == content[60 * MIB..61 * MIB]);
        let error = read(&object, 20 * MIB..21 * MIB).unwrap_err();
        assert_eq!(inner(&error).kind(), ErrorKind::Unsupported);
        assert!(error.to_string().starts_with("the server has no ranges"), "{error}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn several_threads_read_nearly_in_order() {
    let content = content(64 * MIB);
    let server = start(&content, "length");
    let object = server.open_patiently();
    let next = std::sync::atomic::AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let start = next.fetch_add(MIB, std::sync::atomic::Ordering::SeqCst);
                    if start >= content.len() {
                        return;
                    }
                    let bytes = read(&object, start..start + MIB).unwrap();
                    assert!(bytes == content[start..start + MIB], "{start}");
                }
            });
        }
    });
}

#[test]
fn no_more_is_received_than_is_read() {
    let content = content(100 * MIB);
    let server = start(&content, "length");
    let object = server.open_patiently();
    read(&object, 0..MIB).unwrap();
    assert!(object.statistics().bytes <= 10 * MIB as u64, "{:?}", object.statistics());
}

#[test]
fn an_end_that_comes_too_early_is_an_error() {
    let content = content(3 * MIB);
    for chunked in [false, true] {
        let bytes = content.clone();
        let server = Server::start(move |_, answer| {
            if chunked {
                answer.head("200 OK", "Transfer-Encoding: chunked\r\n");
                answer.raw(format!("{:x}\r\n", 3 * MIB));
            } else {
                answer.head("200 OK", &format!("Content-Length: {}\r\n", 3 * MIB));
            }
            answer.raw(&bytes[..2 * MIB]);
            answer.close();
        });
        let object = server.open().unwrap();
        assert!(read(&object, 0..2 * MIB).unwrap() == content[..2 * MIB]);
        let error = read(&object, 2 * MIB..3 * MIB).unwrap_err();
        assert_eq!(inner(&error).kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("no ranges"), "{error}");
    }
}
