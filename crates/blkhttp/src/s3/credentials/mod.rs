//! Credentials, and where they come from.
//!
//! The sources are tried in the order of the AWS tools: variables of the environment, a profile, a token of a web identity, a
//! container, and at last the metadata of the machine. A source that is configured but fails is an error, not a reason to
//! try the next one: requests would be sent as another identity, or as none. No program is run.

mod container;
mod machine;
mod web_identity;

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::Request;
use serde::Deserialize;

use super::environment::Environment;
use super::problem::{Problem, excerpt};
use super::profile::{self, Profile};
use super::time::parse_iso;
use crate::client::Answer;
use crate::{ErrorKind, S3Options};

use container::Container;
use web_identity::WebIdentity;

/// What signs requests. `Debug` prints no part of it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    access_key: String,
    secret_key: String,
    token: Option<String>,
    expires: Option<SystemTime>,
}

/// Sends the requests that get credentials. Redirects are not followed.
pub(crate) trait Fetch {
    /// Sends a request to a public service, and returns its answer.
    fn fetch(&self, request: &Request<Bytes>) -> crate::Result<Answer>;

    /// Sends a request to a service of this machine: without a proxy, once, and for at most `timeout`.
    fn fetch_local(&self, request: &Request<Bytes>, timeout: Duration) -> crate::Result<Answer>;
}

/// Gets the credentials of the first source that is configured. `None` if none is, so requests are not signed.
///
/// # Errors
///
/// Fails if the source fails, or is one that is not supported.
pub(crate) fn find(
    options: &S3Options,
    environment: &Environment,
    fetch: &dyn Fetch,
) -> Result<Option<Credentials>, Problem> {
    // A profile that was chosen by an option replaces the variables.
    if options.profile.is_none()
        && let Some(found) = of_environment(environment)?
    {
        return Ok(Some(found));
    }
    let profile = Profile::read(options.profile.as_deref(), environment)?;
    if options.profile.is_none()
        && let Some(identity) = WebIdentity::of_environment(environment)
    {
        return identity.get(environment, &profile, fetch).map(Some);
    }
    if let Some(found) = of_profile(&profile, environment, fetch)? {
        return Ok(Some(found));
    }
    if options.profile.is_some() {
        let name = excerpt(profile.name());
        return Err(Problem::denied(format!("the profile '{name}' has no credentials")));
    }
    if let Some(container) = Container::of_environment(environment)? {
        return container.get(fetch).map(Some);
    }
    machine::get(environment, fetch)
}

/// Returns the files that the sources may read. Not all of them exist.
pub(crate) fn files(options: &S3Options, environment: &Environment) -> Vec<PathBuf> {
    let mut files: Vec<_> = profile::files(environment).into();
    let token = ["AWS_WEB_IDENTITY_TOKEN_FILE", container::TOKEN_FILE];
    files.extend(token.map(|name| environment.get(name).and_then(|path| environment.expand(path))));
    if let Ok(profile) = Profile::read(options.profile.as_deref(), environment) {
        let token = profile.get("web_identity_token_file");
        files.push(token.and_then(|path| environment.expand(path)));
    }
    files.into_iter().flatten().collect()
}

fn of_environment(environment: &Environment) -> Result<Option<Credentials>, Problem> {
    let [access, secret] =
        ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].map(|it| environment.get(it));
    match (access, secret) {
        (Some(access), Some(secret)) => {
            let token = environment.get("AWS_SESSION_TOKEN");
            Ok(Some(Credentials::new(access, secret, token, None)))
        }
        (None, None) => Ok(None),
        _ => Err(Problem::denied("only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set")),
    }
}

fn of_profile(
    profile: &Profile,
    environment: &Environment,
    fetch: &dyn Fetch,
) -> Result<Option<Credentials>, Problem> {
    if let Some(identity) = WebIdentity::of_profile(profile, environment) {
        return identity.get(environment, profile, fetch).map(Some);
    }
    let refused = |name: &str| {
        let profile = excerpt(profile.name());
        let advice =
            "export its credentials, as 'aws configure export-credentials --format env' does";
        Problem::unsupported(format!(
            "the profile '{profile}' has '{name}', which is not supported: {advice}"
        ))
    };
    if profile.get("role_arn").is_some() {
        return Err(refused("role_arn"));
    }
    match (profile.get("aws_access_key_id"), profile.get("aws_secret_access_key")) {
        (Some(access), Some(secret)) => {
            let token = profile.get("aws_session_token");
            return Ok(Some(Credentials::new(access, secret, token, None)));
        }
        (None, None) => {}
        _ => {
            let name = excerpt(profile.name());
            let reason = format!(
                "the profile '{name}' has one of aws_access_key_id and aws_secret_access_key only"
            );
            return Err(Problem::denied(reason));
        }
    }
    match REFUSED.iter().find(|name| profile.get(name).is_some()) {
        Some(name) => Err(refused(name)),
        None => Ok(None),
    }
}

impl Credentials {
    /// Creates credentials, which are those of a session if they have a token.
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
fn of_json(service: &str, answer: &Answer) -> Result<Credentials, Problem> {
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
fn failed(service: &str, answer: &crate::Result<Answer>) -> Problem {
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

/// Values of profiles whose credentials come from a program or a browser.
const REFUSED: [&str; 5] =
    ["credential_process", "sso_session", "sso_start_url", "sso_account_id", "login_session"];

/// Variables with the URLs of services that have ports of their own: of STS, of a container, of a machine, and of S3 itself.
pub(crate) const ENDPOINTS: [&str; 5] = [
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL_STS",
    "AWS_ENDPOINT_URL",
    container::FULL,
    machine::ENDPOINT,
];

#[cfg(test)]
mod tests;
