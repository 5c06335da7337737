//! What the codes of errors of S3 mean, in one line with advice.

use http::{HeaderMap, StatusCode};

use super::problem::{Problem, excerpt};
use super::{place, xml};
use crate::ErrorKind;
use crate::answer::Answer;

/// An error that a server described.
#[derive(Debug, Default)]
pub(crate) struct Described {
    code: Option<String>,
    message: Option<String>,
    region: Option<String>,
}

/// What an error is a reason for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The bucket is in another region, or the signature is for another one.
    Region,
    /// The session of the credentials ended.
    Expired,
    /// The clocks of this host and of the server differ.
    Clock,
    /// The server is busy.
    Busy,
    /// Asking again is of no use.
    Final,
}

impl Described {
    /// Reads the description of an error. One that is missing or no XML is empty, as is the description of an answer to
    /// `HEAD`.
    pub fn read(answer: &Answer) -> Self {
        let body = answer.body.get(..MAX_BODY).unwrap_or(&answer.body);
        let values = xml::values(body, &["Code", "Message", "Region"]);
        let [code, message, region] = values.unwrap_or_default();
        Self { code, message, region: region_of(&answer.headers).or(region) }
    }

    /// Returns the region that the server names, if it is a valid one.
    pub fn region(&self) -> Option<&str> {
        self.region.as_deref().filter(|it| place::is_region(it))
    }

    /// Returns the cause.
    pub fn cause(&self, status: StatusCode) -> Cause {
        match (self.code.as_deref(), status.as_u16()) {
            (Some("PermanentRedirect" | "TemporaryRedirect" | "Redirect"), _) => Cause::Region,
            (Some("AuthorizationHeaderMalformed" | "IllegalLocationConstraintException"), _) => {
                Cause::Region
            }
            (Some("ExpiredToken" | "TokenRefreshRequired"), _) => Cause::Expired,
            (Some("RequestTimeTooSkewed"), _) => Cause::Clock,
            (
                Some(
                    "SlowDown" | "RequestTimeout" | "InternalError" | "ServiceUnavailable" | "Busy",
                ),
                _,
            ) => Cause::Busy,
            (None, 301 | 400) if self.region.is_some() => Cause::Region,
            _ => Cause::Final,
        }
    }

    /// Returns the reason, for requests that were signed or not. `None` if the status says more.
    pub fn problem(&self, status: StatusCode, is_signed: bool) -> Option<Problem> {
        if let Some(code) = self.code.as_deref() {
            return Some(self.by_code(code, is_signed));
        }
        match status {
            StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => Some(denied(is_signed)),
            StatusCode::NOT_FOUND => {
                Some(Problem(ErrorKind::NotFound, "there is no such object or bucket".into()))
            }
            _ => None,
        }
    }

    fn by_code(&self, code: &str, is_signed: bool) -> Problem {
        let (kind, reason) = match code {
            "NoSuchKey" => (ErrorKind::NotFound, "the bucket has no such object"),
            "NoSuchBucket" => (ErrorKind::NotFound, "the server has no such bucket"),
            "NoSuchVersion" => (ErrorKind::NotFound, "the object has no such version"),
            "AccessDenied" | "AllAccessDisabled" => return denied(is_signed),
            // The other name is versitygw's.
            "InvalidAccessKeyId" | "XAdminUserNotFound" => {
                (ErrorKind::Denied, "the server does not know the access key of the credentials")
            }
            "SignatureDoesNotMatch" => (
                ErrorKind::Denied,
                "the signature is wrong: the secret key does not belong to the access key, or a proxy changes requests",
            ),
            "ExpiredToken" | "TokenRefreshRequired" => {
                (ErrorKind::Denied, "the credentials expired: get new ones")
            }
            "InvalidToken" => (
                ErrorKind::Denied,
                "the token of the session is not valid: AWS_SESSION_TOKEN has to belong to the access key",
            ),
            "RequestTimeTooSkewed" => (
                ErrorKind::Denied,
                "the clock of this host differs from the server's, and correcting for it did not help",
            ),
            "PermanentRedirect" | "TemporaryRedirect" | "AuthorizationHeaderMalformed" => {
                return self.wrong_region();
            }
            "InvalidObjectState" => {
                (ErrorKind::Unsupported, "the object is archived: restore it first")
            }
            "InvalidBucketName" => (ErrorKind::Url, "the name of the bucket is not valid"),
            "NotImplemented" => {
                (ErrorKind::Unsupported, "the server does not implement the request")
            }
            _ => {
                let message = self.message.as_deref().map(excerpt).filter(|it| !it.is_empty());
                let message = message.map(|it| format!(": {it}")).unwrap_or_default();
                let reason = format!("the server refuses the request: {}{message}", excerpt(code));
                return Problem(ErrorKind::Denied, reason);
            }
        };
        Problem(kind, reason.into())
    }

