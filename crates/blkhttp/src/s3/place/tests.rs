use super::*;
use crate::ErrorKind;

fn options(endpoint: Option<&str>, path_style: Option<bool>) -> S3Options {
    S3Options { endpoint: endpoint.map(String::from), path_style, ..S3Options::default() }
}

fn place(url: &str, options: &S3Options, variables: &[(&str, &str)]) -> Result<Place, Problem> {
    let environment = Environment::with(variables);
    let profile = Profile::read(None, &environment)?;
    Place::new(&url.parse().unwrap(), options, &profile, &environment)
}

fn url(url: &str, options: &S3Options, region: &str) -> String {
    place(url, options, &[]).unwrap().url(region)
}

#[test]
fn buckets_of_aws_are_hosts_unless_they_have_dots() {
    let options = options(None, None);
    let known = "https://images.s3.eu-west-1.amazonaws.com/a/b%20c.qcow2";
    assert_eq!(url("s3://images/a/b c.qcow2", &options, "eu-west-1"), known);
    let known = "https://s3.eu-west-1.amazonaws.com/my.images/a";
    assert_eq!(url("S3://my.images/a", &options, "eu-west-1"), known);
    let known = "https://s3.us-east-1.amazonaws.com/My_Bucket/a";
    assert_eq!(url("s3://My_Bucket/a", &options, "us-east-1"), known);
    let known = "https://images.s3.cn-north-1.amazonaws.com.cn/a";
    assert_eq!(url("s3://images/a", &options, "cn-north-1"), known);
}

#[test]
fn an_endpoint_has_buckets_in_the_path_by_default() {
    for (endpoint, path_style, known) in [
        ("http://127.0.0.1:9000", None, "http://127.0.0.1:9000/images/k"),
        ("https://Minio.Example:443/", None, "https://minio.example/images/k"),
        ("https://minio.example/base/", None, "https://minio.example/base/images/k"),
        ("https://minio.example:9000", Some(false), "https://images.minio.example:9000/k"),
        ("http://[::1]:9000", Some(true), "http://[::1]:9000/images/k"),
    ] {
        let options = options(Some(endpoint), path_style);
        assert_eq!(url("s3://images/k", &options, "us-east-1"), known, "{endpoint}");
    }
    let known = "https://s3.us-east-1.amazonaws.com/images/k";
    assert_eq!(url("s3://images/k", &options(None, Some(true)), "us-east-1"), known);
}

#[test]
fn keys_are_taken_literally() {
    let options = options(Some("http://h"), None);
    for (key, known) in [
        ("a//b/../c", "a//b/../c"),
        ("/a", "/a"),
        ("a%20b", "a%2520b"),
        ("a?b#c", "a%3Fb%23c"),
        ("ä+ö=ü@x:y", "%C3%A4%2B%C3%B6%3D%C3%BC%40x%3Ay"),
    ] {
        let known = format!("http://h/images/{known}");
        assert_eq!(url(&format!("s3://images/{key}"), &options, "r"), known, "{key}");
    }
}

#[test]
fn the_order_of_endpoints() {
    let find = |endpoint: Option<&str>, variables: &[(&str, &str)]| {
        place("s3://images/k", &options(endpoint, None), variables).unwrap().url("us-east-1")
    };
    let (all, s3) = (("AWS_ENDPOINT_URL", "http://all"), ("AWS_ENDPOINT_URL_S3", "http://s3"));
    assert_eq!(find(Some("http://option"), &[all, s3]), "http://option/images/k");
    assert_eq!(find(None, &[all, s3]), "http://s3/images/k");
    assert_eq!(find(None, &[all]), "http://all/images/k");
    let ignored = ("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "TRUE");
    assert_eq!(find(None, &[all, s3, ignored]), "https://images.s3.us-east-1.amazonaws.com/k");
    assert_eq!(find(Some("http://option"), &[ignored]), "http://option/images/k");
}

#[test]
fn the_order_of_regions() {
    let find = |option: Option<&str>, variables: &[(&str, &str)]| {
        let options = S3Options { region: option.map(String::from), ..S3Options::default() };
        let environment = Environment::with(variables);
        let profile = Profile::read(None, &environment)?;
        region(&options, &profile, &environment)
    };
    let (one, other) = (("AWS_REGION", "eu-west-1"), ("AWS_DEFAULT_REGION", "eu-west-2"));
    assert_eq!(find(Some("garage"), &[one, other]).unwrap(), "garage");
    assert_eq!(find(None, &[one, other]).unwrap(), "eu-west-1");
    assert_eq!(find(None, &[other, ("AWS_REGION", "")]).unwrap(), "eu-west-2");
    assert_eq!(find(None, &[]).unwrap(), "us-east-1");
    for wrong in ["", "a.b", "evil.example/", "x@y", "-a", "é"] {
        let error = find(Some(wrong), &[]).unwrap_err();
        assert_eq!(error.0, ErrorKind::Url, "{wrong}");
    }
}

#[test]
fn urls_and_endpoints_that_are_refused() {
    let express = place("s3://zone--use1-az4--x-s3/key", &options(None, None), &[]).unwrap_err();
    assert_eq!(express.0, ErrorKind::Unsupported);

    for wrong in
        ["minio:9000", "ftp://h", "http://", "http://u:secret@h", "http://h/?a=b", "http://h h"]
    {
        let error = place("s3://images/k", &options(Some(wrong), None), &[]).unwrap_err();
        assert_eq!(error.0, ErrorKind::Url, "{wrong}");
        assert!(!error.1.contains("secret"), "{error:?}");
    }
    let virtual_address = options(Some("http://127.0.0.1:9000"), Some(false));
    assert!(place("s3://images/k", &virtual_address, &[]).is_err());
    assert!(place("s3://my.images/k", &options(None, Some(false)), &[]).is_err());
}
