//! Credentials of a virtual machine of EC2, from its metadata (IMDSv2).

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode};

use super::service::{Credentials, Fetch, failed, of_json};
use crate::answer::Answer;
use crate::s3::encode;
use crate::s3::environment::Environment;
use crate::s3::problem::Problem;

/// Gets the credentials of the role of this machine. `None` if it has no role or is no machine of EC2.
///
/// # Errors
///
/// Fails if the machine has a role, but its credentials are unavailable.
pub(super) fn get(
    environment: &Environment,
    fetch: &dyn Fetch,
) -> Result<Option<Credentials>, Problem> {
    if environment.is_true("AWS_EC2_METADATA_DISABLED") {
        return Ok(None);
    }
    let is_v6 = environment
        .get("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE")
        .is_some_and(|mode| mode.eq_ignore_ascii_case("ipv6"));
    let default = if is_v6 { "http://[fd00:ec2::254]" } else { "http://169.254.169.254" };
    let endpoint = environment.get(ENDPOINT).unwrap_or(default);
    let endpoint = endpoint.trim_end_matches('/');

    let mut request = new_request(Method::PUT, &format!("{endpoint}/latest/api/token"))?;
    request.headers_mut().insert(TTL, HeaderValue::from_static("21600"));
    // A machine elsewhere has nothing there, or a server that knows nothing of this.
    let token = match fetch.fetch_local(&request, FIRST_TIMEOUT) {
        Ok(answer) if answer.status == StatusCode::OK => {
            HeaderValue::from_bytes(answer.body.trim_ascii())
        }
        _ => return Ok(None),
    };
    let Ok(mut token) = token else {
        return Ok(None);
    };
    token.set_sensitive(true);

    let ask = |path: &str| -> Result<crate::Result<Answer>, Problem> {
        let mut request = new_request(Method::GET, &format!("{endpoint}{ROLES}{path}"))?;
        request.headers_mut().insert(TOKEN, token.clone());
        Ok(fetch.fetch_local(&request, TIMEOUT))
    };
    let role = match ask("")? {
        Ok(answer) if answer.status == StatusCode::OK => answer,
        Ok(answer) if answer.status == StatusCode::NOT_FOUND => return Ok(None),
        other => return Err(failed(SERVICE, &other)),
    };
    let role = String::from_utf8_lossy(&role.body);
    let role = role.lines().next().unwrap_or_default().trim();
    if role.is_empty() {
        return Ok(None);
    }
    match ask(&encode::value(role))? {
        Ok(answer) if answer.status == StatusCode::OK => of_json(SERVICE, &answer).map(Some),
        other => Err(failed(SERVICE, &other)),
    }
}

fn new_request(method: Method, uri: &str) -> Result<Request<Bytes>, Problem> {
    let request = Request::builder().method(method).uri(uri).body(Bytes::new());
    request.map_err(|_| Problem::denied("AWS_EC2_METADATA_SERVICE_ENDPOINT is not valid"))
}

/// Variable with the URL of the service.
pub(super) const ENDPOINT: &str = "AWS_EC2_METADATA_SERVICE_ENDPOINT";

const TOKEN: &str = "x-aws-ec2-metadata-token";
const TTL: &str = "x-aws-ec2-metadata-token-ttl-seconds";

const ROLES: &str = "/latest/meta-data/iam/security-credentials/";

const SERVICE: &str = "the metadata service of the machine";

/// Time for the first answer, which every machine that is not one of EC2 waits for.
const FIRST_TIMEOUT: Duration = Duration::from_secs(1);

const TIMEOUT: Duration = Duration::from_secs(5);
