//! Credentials, and services that give them.

use std::fmt;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::Request;
use serde::Deserialize;

use crate::ErrorKind;
use crate::answer::Answer;
use crate::s3::problem::{Problem, excerpt};
use crate::s3::time::parse_iso;

/// What signs requests. `Debug` prints no part of it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(super) access_key: String,
    secret_key: String,
    pub(super) token: Option<String>,
    pub(super) expires: Option<SystemTime>,
}

/// Sends the requests that get credentials. Redirects are not followed.
pub(crate) trait Fetch {
    /// Sends a request to a public service, and returns its answer.
    fn fetch(&self, request: &Request<Bytes>) -> crate::Result<Answer>;

    /// Sends a request to a service of this machine: without a proxy, once, and for at most `timeout`.
    fn fetch_local(&self, request: &Request<Bytes>, timeout: Duration) -> crate::Result<Answer>;
}

impl Credentials {
    /// Creates credentials, which belong to a session if they have a token.
    pub fn new(
        access_key: &str,
        secret_key: &str,
        token: Option<&str>,
        expires: Option<SystemTime>,
    ) -> Self {
        let token = token.filter(|it| !it.is_empty()).map(String::from);
        Self {
            access_key: access_key.to_owned(),
            secret_key: secret_key.to_owned(),
            token,
            expires,
        }
    }

    /// Returns the name of the key.
    pub fn access_key(&self) -> &str {
        &self.access_key
    }

    /// Returns the key.
    pub fn secret_key(&self) -> &str {
        &self.secret_key
    }

    /// Returns the token of the session.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Returns whether they expire within `margin`.
    pub fn expire_within(&self, margin: Duration, now: SystemTime) -> bool {
        self.expires.is_some_and(|end| {
            end.duration_since(now).is_ok_and(|left| left <= margin) || end < now
        })
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

/// Credentials in JSON, as containers and machines get them.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Document {
    code: Option<String>,
    access_key_id: Option<String>,
    secret_access_key: Option<String>,
    token: Option<String>,
    expiration: Option<String>,
}

/// Reads credentials in JSON from the answer of `service`.
pub(super) fn of_json(service: &str, answer: &Answer) -> Result<Credentials, Problem> {
    // The message of the parser could contain a secret.
    let invalid = || Problem(ErrorKind::Protocol, format!("{service} sent no valid credentials"));
    let document: Document = serde_json::from_slice(&answer.body).map_err(|_| invalid())?;
    if let Some(code) = document.code.filter(|code| code != "Success") {
        return Err(Problem::denied(format!("{service} gives no credentials: {}", excerpt(&code))));
    }
    let expires = match &document.expiration {
        Some(text) => Some(parse_iso(text).ok_or_else(invalid)?),
        None => None,
    };
    match (document.access_key_id, document.secret_access_key) {
        (Some(access), Some(secret)) if !access.is_empty() && !secret.is_empty() => {
            Ok(Credentials::new(&access, &secret, document.token.as_deref(), expires))
        }
        _ => Err(invalid()),
    }
}

/// Returns the error of a service that cannot be reached, or whose answer is not `200 OK`.
pub(super) fn failed(service: &str, answer: &crate::Result<Answer>) -> Problem {
    match answer {
        Ok(answer) => Problem::denied(format!(
            "{service} gives no credentials: status {}",
            answer.status.as_u16()
        )),
        Err(error) => {
            Problem(error.kind(), format!("{service} gives no credentials: {}", error.reason()))
        }
    }
}