    fn wrong_region(&self) -> Problem {
        let reason = match self.region() {
            Some(region) => format!("the bucket is in the region {region}"),
            None => "the bucket is in another region: give the right one".into(),
        };
        Problem(ErrorKind::Denied, reason)
    }
}

fn denied(is_signed: bool) -> Problem {
    Problem::denied(match is_signed {
        true => {
            "the credentials do not allow reading the object, or it does not exist and they do not allow listing the bucket"
        }
        false => {
            "the server wants credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or choose a profile that has them"
        }
    })
}

fn region_of(headers: &HeaderMap) -> Option<String> {
    Some(headers.get("x-amz-bucket-region")?.to_str().ok()?.to_owned())
}

/// Maximum size of the description of an error that is read.
/// Limit in bytes.
const MAX_BODY: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn answer(status: u16, headers: &[(&'static str, &'static str)], body: &str) -> Answer {
        let mut map = HeaderMap::new();
        for &(name, value) in headers {
            map.insert(name, value.parse().unwrap());
        }
        let status = StatusCode::from_u16(status).unwrap();
        Answer { status, headers: map, body: Bytes::from(body.to_owned()) }
    }

    fn described(status: u16, code: &str) -> (Cause, Problem) {
        let body = format!(
            "<Error><Code>{code}</Code><Message>text\n<![CDATA[\x1b[2J]]></Message></Error>"
        );
        let answer = answer(status, &[], &body);
        let described = Described::read(&answer);
        (described.cause(answer.status), described.problem(answer.status, true).unwrap())
    }

    #[test]
    fn codes_have_causes_and_kinds() {
        for (status, code, cause, kind) in [
            (404, "NoSuchKey", Cause::Final, ErrorKind::NotFound),
            (404, "NoSuchBucket", Cause::Final, ErrorKind::NotFound),
            (403, "AccessDenied", Cause::Final, ErrorKind::Denied),
            (403, "InvalidAccessKeyId", Cause::Final, ErrorKind::Denied),
            (403, "SignatureDoesNotMatch", Cause::Final, ErrorKind::Denied),
            (400, "ExpiredToken", Cause::Expired, ErrorKind::Denied),
            (403, "RequestTimeTooSkewed", Cause::Clock, ErrorKind::Denied),
            (301, "PermanentRedirect", Cause::Region, ErrorKind::Denied),
            (400, "AuthorizationHeaderMalformed", Cause::Region, ErrorKind::Denied),
            (403, "InvalidObjectState", Cause::Final, ErrorKind::Unsupported),
            (400, "RequestTimeout", Cause::Busy, ErrorKind::Denied),
        ] {
            let (found, problem) = described(status, code);
            assert_eq!((found, problem.0), (cause, kind), "{code}");
            assert!(!problem.1.contains('\n'), "{problem:?}");
        }
    }

    #[test]
    fn unknown_codes_show_escaped_text() {
        let (cause, problem) = described(400, "Strange\u{7}Code");
        assert_eq!(cause, Cause::Final);
        assert_eq!(
            problem.1,
            "the server refuses the request: Strange\\u{7}Code: text\\n\\u{1b}[2J"
        );
    }

    #[test]
    fn without_a_description_the_headers_and_the_status_count() {
        let moved = answer(301, &[("x-amz-bucket-region", "eu-west-1")], "");
        let read = Described::read(&moved);
        assert_eq!((read.cause(moved.status), read.region()), (Cause::Region, Some("eu-west-1")));
        let hostile = answer(301, &[("x-amz-bucket-region", "evil.example/")], "<html>");
        assert_eq!(Described::read(&hostile).region(), None);
        let forbidden = answer(403, &[], "not XML");
        let problem = Described::read(&forbidden).problem(forbidden.status, false).unwrap();
        assert!(problem.1.contains("AWS_ACCESS_KEY_ID"), "{problem:?}");
        assert!(
            Described::read(&answer(416, &[], ""))
                .problem(StatusCode::RANGE_NOT_SATISFIABLE, true)
                .is_none()
        );
    }
}
