//! Signature V4: how a request proves that it is from the owner of a secret key.
//!
//! Requests have no body. `Host`, `Range`, conditions and every header of Amazon is signed.
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html> specifies it.

use std::time::SystemTime;

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit, Mac};
use http::header::{AUTHORIZATION, IF_MATCH, RANGE};
use http::request::Parts;
use http::uri::Scheme;
use http::{HeaderName, HeaderValue, Uri};
use sha2::{Digest, Sha256};

use super::credentials::Credentials;
use super::problem::Problem;
use super::time::stamp;

/// Signs a request for S3, whose URI is absolute and encoded.
///
/// # Errors
///
/// Fails if a header is not ASCII, or the credentials contain characters that no header can have.
pub(crate) fn sign(
    request: &mut Parts,
    credentials: &Credentials,
    region: &str,
    now: SystemTime,
) -> Result<(), Problem> {
    let stamp = stamp(now);
    let day = stamp.get(..8).unwrap_or_default();
    request.headers.insert(DATE, header(&stamp, false)?);
    request.headers.insert(BODY, HeaderValue::from_static(EMPTY_BODY));
    request.headers.remove(TOKEN);
    if let Some(token) = credentials.token() {
        request.headers.insert(TOKEN, header(token, true)?);
    }

    let (names, headers) = signed_headers(request)?;
    let canonical = format!(
        "{}\n{}\n{}\n{headers}\n{names}\n{EMPTY_BODY}",
        request.method,
        request.uri.path(),
        canonical_query(request.uri.query().unwrap_or_default()),
    );
    let scope = format!("{day}/{region}/{SERVICE}/aws4_request");
    let digest = HEXLOWER.encode(&Sha256::digest(canonical));
    let to_sign = format!("{ALGORITHM}\n{stamp}\n{scope}\n{digest}");

    let mut key = format!("AWS4{}", credentials.secret_key()).into_bytes();
    for part in [day, region, SERVICE, "aws4_request"] {
        key = hmac(&key, part);
    }
    let signature = HEXLOWER.encode(&hmac(&key, &to_sign));
    let access_key = credentials.access_key();
    let value = format!(
        "{ALGORITHM} Credential={access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
    );
    request.headers.insert(AUTHORIZATION, header(&value, true)?);
    Ok(())
}

/// Returns the names of the headers that are signed, and a line for each, in order.
fn signed_headers(request: &Parts) -> Result<(String, String), Problem> {
    let mut lines = vec![("host".to_owned(), host(&request.uri))];
    for name in request.headers.keys().filter(|name| is_signed(name)) {
        let values = request.headers.get_all(name).iter().map(|value| {
            let text = value.to_str().map_err(|_| invalid(name.as_str()))?;
            Ok(text.split_ascii_whitespace().collect::<Vec<_>>().join(" "))
        });
        let values = values.collect::<Result<Vec<_>, Problem>>()?;
        lines.push((name.as_str().to_owned(), values.join(",")));
    }
    lines.sort();
    let names: Vec<_> = lines.iter().map(|(name, _)| name.as_str()).collect();
    let headers = lines.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    Ok((names.join(";"), headers))
}

/// Returns the value of `Host`: without the port if it is the scheme's.
fn host(uri: &Uri) -> String {
    let authority = uri.authority().map_or("", |it| it.as_str());
    let port = if uri.scheme() == Some(&Scheme::HTTP) { ":80" } else { ":443" };
    authority.strip_suffix(port).unwrap_or(authority).to_owned()
}

fn is_signed(name: &HeaderName) -> bool {
    *name == RANGE || *name == IF_MATCH || name.as_str().starts_with("x-amz-")
}

/// Returns an encoded query in the order in which it is signed. A name without a value gets an empty one.
fn canonical_query(query: &str) -> String {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let mut pairs: Vec<_> = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).collect();
    pairs.sort_unstable();
    let pairs: Vec<_> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key);
    let mac = mac.expect("HMAC takes keys of every length");
    mac.chain_update(text).finalize().into_bytes().to_vec()
}

fn header(value: &str, is_secret: bool) -> Result<HeaderValue, Problem> {
    let mut value = HeaderValue::try_from(value).map_err(|_| invalid("the credentials"))?;
    value.set_sensitive(is_secret);
    Ok(value)
}

fn invalid(what: &str) -> Problem {
    Problem::denied(format!("cannot sign the request: invalid characters in {what}"))
}

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

