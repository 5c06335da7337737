//! Credentials, and where they come from.
//!
//! The sources are tried in the order of the AWS tools: variables of the environment, a profile, a token of a web identity, a
//! container, and at last the metadata of the machine. A source that is configured but fails is an error, not a reason to
//! try the next one: requests would be sent as another identity, or as none. No program is run.

mod container;
mod machine;
mod service;
mod web_identity;

use std::path::PathBuf;

use super::environment::Environment;
use super::problem::{Problem, excerpt};
use super::profile::{self, Profile};
use crate::S3Options;

use container::Container;
pub(crate) use service::{Credentials, Fetch};
use web_identity::WebIdentity;

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
