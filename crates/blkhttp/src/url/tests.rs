use super::Url;
use crate::ErrorKind;

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

/// Returns a URL with everything that its `Display` hides.
fn whole(url: &Url) -> String {
    format!("{}://{}:{}{}", url.scheme_name(), url.host(), url.port().unwrap_or(0), url.target())
}

#[test]
fn urls_are_taken_apart() {
    let parsed = url("HTTPS://User:pass%40word@Example.ORG:8443/a/b c.qcow2?x=1&y");
    assert_eq!((parsed.host(), parsed.port()), ("example.org", Some(8443)));
    assert!(parsed.is_encrypted() && !parsed.is_s3());
    assert_eq!(parsed.path(), "/a/b%20c.qcow2");
    assert_eq!(parsed.query(), Some("x=1&y"));
    assert_eq!(parsed.file_name().as_deref(), Some("b c.qcow2"));
    // printf 'User:pass@word' | base64
    assert_eq!(parsed.authorization().as_deref(), Some("Basic VXNlcjpwYXNzQHdvcmQ="));
    let parsed = url("http://[2001:DB8::1]");
    assert_eq!((parsed.host(), parsed.port(), parsed.path()), ("[2001:db8::1]", Some(80), "/"));
    assert_eq!(parsed.file_name(), None);
    assert_eq!(whole(&url("http://h?q")), "http://h:80/?q");
    assert_eq!(url("http://h:/x").port(), Some(80));
    assert_eq!(url("http://h/\u{e4}%41|").path(), "/%C3%A4%41%7C");
}

#[test]
fn keys_of_s3_are_any_text() {
    let parsed = url("s3://my.bucket/a b/50%?#.img");
    assert_eq!((parsed.host(), parsed.port()), ("my.bucket", None));
    assert_eq!((parsed.path(), parsed.query()), ("/a b/50%?#.img", None));
    assert_eq!(parsed.file_name().as_deref(), Some("50%?#.img"));
    assert_eq!(parsed.to_string(), "s3://my.bucket/a b/50%?#.img");
    assert_eq!(parsed.join("c d.img").unwrap().path(), "/a b/c d.img");
}

#[test]
fn invalid_urls_are_refused() {
    for text in [
        "",
        "disk.img",
        "ftp://h/x",
        "http:/h/x",
        "http://",
        "http:///x",
        "http://h:0/x",
        "http://h:65536/x",
        "http://h:+1/x",
        "http://h:80:80/x",
        "http://h x/",
        "http://[::1/x",
        "http://[::1]x/",
        "http://[1.2.3.4]/",
        "http://h/x#y",
        "http://h/\n",
        "http://h\u{e4}/",
        "s3://bucket",
        "s3://bucket/",
        "s3:///key",
        "s3://b@d/key",
    ] {
        let error = text.parse::<Url>().expect_err(text);
        assert_eq!(error.kind(), ErrorKind::Url);
        assert_eq!(error.url(), "");
    }
    assert!(format!("http://h/{}", "a".repeat(20_000)).parse::<Url>().is_err());
}

#[test]
fn secrets_are_hidden() {
    let url = url("http://user:secret@h:81/x?X-Amz-Signature=secret&key&n=secret");
    assert_eq!(url.to_string(), "http://***@h:81/x?X-Amz-Signature=***&***&n=***");
    assert_eq!(format!("{url:?}"), format!("\"{url}\""));
}

#[test]
fn names_stay_beneath_the_folder() {
    let base = url("https://u:p@h/a/b/disk.vmdk?token=1");
    let joined = |name: &str| base.join(name).map(|url| whole(&url));
    assert_eq!(joined("x.img").unwrap(), "https://h:443/a/b/x.img");
    assert_eq!(joined("c/x y?%#.img").unwrap(), "https://h:443/a/b/c/x%20y%3F%25%23.img");
    assert_eq!(joined("\u{e4}").unwrap(), "https://h:443/a/b/%C3%A4");
    assert_eq!(joined("...").unwrap(), "https://h:443/a/b/...");
    assert!(base.join("x").unwrap().authorization().is_some());
    for name in [
        "",
        "/",
        "/x",
        "//h/x",
        "..",
        "../x",
        "c/../../x",
        "c/..",
        ".",
        "./x",
        "c//x",
        "c/",
        "\\x",
        "..\\x",
        "http://h/x",
        "file:x",
        "%2e%2e/x",
        "%2E./x",
        "c%2fx",
        "c%5Cx",
        "%252e%252e/x",
        "c%252fx",
        "%25252525252fx",
        "a\nb",
        "a%0ab",
        "a\0",
    ] {
        let error = base.join(name).expect_err(name);
        assert_eq!(error.kind(), ErrorKind::Url, "{name}");
        assert!(!error.to_string().contains("token=1"));
    }
}

#[test]
fn redirects_are_resolved_as_in_rfc_3986() {
    let base = url("http://a/b/c/d;p?q");
    for (location, expected) in [
        ("g", "/b/c/g"),
        ("./g", "/b/c/g"),
        ("g/", "/b/c/g/"),
        ("/g", "/g"),
        ("?y", "/b/c/d;p?y"),
        ("g?y", "/b/c/g?y"),
        ("g#s", "/b/c/g"),
        ("", "/b/c/d;p?q"),
        (".", "/b/c/"),
        ("..", "/b/"),
        ("../g", "/b/g"),
        ("../..", "/"),
        ("../../../g", "/g"),
        ("/./g", "/g"),
        ("/../g", "/g"),
        ("g.", "/b/c/g."),
        ("..g", "/b/c/..g"),
        ("./g/../h", "/b/c/h"),
        ("g?y/../x", "/b/c/g?y/../x"),
        ("g h|", "/b/c/g%20h%7C"),
        ("/x?u=http://h/", "/x?u=http://h/"),
    ] {
        assert_eq!(base.follow(location).unwrap().target(), expected, "{location}");
    }
    assert_eq!(whole(&base.follow("//g/x").unwrap()), "http://g:80/x");
    assert_eq!(whole(&base.follow("https://g:1/x/../y?z#f").unwrap()), "https://g:1/y?z");
    for location in ["mailto:a@b", "ftp://h/", "s3://b/k", "http://", "x\ny", "g:h"] {
        assert!(base.follow(location).is_err(), "{location}");
    }
    let with_user = url("http://u:p@a/b");
    assert!(with_user.follow("/c").unwrap().authorization().is_some());
    assert!(with_user.follow("//a/c").unwrap().authorization().is_none());
}