const SERVICE: &str = "s3";

const DATE: &str = "x-amz-date";
const BODY: &str = "x-amz-content-sha256";
const TOKEN: &str = "x-amz-security-token";

/// SHA-256 of no bytes.
const EMPTY_BODY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::s3::time::parse_iso;
    use http::Request;

    const HOST: &str = "https://examplebucket.s3.amazonaws.com";

    fn credentials(token: Option<&str>) -> Credentials {
        let (access, secret) = ("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
        Credentials::new(access, secret, token, None)
    }

    fn signed(path: &str, headers: &[(&'static str, &'static str)], token: Option<&str>) -> Parts {
        let mut request = Request::get(format!("{HOST}{path}"));
        for &(name, value) in headers {
            request = request.header(name, value);
        }
        let mut parts = request.body(()).unwrap().into_parts().0;
        let now = parse_iso("2013-05-24T00:00:00Z").unwrap();
        sign(&mut parts, &credentials(token), "us-east-1", now).unwrap();
        parts
    }

    fn authorization(parts: &Parts) -> &str {
        parts.headers[AUTHORIZATION].to_str().unwrap()
    }

    /// The examples of the documentation of Amazon S3, "Examples: Signature Calculations".
    #[test]
    fn signatures_are_those_of_the_documentation() {
        let scope = "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, SignedHeaders=";
        let get = signed("/test.txt", &[("range", "bytes=0-9")], None);
        let names = "host;range;x-amz-content-sha256;x-amz-date";
        let signature = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41";
        assert_eq!(authorization(&get), format!("{scope}{names}, Signature={signature}"));

        let names = "host;x-amz-content-sha256;x-amz-date";
        for (query, signature) in [
            ("?lifecycle", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
            (
                "?max-keys=2&prefix=J",
                "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
            ),
            (
                "?prefix=J&max-keys=2",
                "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
            ),
        ] {
            let list = signed(&format!("/{query}"), &[], None);
            assert_eq!(
                authorization(&list),
                format!("{scope}{names}, Signature={signature}"),
                "{query}"
            );
        }
    }

    #[test]
    fn a_token_and_headers_of_amazon_are_signed() {
        let headers =
            [("x-amz-checksum-mode", "ENABLED"), ("user-agent", "x"), ("if-match", "\"a\"")];
        let parts = signed("/k", &headers, Some("TOKEN"));
        let names = "SignedHeaders=host;if-match;x-amz-checksum-mode;x-amz-content-sha256;x-amz-date;x-amz-security-token,";
        assert!(authorization(&parts).contains(names), "{}", authorization(&parts));
        assert_eq!(parts.headers[TOKEN], "TOKEN");
    }

    #[test]
    fn the_port_of_the_scheme_is_not_signed() {
        for (uri, known) in [
            ("https://h:443/", "h"),
            ("http://h:80/", "h"),
            ("http://h:443/", "h:443"),
            ("https://h:9000/", "h:9000"),
            ("http://[::1]:80/", "[::1]"),
        ] {
            assert_eq!(host(&uri.parse().unwrap()), known, "{uri}");
        }
    }

    #[test]
    fn signing_again_replaces_what_was_signed() {
        let mut parts = signed("/k", &[], Some("TOKEN"));
        let later = parse_iso("2013-05-24T01:00:00Z").unwrap();
        sign(&mut parts, &credentials(None), "eu-west-1", later).unwrap();
        assert_eq!(parts.headers.get(TOKEN), None);
        assert_eq!(parts.headers.get_all(AUTHORIZATION).iter().count(), 1);
        assert!(authorization(&parts).contains("/eu-west-1/s3/"));
    }

    #[test]
    fn secrets_are_printed_nowhere() {
        let parts = signed("/k", &[], Some("TOKEN"));
        let printed = format!("{parts:?} {:?}", credentials(Some("TOKEN")));
        for secret in ["TOKEN", "wJalr", "Signature=", "AKIA"] {
            assert!(!printed.contains(secret), "{secret} in {printed}");
        }
        let mut parts = Request::get("http://h/").body(()).unwrap().into_parts().0;
        let wrong = Credentials::new("AKIA\n", "secret", None, None);
        let error = sign(&mut parts, &wrong, "r", SystemTime::now()).unwrap_err();
        assert_eq!(error.1, "cannot sign the request: invalid characters in the credentials");
    }
}
