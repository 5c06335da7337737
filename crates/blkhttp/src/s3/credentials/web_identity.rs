//! Credentials for a token of a web identity, as pods of Kubernetes have one (IRSA).

use std::fs;
use std::path::PathBuf;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, StatusCode};

use super::service::{Credentials, Fetch, failed};
use crate::s3::environment::Environment;
use crate::s3::problem::{Problem, excerpt};
use crate::s3::profile::Profile;
use crate::s3::time::parse_iso;
use crate::s3::{encode, place, xml};
use crate::{ErrorKind, S3Options};

/// A role, and the token that allows to have it.
pub(super) struct WebIdentity {
    role: String,
    session: String,
    token_file: PathBuf,
}

impl WebIdentity {
    /// Returns what variables of the environment name.
    pub fn of_environment(environment: &Environment) -> Option<Self> {
        let token_file = environment.expand(environment.get("AWS_WEB_IDENTITY_TOKEN_FILE")?)?;
        let session = environment.get("AWS_ROLE_SESSION_NAME").unwrap_or(SESSION).to_owned();
        Some(Self { role: environment.get("AWS_ROLE_ARN")?.to_owned(), session, token_file })
    }

    /// Returns what a profile names.
    pub fn of_profile(profile: &Profile, environment: &Environment) -> Option<Self> {
        let token_file = environment.expand(profile.get("web_identity_token_file")?)?;
        let session = profile.get("role_session_name").unwrap_or(SESSION).to_owned();
        Some(Self { role: profile.get("role_arn")?.to_owned(), session, token_file })
    }

    /// Gets credentials from the security token service (STS).
    pub fn get(
        &self,
        environment: &Environment,
        profile: &Profile,
        fetch: &dyn Fetch,
    ) -> Result<Credentials, Problem> {
        // The file is read every time, because its token is replaced before it expires.
        let token = fs::read_to_string(&self.token_file).map_err(|error| {
            Problem::denied(format!("{}: {error}", excerpt(&self.token_file.to_string_lossy())))
        })?;
        let form = [
            ("Action", "AssumeRoleWithWebIdentity"),
            ("Version", "2011-06-15"),
            ("RoleArn", &self.role),
            ("RoleSessionName", &self.session),
            ("WebIdentityToken", token.trim()),
        ];
        let form: Vec<_> = form.map(|(name, it)| format!("{name}={}", encode::value(it))).into();
        let request = Request::builder()
            .method(Method::POST)
            .uri(endpoint(environment, profile)?)
            .header(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"))
            .body(Bytes::from(form.join("&")));
        let request = request.map_err(|_| Problem::url("the endpoint of STS is not valid"))?;
        let answer = match fetch.fetch(&request) {
            Ok(answer) if answer.status == StatusCode::OK => answer,
            Ok(answer) => {
                let code = xml::values(&answer.body, &["Code"]).and_then(|[code]| code);
                let code =
                    excerpt(&code.unwrap_or_else(|| format!("status {}", answer.status.as_u16())));
                return Err(Problem::denied(format!(
                    "{SERVICE} gives no credentials for the web identity: {code}"
                )));
            }
            failure => return Err(failed(SERVICE, &failure)),
        };
        let names = ["AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"];
        let values = xml::values(&answer.body, &names);
        let invalid =
            || Problem(ErrorKind::Protocol, format!("{SERVICE} sent no valid credentials"));
        let Some([Some(access), Some(secret), token, Some(expires)]) = values else {
            return Err(invalid());
        };
        let expires = parse_iso(&expires).ok_or_else(invalid)?;
        Ok(Credentials::new(&access, &secret, token.as_deref(), Some(expires)))
    }
}

/// Returns the URL of STS: an own one, or the region's.
fn endpoint(environment: &Environment, profile: &Profile) -> Result<String, Problem> {
    let own =
        environment.get("AWS_ENDPOINT_URL_STS").or_else(|| environment.get("AWS_ENDPOINT_URL"));
    let own = own.filter(|_| !environment.is_true("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"));
    if let Some(own) = own {
        return Ok(format!("{}/", own.trim_end_matches('/')));
    }
    let region = place::region(&S3Options::default(), profile, environment)?;
    Ok(format!("https://sts.{region}.{}/", place::domain(&region)))
}

const SERVICE: &str = "the security token service";

/// Name of the session, which logs of AWS show.
const SESSION: &str = "blkhash";
