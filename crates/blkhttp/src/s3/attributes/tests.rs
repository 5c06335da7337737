use super::*;
use bytes::Bytes;
use http::HeaderMap;
use std::cell::RefCell;

type Answers<'a> = Vec<(&'a str, u16, Vec<(&'static str, String)>, String)>;

/// Answers requests in order, each of which begins with the text of its answer.
fn ask_of(asked: Asked<'_>, answers: Answers<'_>) -> Result<Vec<StoredChecksum>, Problem> {
    let answers = RefCell::new(answers.into_iter());
    let ask = |method: Method, query: &str, headers: &[(&'static str, &str)]| {
        let request = format!("{method} {query} {headers:?}");
        let (start, status, headers, body) = answers.borrow_mut().next().expect("no more requests");
        assert!(request.starts_with(start), "{request} instead of {start}");
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(name, value.parse().unwrap());
        }
        Ok(Answer {
            status: StatusCode::from_u16(status).unwrap(),
            headers: map,
            body: Bytes::from(body),
        })
    };
    let found = asked.checksums(&ask).unwrap();
    assert!(answers.borrow_mut().next().is_none(), "requests are missing");
    found
}

const MD5: &str = "25f9e794323b453885f5181f1b624d0b";
const CRC: &str = "y/Q5Jg==";

const S3: Asked<'static> = Asked { is_s3: true, size: 25, tag: None };

fn described(count: u32) -> (&'static str, u16, Vec<(&'static str, String)>, String) {
    let headers = vec![
        ("etag", format!("\"{MD5}-{count}\"")),
        ("x-amz-checksum-crc32", format!("{CRC}-{count}")),
        ("x-amz-checksum-type", "COMPOSITE".to_owned()),
    ];
    ("HEAD  [(\"x-amz-checksum-mode\", \"ENABLED\")]", 200, headers, String::new())
}

/// An answer as in the documentation of `GetObjectAttributes`.
fn page(parts: &[(u32, u64)], is_truncated: bool) -> String {
    let parts = parts.iter().map(|(number, size)| {
        format!("<Part><PartNumber>{number}</PartNumber><Size>{size}</Size><ChecksumCRC32>{CRC}</ChecksumCRC32></Part>")
    });
    let parts = parts.collect::<String>();
    format!(
        "<?xml version=\"1.0\"?><GetObjectAttributesResponse xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><ETag>{MD5}-3</ETag>\
         <Checksum><ChecksumCRC32>AAAAAA==</ChecksumCRC32><ChecksumType>COMPOSITE</ChecksumType></Checksum><ObjectParts>\
         <PartsCount>3</PartsCount><IsTruncated>{is_truncated}</IsTruncated>{parts}</ObjectParts></GetObjectAttributesResponse>"
    )
}

fn sizes(checksum: &StoredChecksum) -> (Vec<u64>, bool) {
    match &checksum.kind {
        ChecksumKind::Composite { parts, are_sizes_assumed, .. } => {
            (parts.iter().map(|part| part.size).collect(), *are_sizes_assumed)
        }
        ChecksumKind::Whole => panic!("not composite"),
    }
}

#[test]
fn parts_are_listed_in_pages() {
    let attributes = |body| {
        ("GET attributes [(\"x-amz-object-attributes\", \"ETag,ObjectParts\")", 200, vec![], body)
    };
    let pages = vec![
        described(3),
        attributes(page(&[(1, 10), (2, 7)], true)),
        attributes(page(&[(5, 8)], false)),
    ];
    let found = ask_of(S3, pages).unwrap();
    assert_eq!(found.len(), 2);
    for checksum in &found {
        assert_eq!(sizes(checksum), (vec![10, 7, 8], false), "{checksum:?}");
        let ChecksumKind::Composite { parts, .. } = &checksum.kind else { panic!("not composite") };
        let is_crc = checksum.algorithm == ChecksumAlgorithm::Crc32;
        assert!(parts.iter().all(|part| part.checksum.is_some() == is_crc), "{checksum:?}");
        if is_crc {
            assert_eq!(parts[0].checksum.as_deref(), Some(&[0xcb, 0xf4, 0x39, 0x26][..]));
        }
    }
}

