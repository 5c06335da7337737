//! Credentials of a container: ECS, EKS Pod Identity, and agents that have the same interface.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::uri::Scheme;
use http::{HeaderValue, Request, StatusCode, Uri};

use super::service::{Credentials, Fetch, failed, of_json};
use crate::s3::environment::Environment;
use crate::s3::problem::{Problem, excerpt};

/// The service that a container gets its credentials from.
pub(super) struct Container {
    uri: Uri,
    token: Option<HeaderValue>,
}

impl Container {
    /// Returns the service that variables of the environment name.
    ///
    /// # Errors
    ///
    /// Fails if it is one that no token may be sent to, or the token cannot be read.
    pub fn of_environment(environment: &Environment) -> Result<Option<Self>, Problem> {
        let uri = match (environment.get(RELATIVE), environment.get(FULL)) {
            (Some(path), _) if path.starts_with('/') => format!("http://{ECS}{path}"),
            (Some(_), _) => return Err(invalid(RELATIVE)),
            (None, Some(uri)) => uri.to_owned(),
            (None, None) => return Ok(None),
        };
        let uri: Uri = uri.parse().map_err(|_| invalid(FULL))?;
        if !is_allowed(&uri) {
            let host = excerpt(uri.host().unwrap_or_default());
            return Err(Problem::denied(format!(
                "{FULL} names '{host}', which is neither this host nor reached by https"
            )));
        }
        let token = match environment.get(TOKEN_FILE).and_then(|path| environment.expand(path)) {
            Some(path) => Some(fs::read_to_string(&path).map_err(|error| {
                Problem::denied(format!("{}: {error}", excerpt(&path.to_string_lossy())))
            })?),
            None => environment.get(TOKEN).map(String::from),
        };
        let token = token.map(|token| {
            let mut value = HeaderValue::try_from(token.trim()).map_err(|_| invalid(TOKEN))?;
            value.set_sensitive(true);
            Ok(value)
        });
        Ok(Some(Self { uri, token: token.transpose()? }))
    }

    /// Gets the credentials.
    pub fn get(self, fetch: &dyn Fetch) -> Result<Credentials, Problem> {
        let mut request = Request::new(Bytes::new());
        *request.uri_mut() = self.uri;
        if let Some(token) = self.token {
            request.headers_mut().insert(AUTHORIZATION, token);
        }
        match fetch.fetch_local(&request, TIMEOUT) {
            Ok(answer) if answer.status == StatusCode::OK => of_json(SERVICE, &answer),
            other => Err(failed(SERVICE, &other)),
        }
    }
}

/// Returns whether a token may be sent there: by https to any host, by http to this host and to the agents of ECS and EKS.
fn is_allowed(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    let has_user = uri.authority().is_none_or(|it| it.as_str().contains('@'));
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let is_local = match address {
        Ok(IpAddr::V4(it)) => it.is_loopback() || AGENTS.contains(&it),
        Ok(IpAddr::V6(it)) => it.is_loopback() || it == EKS_V6,
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    };
    match uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTPS => !has_user && !host.is_empty(),
        Some(scheme) if *scheme == Scheme::HTTP => !has_user && is_local,
        _ => false,
    }
}

fn invalid(name: &str) -> Problem {
    Problem::denied(format!("the value of {name} is not valid"))
}

const RELATIVE: &str = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
/// Variable with the URL of the service.
pub(super) const FULL: &str = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
const TOKEN: &str = "AWS_CONTAINER_AUTHORIZATION_TOKEN";
/// Variable with the path of the token.
pub(super) const TOKEN_FILE: &str = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";

const SERVICE: &str = "the credentials service of the container";

/// Host of the agent of ECS.
const ECS: &str = "169.254.170.2";

const AGENTS: [Ipv4Addr; 2] = [Ipv4Addr::new(169, 254, 170, 2), Ipv4Addr::new(169, 254, 170, 23)];

const EKS_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23);

/// Time that the service may take. It may have to ask another one.
const TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_sent_to_this_host_or_by_https_only() {
        for (uri, allowed) in [
            ("http://169.254.170.2/v2", true),
            ("http://169.254.170.23/v1/credentials", true),
            ("http://[fd00:ec2::23]/v1/credentials", true),
            ("http://127.0.0.1:1338/x", true),
            ("http://127.9.9.9/x", true),
            ("http://[::1]:80/x", true),
            ("http://localhost:8080/x", true),
            ("https://credentials.example/x", true),
            ("http://credentials.example/x", false),
            ("http://169.254.169.254/x", false),
            ("http://10.0.0.1/x", false),
            ("http://127.0.0.1@evil.example/x", false),
            ("http://localhost.evil.example/x", false),
            ("/x", false),
        ] {
            assert_eq!(is_allowed(&uri.parse().unwrap()), allowed, "{uri}");
        }
    }
}
