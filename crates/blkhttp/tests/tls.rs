//! Connections over TLS, with a certificate authority of their own.

mod authority;
mod server;

use authority::Authority;
use blkhttp::{ErrorKind, HttpOptions, Object};
use server::{Server, content, read};

#[test]
fn a_trusted_server_is_read() {
    let content = content(9 << 20);
    let authority = Authority::new("one");
    let bytes = content.clone();
    let server = authority.start("127.0.0.1", move |request, answer| {
        answer.serve(request, &bytes, "ETag: \"1\"\r\n");
    });
    let url = format!("https://127.0.0.1:{}/disk", server.port()).parse().unwrap();
    let object = Object::open(&url, &authority.options()).unwrap();
    object.will_need(0, content.len() as u64);
    assert!(read(&object, 0..content.len()).unwrap() == *content);
    assert_eq!(object.statistics().retries, 0);
}

#[test]
fn untrusted_servers_are_refused_at_once() {
    let (authority, other) = (Authority::new("one"), Authority::new("two"));
    let server = authority.start("127.0.0.1", |_, answer| answer.status("200 OK", ""));
    let url = format!("https://127.0.0.1:{}/disk", server.port()).parse().unwrap();
    let error = Object::open(&url, &other.options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect);
    assert!(error.reason().contains("no known authority issued it"), "{error}");
    assert_eq!(server.connections(), 1);
    let server = authority.start("example.org", |_, answer| answer.status("200 OK", ""));
    let url = format!("https://127.0.0.1:{}/disk", server.port()).parse().unwrap();
    let error = Object::open(&url, &authority.options()).unwrap_err();
    assert!(error.reason().contains("not trusted"), "{error}");
    assert!(server.requests().is_empty());
}

#[test]
fn files_of_authorities_are_checked() {
    let url = "https://127.0.0.1:9/disk".parse().unwrap();
    let mut options = HttpOptions::default();
    options.tls_ca = Some("/nonexistent".into());
    let error = Object::open(&url, &options).unwrap_err();
    assert!(error.reason().starts_with("cannot read the authorities in /nonexistent"), "{error}");
    let file = tempfile::NamedTempFile::new().unwrap();
    options.tls_ca = Some(file.path().to_owned());
    let error = Object::open(&url, &options).unwrap_err();
    assert!(error.reason().ends_with("contains no certificate in PEM"), "{error}");
    assert!(blkhttp::prepare(&options).is_err());
}

#[test]
fn a_redirect_must_not_end_encryption() {
    let content = content(10);
    let plain = Server::good(content.clone());
    let location = format!("http://127.0.0.1:{}/disk", plain.port());
    let authority = Authority::new("one");
    let secure = authority.start("127.0.0.1", move |_, answer| {
        answer.status("302 Found", &format!("Location: {location}\r\n"));
    });
    let url = format!("https://127.0.0.1:{}/disk", secure.port()).parse().unwrap();
    let error = Object::open(&url, &authority.options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.reason().starts_with("the server redirects from https to http"), "{error}");
    assert!(plain.requests().is_empty());
    // The other way is allowed.
    let secure = authority.start("127.0.0.1", move |request, answer| {
        answer.serve(request, &content, "");
    });
    let location = format!("https://127.0.0.1:{}/disk", secure.port());
    let plain = Server::start(move |_, answer| {
        answer.status("302 Found", &format!("Location: {location}\r\n"));
    });
    let object = Object::open(&plain.url("/"), &authority.options()).unwrap();
    assert_eq!(object.size(), Some(10));
}