#[test]
fn without_a_list_the_first_part_counts() {
    let denied = ("GET attributes", 403, vec![], String::new());
    let first = |size: u64| {
        ("HEAD partNumber=1", 206, vec![("content-length", size.to_string())], String::new())
    };
    let found = ask_of(S3, vec![described(3), denied.clone(), first(10)]).unwrap();
    assert_eq!(sizes(&found[0]), (vec![10, 10, 5], true));
    for wrong in [0, 8, 13, 25, u64::MAX] {
        let found = ask_of(S3, vec![described(3), denied.clone(), first(wrong)]).unwrap();
        assert_eq!(sizes(&found[0]), (vec![], false), "{wrong}");
    }
    let unsupported =
        ("HEAD partNumber=1", 200, vec![("content-length", "25".to_owned())], String::new());
    let found = ask_of(S3, vec![described(3), denied.clone(), unsupported]).unwrap();
    assert_eq!(sizes(&found[0]), (vec![], false));
    let found = ask_of(S3, vec![described(1), denied, first(25)]).unwrap();
    assert_eq!(sizes(&found[0]), (vec![25], false));
}

#[test]
fn hostile_lists_are_ignored() {
    let no_part = || ("HEAD partNumber=1", 404, vec![], String::new());
    let many: Vec<_> = (1..=10_001).map(|number| (number, 0)).collect();
    for body in [
        page(&[(1, 10), (1, 15)], false),
        page(&[(2, 10), (1, 15)], false),
        page(&[(0, 25)], false),
        page(&[(1, 10), (2, 16)], false),
        page(&[(1, u64::MAX), (2, 26)], false),
        page(&[(1, 10), (2, 14)], false),
        page(&[(10_001, 25)], false),
        page(&many, false),
        page(&[], true),
        page(&[(1, 25)], false).replace("<Size>", "<Size>-"),
        page(&[(1, 25)], false).replace("<PartNumber>1</PartNumber>", ""),
        "<!DOCTYPE x><x/>".to_owned(),
        String::new(),
    ] {
        let found = ask_of(
            S3,
            vec![described(3), ("GET attributes", 200, vec![], body.clone()), no_part()],
        )
        .unwrap();
        assert_eq!(sizes(&found[0]), (vec![], false), "{body:.600}");
    }
}

#[test]
fn a_list_of_another_number_of_parts_is_not_that_of_the_checksum() {
    let listed = ("GET attributes", 200, vec![], page(&[(1, 10), (2, 15)], false));
    let found = ask_of(S3, vec![described(3), listed]).unwrap();
    assert_eq!(sizes(&found[0]), (vec![], false));
}

#[test]
fn an_endless_list_ends() {
    let asked = Asked { is_s3: true, size: 1000, tag: None };
    let mut answers = vec![described(3)];
    for number in 1..=MAX_PAGES {
        answers.push(("GET attributes", 200, vec![], page(&[(number, 1)], true)));
    }
    answers.push(("HEAD partNumber=1", 404, vec![], String::new()));
    assert_eq!(sizes(&ask_of(asked, answers).unwrap()[0]), (vec![], false));
}

#[test]
fn another_object_by_now_is_an_error() {
    let tag = format!("\"{MD5}-3\"");
    let asked = Asked { tag: Some(&tag), ..S3 };
    let gone = (
        "HEAD  [(\"x-amz-checksum-mode\", \"ENABLED\"), (\"if-match\"",
        412,
        vec![],
        String::new(),
    );
    assert_eq!(ask_of(asked, vec![gone]).unwrap_err().0, ErrorKind::Changed);
    let missing = ("HEAD ", 404, vec![], String::new());
    assert_eq!(ask_of(S3, vec![missing]).unwrap_err().0, ErrorKind::NotFound);

    let other = Asked { tag: Some("\"x-3\""), ..S3 };
    let mut head = described(3);
    head.0 = "HEAD ";
    let listed = ("GET attributes", 200, vec![], page(&[(1, 10), (2, 7), (3, 8)], false));
    let part = (
        "HEAD partNumber=1",
        206,
        vec![("content-length", "10".into()), ("etag", tag.clone())],
        String::new(),
    );
    assert_eq!(sizes(&ask_of(other, vec![head, listed, part]).unwrap()[0]), (vec![], false));
}

#[test]
fn other_servers_are_asked_by_get() {
    let asked = Asked { is_s3: false, size: 9, tag: Some("W/\"1\"") };
    let headers = vec![
        ("content-range", "bytes 0-0/9".to_owned()),
        ("x-goog-hash", "crc32c=4waSgw==".to_owned()),
    ];
    let answer = ("GET  [(\"range\", \"bytes=0-0\")]", 206, headers, "1".to_owned());
    let found = ask_of(asked, vec![answer]).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].algorithm, &found[0].kind),
        (ChecksumAlgorithm::Crc32c, &ChecksumKind::Whole)
    );
    let empty = Asked { size: 0, ..asked };
    assert_eq!(ask_of(empty, vec![("GET ", 416, vec![], String::new())]), Ok(vec![]));
}
