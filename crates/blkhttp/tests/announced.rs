//! Reads of announced ranges, whose bytes and requests the server counts.

mod server;

use std::thread;
use std::time::Duration;

use server::{Server, content, options, read};

const MIB: usize = 1 << 20;

#[test]
fn announced_bytes_are_sent_once_in_large_requests() {
    let content = content(65 * MIB);
    let server = Server::good(content.clone());
    let object = server.open().unwrap();
    let step = 256 << 10;
    let mut announced = 0;
    for start in (0..content.len()).step_by(step) {
        while announced < content.len() && announced < start + object.read_ahead() as usize {
            object.will_need(announced as u64, step as u64);
            announced += step;
        }
        assert!(
            read(&object, start..start + step).unwrap() == content[start..start + step],
            "{start}"
        );
    }
    let limit = content.len() as u64 * 101 / 100;
    assert!(server.sent() <= limit, "{} bytes", server.sent());
    assert!(server.requests().len() <= 70, "{} requests", server.requests().len());
    let statistics = object.statistics();
    assert_eq!(statistics.requests, server.requests().len() as u64);
    assert_eq!(statistics.bytes, server.sent());
    assert_eq!(statistics.connections, server.connections() as u64);
    assert_eq!(statistics.retries, 0);
}

#[test]
fn a_reader_does_not_wait_for_the_end_of_a_request() {
    let content = content(3 * MIB);
    let bytes = content.clone();
    // Sends half of each range, and the rest when the client is gone.
    let server = Server::start(move |request, answer| {
        let range = request.range(bytes.len());
        let half = range.len() / 2;
        answer.head(
            "206 Partial Content",
            &format!(
                "Content-Length: {}\r\nContent-Range: bytes {}-{}/{}\r\n",
                range.len(),
                range.start,
                range.end - 1,
                bytes.len()
            ),
        );
        answer.body(&bytes[range.start..range.start + half]);
        thread::sleep(Duration::from_secs(20));
        answer.close();
    });
    let object = server.open_patiently();
    object.will_need(MIB as u64, 2 * MIB as u64);
    let range = MIB..MIB + 100_000;
    assert_eq!(read(&object, range.clone()).unwrap(), content[range]);
    let range = 2 * MIB..2 * MIB + MIB / 2;
    assert_eq!(read(&object, range.clone()).unwrap(), content[range]);
}

#[test]
fn ranges_are_read_in_any_order_by_any_number_of_threads() {
    let content = content(48 * MIB);
    let server = Server::good(content.clone());
    let object = server.open().unwrap();
    // More than the limit, and from the end to the start.
    for start in (0..content.len()).step_by(MIB).rev() {
        object.will_need(start as u64, MIB as u64);
    }
    thread::scope(|scope| {
        for thread in 0..6 {
            let (object, content) = (&object, &content);
            scope.spawn(move || {
                for i in 0..8 {
                    let start = (i * 6 + thread) * MIB;
                    let bytes = read(object, start..start + MIB).unwrap();
                    assert!(bytes == content[start..start + MIB], "{start}");
                }
            });
        }
    });
    // Once more, from pages.
    for start in (0..content.len()).step_by(5 * MIB) {
        let range = start..(start + 300_000).min(content.len());
        assert!(read(&object, range.clone()).unwrap() == content[range]);
    }
}

#[test]
fn small_gaps_are_received_and_dropped_large_ones_are_not_asked_for() {
    let content = content(40 * MIB);
    let server = Server::good(content.clone());
    let object = server.open().unwrap();
    read(&object, 0..MIB).unwrap();
    let ranges: Vec<_> = (0..16)
        .map(|i| 2 * MIB + i * (64 << 10)..2 * MIB + i * (64 << 10) + (32 << 10))
        .chain((0..8).map(|i| (4 + i * 4) * MIB..(4 + i * 4) * MIB + (128 << 10)))
        .collect();
    for range in &ranges {
        object.will_need(range.start as u64, range.len() as u64);
    }
    for range in &ranges {
        assert!(read(&object, range.clone()).unwrap() == content[range.clone()], "{range:?}");
    }
    let requests = server.requests().len();
    // The first one may begin before the others are announced.
    assert!((9..=12).contains(&(requests - 1)), "{requests}");
    assert!(server.sent() <= (MIB + MIB + 8 * (128 << 10)) as u64, "{} bytes", server.sent());
}

#[test]
fn memory_is_bounded_whatever_is_announced() {
    let content = content(100 * MIB);
    let server = Server::good(content.clone());
    let object = server.open().unwrap();
    object.will_need(0, content.len() as u64);
    // The last bytes are asked for at once, though the buffer is full of others.
    let range = 99 * MIB..100 * MIB;
    assert!(read(&object, range.clone()).unwrap() == content[range]);
    assert!(server.sent() <= 19 * MIB as u64, "{} bytes", server.sent());
    assert!(read(&object, 0..99 * MIB).unwrap() == content[..99 * MIB]);
    assert!(server.sent() <= 120 * MIB as u64, "{} bytes", server.sent());
}

#[test]
fn nothing_is_asked_for_after_the_object_is_dropped() {
    let content = content(64 * MIB);
    let server = Server::good(content.clone());
    let object = server.open().unwrap();
    object.will_need(0, content.len() as u64);
    read(&object, 2 * MIB..3 * MIB).unwrap();
    drop(object);
    let other = server.open().unwrap();
    read(&other, 0..MIB).unwrap();
    assert!(server.sent() <= 30 * MIB as u64, "{} bytes", server.sent());
}

#[test]
fn pages_do_not_wait_for_announced_ranges() {
    let content = content(64 * MIB);
    let bytes = content.clone();
    let (gate, closed) = std::sync::mpsc::channel::<()>();
    let closed = std::sync::Mutex::new(closed);
    // Whole MiB, which were announced, wait until the pages were read.
    let server = Server::start(move |request, answer| {
        if request.number > 0 && request.range(bytes.len()).len() >= MIB {
            let _ = closed.lock().unwrap().recv();
        }
        answer.serve(request, &bytes, "");
    });
    let mut options = options();
    options.timeout = None;
    let object = blkhttp::Object::open(&server.url("/disk"), &options).unwrap();
    object.will_need(2 * MIB as u64, 40 * MIB as u64);
    for start in [50 * MIB, 60 * MIB + 12345, 45 * MIB] {
        assert!(read(&object, start..start + 5000).unwrap() == content[start..start + 5000]);
    }
    drop(gate);
    assert!(read(&object, 2 * MIB..42 * MIB).unwrap() == content[2 * MIB..42 * MIB]);
}

#[test]
fn tables_are_cached_and_read_ahead() {
    let content = content(20 * MIB);
    let server = Server::good(content.clone());
    let object = server.open().unwrap();
    for _ in 0..3 {
        for start in (2 * MIB..6 * MIB).step_by(4096) {
            assert!(read(&object, start..start + 4096).unwrap() == content[start..start + 4096]);
        }
        // At random, each page once.
        for i in 0..50 {
            let start = 8 * MIB + (i * 37 % 50) * 3 * 65536;
            assert!(read(&object, start..start + 100).unwrap() == content[start..start + 100]);
        }
    }
    let requests = server.requests().len();
    assert!(requests <= 1 + 8 + 50, "{requests} requests");
    assert!(server.sent() <= (MIB + 5 * MIB + 50 * 65536) as u64, "{} bytes", server.sent());
}
