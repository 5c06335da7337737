use super::*;
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Request, StatusCode};
use std::sync::atomic::{AtomicU32, Ordering};

/// A container whose credentials last an hour, from the start on, and are numbered. It fails from `fails_from` on.
struct Issuer {
    calls: Arc<AtomicU32>,
    fails_from: u32,
    is_constant: bool,
}

impl Fetch for Issuer {
    fn fetch(&self, request: &Request<Bytes>) -> Result<Answer> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let url: Url = request.uri().to_string().parse()?;
        if call >= self.fails_from {
            return Err(crate::Error::new(ErrorKind::Connect, &url, "no route"));
        }
        let hour = time::stamp(at(u64::from(call + 1) * 3600));
        let expires = format!(
            "{}-{}-{}T{}:{}:{}",
            &hour[..4],
            &hour[4..6],
            &hour[6..8],
            &hour[9..11],
            &hour[11..13],
            &hour[13..]
        );
        let name = if self.is_constant { 0 } else { call };
        let body = format!(
            r#"{{"AccessKeyId":"AKI{name}","SecretAccessKey":"s","Token":"t","Expiration":"{expires}"}}"#
        );
        Ok(Answer { status: StatusCode::OK, headers: HeaderMap::new(), body: body.into() })
    }

    fn fetch_local(&self, request: &Request<Bytes>, _timeout: Duration) -> Result<Answer> {
        self.fetch(request)
    }
}

/// Returns a time, in seconds from the start.
fn at(seconds: u64) -> SystemTime {
    time::parse_iso("2026-01-01T00:00:00Z").unwrap() + Duration::from_secs(seconds)
}

const URL: &str = "s3://images/disk.qcow2";

fn store(
    variables: &[(&str, &str)],
    fails_from: u32,
    is_constant: bool,
) -> (Arc<Store>, Arc<AtomicU32>) {
    let calls = Arc::new(AtomicU32::new(0));
    let issuer = Issuer { calls: Arc::clone(&calls), fails_from, is_constant };
    let environment = Environment::with(variables);
    let store =
        Store::new(&URL.parse().unwrap(), &S3Options::default(), environment, Box::new(issuer));
    (store.unwrap(), calls)
}

const CONTAINER: (&str, &str) = ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/x");
const KEYS: [(&str, &str); 2] =
    [("AWS_ACCESS_KEY_ID", "AKIENV"), ("AWS_SECRET_ACCESS_KEY", "s3cr3t")];
const NO_MACHINE: (&str, &str) = ("AWS_EC2_METADATA_DISABLED", "true");

fn authorization(store: &Store, now: SystemTime) -> Option<String> {
    let mut parts = Request::get("https://h/k").body(()).unwrap().into_parts().0;
    store.sign_at(&mut parts, now).unwrap();
    Some(parts.headers.get(AUTHORIZATION)?.to_str().unwrap().to_owned())
}

fn answer(status: u16, headers: &[(&'static str, &'static str)], code: &str) -> Answer {
    let mut map = HeaderMap::new();
    for &(name, value) in headers {
        map.insert(name, value.parse().unwrap());
    }
    let body = format!("<Error><Code>{code}</Code></Error>").into();
    Answer { status: StatusCode::from_u16(status).unwrap(), headers: map, body }
}

#[test]
fn credentials_are_renewed_before_they_expire() {
    let (store, calls) = store(&[CONTAINER], u32::MAX, false);
    for (seconds, count) in [(0, 1), (1, 1), (3299, 1), (3300, 2), (3301, 2), (6899, 2), (6900, 3)]
    {
        if store.is_stale_at(at(seconds)) {
            store.renew_at(at(seconds)).unwrap();
        }
        assert_eq!(calls.load(Ordering::Relaxed), count, "{seconds}");
        let signed = authorization(&store, at(seconds)).unwrap();
        assert!(signed.contains(&format!("Credential=AKI{}/", count - 1)), "{signed}");
    }
}

#[test]
fn valid_credentials_are_used_while_there_are_no_new_ones() {
    let (store, calls) = store(&[CONTAINER], 1, false);
    store.renew_at(at(0)).unwrap();
    for (seconds, count) in [(3300, 2), (3301, 2), (3329, 2), (3330, 3), (3600 - 1, 4)] {
        if store.is_stale_at(at(seconds)) {
            store.renew_at(at(seconds)).unwrap();
        }
        assert_eq!(calls.load(Ordering::Relaxed), count, "{seconds}");
    }
    assert!(store.is_stale_at(at(3700)));
    assert_eq!(store.renew_at(at(3700)).unwrap_err().kind(), ErrorKind::Connect);
}

#[test]
fn refused_credentials_are_renewed_once() {
    let expired = answer(400, &[], "ExpiredToken");
    let (store, calls) = store(&[CONTAINER], u32::MAX, false);
    store.renew_at(at(0)).unwrap();
    assert!(!store.is_stale_at(at(1)));
    assert_eq!(store.refusal(&expired, at(1)), Refusal::Renew);
    assert!(store.is_stale_at(at(1)));
    store.renew_at(at(1)).unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    assert!(authorization(&store, at(2)).unwrap().contains("AKI1"));
}

