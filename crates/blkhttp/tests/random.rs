//! Random announcements and reads on several threads, from a server with random faults.

mod server;

use std::ops::Range;
use std::thread;

use blkhttp::Object;
use proptest::prelude::*;
use server::{Answer, Request, Server, content, options, read};

const SIZE: usize = 12 << 20;

/// What a server does with a request.
#[derive(Clone, Copy, Debug)]
enum Fault {
    None,
    Close,
    Busy,
    Short,
    Shortened,
    Chunked,
    CloseAfter,
}

fn fault() -> impl Strategy<Value = Fault> {
    use Fault::*;
    prop_oneof![
        6 => Just(None),
        1 => Just(Close),
        1 => Just(Busy),
        1 => Just(Short),
        1 => Just(Shortened),
        1 => Just(Chunked),
        1 => Just(CloseAfter),
    ]
}

fn range() -> impl Strategy<Value = Range<usize>> {
    let length = prop_oneof![1..5000usize, 1..300_000usize, 1..3_000_000usize];
    (0..SIZE, length).prop_map(|(start, length)| start..(start + length).min(SIZE))
}

fn head(range: &Range<usize>) -> String {
    format!("Content-Range: bytes {}-{}/{SIZE}\r\nETag: \"1\"\r\n", range.start, range.end - 1)
}

fn serve(fault: Fault, request: &Request, answer: &mut Answer, content: &[u8]) {
    let range = request.range(SIZE);
    match fault {
        Fault::None => answer.serve(request, content, "ETag: \"1\"\r\n"),
        Fault::Close => answer.close(),
        Fault::Busy => answer.status("503 Service Unavailable", ""),
        Fault::Short => {
            let length = range.len();
            answer.head(
                "206 Partial Content",
                &format!("Content-Length: {length}\r\n{}", head(&range)),
            );
            answer.body(&content[range.start..range.start + length / 3]);
            answer.close();
        }
        Fault::Shortened => {
            let range = range.start..range.start + range.len().div_ceil(2);
            answer.partial(&content[range.clone()], range, SIZE, "ETag: \"1\"\r\n");
        }
        Fault::Chunked => {
            answer.head(
                "206 Partial Content",
                &format!("Transfer-Encoding: chunked\r\n{}", head(&range)),
            );
            for part in content[range].chunks(9999) {
                answer.raw(format!("{:x}\r\n", part.len()));
                answer.body(part);
                answer.raw("\r\n");
            }
            answer.raw("0\r\n\r\n");
        }
        Fault::CloseAfter => {
            answer.serve(request, content, "ETag: \"1\"\r\n");
            answer.close();
        }
    }
}

fn check(faults: Vec<Fault>, announced: &[Range<usize>], threads: &[Vec<Range<usize>>]) {
    let content = content(SIZE);
    let bytes = content.clone();
    let server = Server::start(move |request, answer| {
        serve(faults[request.number % faults.len()], request, answer, &bytes);
    });
    let mut options = options();
    options.timeout = Some(std::time::Duration::from_secs(60));
    options.retries = 30;
    let object = Object::open(&server.url("/disk"), &options).unwrap();
    let (first, later) = announced.split_at(announced.len() / 2);
    let announce = |ranges: &[Range<usize>]| {
        for range in ranges {
            object.will_need(range.start as u64, range.len() as u64);
        }
    };
    announce(first);
    thread::scope(|scope| {
        for ranges in threads {
            let (object, content) = (&object, &content);
            scope.spawn(move || {
                for range in ranges {
                    assert!(
                        read(object, range.clone()).unwrap() == content[range.clone()],
                        "{range:?}"
                    );
                }
            });
        }
        announce(later);
        for range in announced {
            assert!(read(&object, range.clone()).unwrap() == content[range.clone()], "{range:?}");
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn reads_equal_the_content(
        mut faults in prop::collection::vec(fault(), 1..40),
        announced in prop::collection::vec(range(), 0..12),
        threads in prop::collection::vec(prop::collection::vec(range(), 0..8), 0..4),
    ) {
        // A server that never works is not one that is read.
        faults.push(Fault::None);
        check(faults, &announced, &threads);
    }
}