#[test]
fn credentials_that_do_not_change_are_an_error() {
    let variables = [&KEYS[..], &[("AWS_SESSION_TOKEN", "t0ken")]].concat();
    let (store, _) = store(&variables, 0, false);
    store.renew_at(at(0)).unwrap();
    assert_eq!(store.refusal(&answer(400, &[], "ExpiredToken"), at(1)), Refusal::Renew);
    let error = store.renew_at(at(1)).unwrap_err();
    assert_eq!(
        (error.kind(), error.reason()),
        (ErrorKind::Denied, "the credentials expired: get new ones")
    );
}

#[test]
fn anonymous_requests_are_not_signed_and_are_told_what_to_do() {
    let (store, _) = store(&[NO_MACHINE], 0, false);
    assert!(store.is_stale_at(at(0)));
    store.renew_at(at(0)).unwrap();
    assert!(!store.is_stale_at(at(0)));
    assert_eq!(authorization(&store, at(0)), None);
    let Refusal::Because(ErrorKind::Denied, reason) =
        store.refusal(&answer(403, &[], "AccessDenied"), at(0))
    else {
        panic!("not denied");
    };
    assert!(reason.contains("AWS_ACCESS_KEY_ID"), "{reason}");
}

#[test]
fn the_clock_is_corrected_once() {
    let (store, _) = store(&KEYS, 0, false);
    store.renew_at(at(0)).unwrap();
    assert!(authorization(&store, at(0)).unwrap().contains("/20260101/"));
    let skewed = answer(403, &[("date", "Sat, 03 Jan 2026 12:00:00 GMT")], "RequestTimeTooSkewed");
    assert_eq!(store.refusal(&skewed, at(0)), Refusal::Renew);
    assert!(!store.is_stale_at(at(0)));
    assert!(authorization(&store, at(0)).unwrap().contains("/20260103/"));
    assert!(matches!(store.refusal(&skewed, at(1)), Refusal::Because(ErrorKind::Denied, _)));

    let (behind, _) = self::store(&KEYS, 0, false);
    behind.renew_at(at(0)).unwrap();
    let skewed = answer(403, &[("date", "Wed, 31 Dec 2025 00:00:00 GMT")], "RequestTimeTooSkewed");
    assert_eq!(behind.refusal(&skewed, at(0)), Refusal::Renew);
    assert!(authorization(&behind, at(0)).unwrap().contains("/20251231/"));
}

#[test]
fn another_region_of_aws_is_another_host() {
    let (store, _) = store(&KEYS, 0, false);
    store.renew_at(at(0)).unwrap();
    let first = store.target().unwrap();
    assert_eq!(first.url.to_string(), "https://images.s3.us-east-1.amazonaws.com/disk.qcow2");
    assert!(!store.has_moved(&first));
    let moved = answer(301, &[("x-amz-bucket-region", "eu-west-1")], "PermanentRedirect");
    let Refusal::Because(_, reason) = store.refusal(&moved, at(0)) else {
        panic!("not refused");
    };
    assert_eq!(reason, "the bucket is in the region eu-west-1");
    assert!(store.has_moved(&first));
    assert_eq!(
        store.target().unwrap().url.to_string(),
        "https://images.s3.eu-west-1.amazonaws.com/disk.qcow2"
    );
    assert!(authorization(&store, at(0)).unwrap().contains("/eu-west-1/s3/"));
    let again = answer(301, &[("x-amz-bucket-region", "eu-west-2")], "PermanentRedirect");
    store.refusal(&again, at(0));
    assert!(store.target().unwrap().url.to_string().contains("eu-west-1"), "corrected twice");
}

#[test]
fn another_region_of_an_endpoint_is_another_signature() {
    let (store, _) = store(&[&KEYS[..], &[("AWS_ENDPOINT_URL", "http://h:1")]].concat(), 0, false);
    store.renew_at(at(0)).unwrap();
    let first = store.target().unwrap();
    let mut malformed = answer(400, &[], "");
    malformed.body =
        "<Error><Code>AuthorizationHeaderMalformed</Code><Region>garage</Region></Error>".into();
    assert_eq!(store.refusal(&malformed, at(0)), Refusal::Renew);
    assert!(!store.has_moved(&first));
    assert!(authorization(&store, at(0)).unwrap().contains("/garage/s3/"));
    assert!(matches!(store.refusal(&malformed, at(0)), Refusal::Because(ErrorKind::Denied, _)));
}

#[test]
fn a_hostile_region_is_ignored() {
    let (store, _) = store(&KEYS, 0, false);
    let first = store.target().unwrap();
    for region in ["evil.example/", "a.b", "a@b", ""] {
        let moved = answer(301, &[("x-amz-bucket-region", region)], "PermanentRedirect");
        store.refusal(&moved, at(0));
        assert!(!store.has_moved(&first), "{region}");
    }
}

#[test]
fn a_busy_server_is_asked_again() {
    let (store, _) = store(&KEYS, 0, false);
    assert_eq!(store.refusal(&answer(400, &[], "RequestTimeout"), at(0)), Refusal::Busy);
    assert_eq!(
        store.refusal(&answer(412, &[], ""), at(0)),
        store.refusal(&answer(412, &[], ""), at(0))
    );
}
