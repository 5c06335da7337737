use std::time::Duration;

use bytes::Bytes;
use http::Request;

use super::*;
use crate::ErrorKind;
use crate::answer::Answer;
use crate::s3::time::parse_iso;
use std::cell::RefCell;
use std::fs;
use std::path::Path;

use http::{HeaderMap, Method, StatusCode};

/// Answers by the method and the URI of requests, which it keeps.
#[derive(Default)]
struct Server {
    answers: Vec<(&'static str, u16, String)>,
    requests: RefCell<Vec<Request<Bytes>>>,
}

impl Server {
    fn with(answers: &[(&'static str, u16, &str)]) -> Self {
        let answers = answers.iter().map(|&(place, status, body)| (place, status, body.to_owned()));
        Self { answers: answers.collect(), requests: RefCell::default() }
    }

    fn seen(&self) -> Vec<String> {
        let line = |it: &Request<Bytes>| format!("{} {}", it.method(), it.uri());
        self.requests.borrow().iter().map(line).collect()
    }
}

impl Fetch for Server {
    fn fetch(&self, request: &Request<Bytes>) -> crate::Result<Answer> {
        self.requests.borrow_mut().push(request.clone());
        let place = format!("{} {}", request.method(), request.uri());
        let url = request.uri().to_string().parse()?;
        let found = self.answers.iter().find(|(known, ..)| *known == place);
        let unreachable = || crate::Error::new(ErrorKind::Connect, &url, "no route");
        let (_, status, body) = found.ok_or_else(unreachable)?;
        let status = StatusCode::from_u16(*status).unwrap();
        Ok(Answer { status, headers: HeaderMap::new(), body: body.clone().into() })
    }

    fn fetch_local(&self, request: &Request<Bytes>, _timeout: Duration) -> crate::Result<Answer> {
        self.fetch(request)
    }
}

fn find_in(
    home: &Path,
    profile: Option<&str>,
    variables: &[(&str, &str)],
    server: &Server,
) -> Result<Option<Credentials>, Problem> {
    let options = S3Options { profile: profile.map(String::from), ..S3Options::default() };
    find(&options, &Environment::with(variables).at_home(home), server)
}

fn home(config: &str, credentials: &str) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join(".aws")).unwrap();
    fs::write(home.path().join(".aws/config"), config).unwrap();
    fs::write(home.path().join(".aws/credentials"), credentials).unwrap();
    home
}

const KEYS: [(&str, &str); 2] =
    [("AWS_ACCESS_KEY_ID", "AKIENV"), ("AWS_SECRET_ACCESS_KEY", "s3cr3t")];

const PROFILES: &str = "\
[default]
aws_access_key_id = AKIDEFAULT
aws_secret_access_key = default
[other]
aws_access_key_id = AKIOTHER
aws_secret_access_key = other
aws_session_token = session
";

const NO_MACHINE: (&str, &str) = ("AWS_EC2_METADATA_DISABLED", "true");

#[test]
fn the_environment_comes_before_profiles_that_are_not_options() {
    let (home, server) = (home("", PROFILES), Server::default());
    let key = |profile, variables: &[_]| {
        let found = find_in(home.path(), profile, variables, &server).unwrap().unwrap();
        (found.access_key, found.token)
    };
    assert_eq!(key(None, &KEYS), ("AKIENV".into(), None));
    assert_eq!(key(None, &[&KEYS[..], &[("AWS_PROFILE", "other")]].concat()).0, "AKIENV");
    let session = [&KEYS[..], &[("AWS_SESSION_TOKEN", "t0ken")]].concat();
    assert_eq!(key(None, &session), ("AKIENV".into(), Some("t0ken".into())));
    assert_eq!(key(None, &[]), ("AKIDEFAULT".into(), None));
    assert_eq!(key(Some("other"), &KEYS), ("AKIOTHER".into(), Some("session".into())));
    assert_eq!(key(None, &[("AWS_PROFILE", "other")]).0, "AKIOTHER");
    assert_eq!(server.seen(), [""; 0]);
}

#[test]
fn half_of_a_pair_is_an_error() {
    let server = Server::default();
    let half = home("", "[default]\naws_access_key_id = AKI\n");
    for variables in [&KEYS[..1], &KEYS[1..], &[]] {
        let error = find_in(half.path(), None, variables, &server).unwrap_err();
        assert!(error.1.contains("one of"), "{error:?}");
        assert!(!error.1.contains("AKI") && !error.1.contains("s3cr3t"), "{error:?}");
    }
}

#[test]
fn programs_and_browsers_are_refused_by_name() {
    let server = Server::default();
    for name in ["credential_process", "sso_session", "sso_start_url", "login_session", "role_arn"]
    {
        let home = home(&format!("[default]\n{name} = /bin/touch x\n"), "");
        let error = find_in(home.path(), None, &[], &server).unwrap_err();
        assert_eq!(error.0, ErrorKind::Unsupported, "{name}");
        assert!(
            error.1.contains(&format!("'{name}'")) && error.1.contains("export-credentials"),
            "{error:?}"
        );
        let found = find_in(home.path(), None, &KEYS, &server).unwrap();
        assert_eq!(found.unwrap().access_key, "AKIENV");
    }
}

#[test]
fn without_any_source_requests_are_anonymous() {
    let (home, server) = (home("[default]\nregion = eu-west-1\n", ""), Server::default());
    assert_eq!(find_in(home.path(), None, &[NO_MACHINE], &server), Ok(None));
    assert_eq!(server.seen(), [""; 0]);
    let error = find_in(home.path(), Some("default"), &[NO_MACHINE], &server).unwrap_err();
    assert_eq!(error.1, "the profile 'default' has no credentials");
}

const STS: &str = "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\
    <AssumeRoleWithWebIdentityResult><SubjectFromWebIdentityToken>x</SubjectFromWebIdentityToken><Credentials>\
    <SessionToken>AQoDYXdzEE0a8ANXXXXXXXXNO1ewxE5TijQyp+IEXAMPLE</SessionToken>\
    <SecretAccessKey>wJalrXUtnFEMI/K7MDENG/bPxRfiCYzEXAMPLEKEY</SecretAccessKey><Expiration>2014-10-24T23:00:23Z</Expiration>\
    <AccessKeyId>ASgeIAIOSFODNN7EXAMPLE</AccessKeyId></Credentials></AssumeRoleWithWebIdentityResult>\
    </AssumeRoleWithWebIdentityResponse>";

#[test]
fn a_web_identity() {
    let home = home(
        "[profile pod]\nrole_arn = arn:aws:iam::1:role/b\nweb_identity_token_file = ~/token\nregion = eu-west-1\n",
        PROFILES,
    );
    fs::write(home.path().join("token"), "eyJ/+.x\n").unwrap();
    let variables = [
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "~/token"),
        ("AWS_ROLE_ARN", "arn:aws:iam::1:role/a"),
        ("AWS_REGION", "cn-north-1"),
    ];
    let server = Server::with(&[
        ("POST https://sts.cn-north-1.amazonaws.com.cn/", 200, STS),
        ("POST https://sts.eu-west-1.amazonaws.com/", 200, STS),
    ]);
    let found = find_in(home.path(), None, &variables, &server).unwrap().unwrap();
    assert_eq!(found.access_key, "ASgeIAIOSFODNN7EXAMPLE");
    assert_eq!(found.token.as_deref(), Some("AQoDYXdzEE0a8ANXXXXXXXXNO1ewxE5TijQyp+IEXAMPLE"));
    assert_eq!(found.expires, parse_iso("2014-10-24T23:00:23Z"));
    let body = "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fa\
        &RoleSessionName=blkhash&WebIdentityToken=eyJ%2F%2B.x";
    assert_eq!(server.requests.borrow()[0].body(), body);
    assert!(find_in(home.path(), Some("pod"), &[], &server).unwrap().is_some());
    assert!(server.seen()[1].contains("eu-west-1"));
}

#[test]
fn a_web_identity_that_is_refused_is_an_error() {
    let home = home("", PROFILES);
    fs::write(home.path().join("token"), "secret-token").unwrap();
    let variables = [
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "~/token"),
        ("AWS_ROLE_ARN", "role"),
        ("AWS_ENDPOINT_URL_STS", "https://sts.example:9000/"),
    ];
    let refused = "<ErrorResponse><Error><Code>InvalidIdentityToken</Code><Message>secret-token</Message></Error></ErrorResponse>";
    for (status, body, reason) in [
        (400, refused, "InvalidIdentityToken"),
        (500, "", "status 500"),
        (200, "<a/>", "no valid credentials"),
        (200, "{}", "no valid credentials"),
    ] {
        let server = Server::with(&[("POST https://sts.example:9000/", status, body)]);
        let error = find_in(home.path(), None, &variables, &server).unwrap_err();
        assert!(error.1.contains(reason) && !error.1.contains("secret"), "{error:?}");
    }
    let error = find_in(home.path(), None, &variables, &Server::default()).unwrap_err();
    assert_eq!(error.0, ErrorKind::Connect);
    fs::remove_file(home.path().join("token")).unwrap();
    let error = find_in(home.path(), None, &variables, &Server::default()).unwrap_err();
    assert!(error.1.contains("token: No such file"), "{error:?}");
}

const DOCUMENT: &str = r#"{"Code":"Success","LastUpdated":"2012-04-26T16:39:16Z","Type":"AWS-HMAC","AccessKeyId":"ASIAIOSFODNN7EXAMPLE",
    "SecretAccessKey":"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY","Token":"token","Expiration":"2017-05-17T15:09:54Z"}"#;

#[test]
fn a_container() {
    let home = home("", "");
    fs::write(home.path().join("token"), "Bearer abc\n").unwrap();
    let server = Server::with(&[
        ("GET http://169.254.170.2/v2/credentials/1", 200, DOCUMENT),
        ("GET http://169.254.170.23/v1/credentials", 200, DOCUMENT),
    ]);
    let relative = [("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/credentials/1")];
    let found = find_in(home.path(), None, &relative, &server).unwrap().unwrap();
    assert_eq!(
        (&*found.access_key, found.expires),
        ("ASIAIOSFODNN7EXAMPLE", parse_iso("2017-05-17T15:09:54Z"))
    );
    let full = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/v1/credentials"),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "replaced"),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "~/token"),
    ];
    assert!(find_in(home.path(), None, &full, &server).unwrap().is_some());
    let requests = server.requests.borrow();
    assert_eq!(requests[0].headers().len(), 0);
    assert_eq!(requests[1].headers()["authorization"], "Bearer abc");
    assert!(!format!("{:?}", requests[1]).contains("abc"));
}

#[test]
fn a_container_that_fails_is_an_error() {
    let home = home("", "");
    let place = "GET http://localhost:99/x";
    let variables = [("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://localhost:99/x")];
    for (status, body) in [
        (200, r#"{"Code":"Failed<b>"}"#),
        (200, r#"{"AccessKeyId":"AKI"}"#),
        (200, r#"{"AccessKeyId":["AKI"]}"#),
        (200, r#"{"AccessKeyId":"AKI","SecretAccessKey":"s3cr3t","Expiration":"soon"}"#),
        (200, "["),
        (403, DOCUMENT),
        (302, DOCUMENT),
    ] {
        let server = Server::with(&[(place, status, body)]);
        let error = find_in(home.path(), None, &variables, &server).unwrap_err();
        assert!(!error.1.contains("AKI") && !error.1.contains("s3cr3t"), "{error:?}");
    }
    for uri in ["http://evil.example/", "http://10.0.0.1/", "x", "/x"] {
        let server = Server::default();
        let variables = [
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", uri),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "abc"),
        ];
        assert!(find_in(home.path(), None, &variables, &server).is_err(), "{uri}");
        assert_eq!(server.seen(), [""; 0]);
    }
}

#[test]
fn a_machine() {
    let home = home("", "");
    let server = Server::with(&[
        ("PUT http://169.254.169.254/latest/api/token", 200, "AQAE=="),
        (
            "GET http://169.254.169.254/latest/meta-data/iam/security-credentials/",
            200,
            "a role\nother",
        ),
        (
            "GET http://169.254.169.254/latest/meta-data/iam/security-credentials/a%20role",
            200,
            DOCUMENT,
        ),
    ]);
    let found = find_in(home.path(), None, &[], &server).unwrap().unwrap();
    assert_eq!(found.access_key, "ASIAIOSFODNN7EXAMPLE");
    let requests = server.requests.borrow();
    assert_eq!(requests[0].method(), Method::PUT);
    assert_eq!(requests[0].headers()["x-aws-ec2-metadata-token-ttl-seconds"], "21600");
    assert_eq!(requests[2].headers()["x-aws-ec2-metadata-token"], "AQAE==");
}

#[test]
fn a_machine_without_a_role_is_anonymous_and_one_that_fails_is_not() {
    let home = home("", "");
    let roles = "GET http://[fd00:ec2::254]/latest/meta-data/iam/security-credentials/";
    let token = ("PUT http://[fd00:ec2::254]/latest/api/token", 200, "t");
    let variables = [("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "IPv6")];
    let find = |answers: &[_]| find_in(home.path(), None, &variables, &Server::with(answers));
    assert_eq!(find(&[]), Ok(None));
    assert_eq!(find(&[(token.0, 403, "")]), Ok(None));
    assert_eq!(find(&[token, (roles, 404, "")]), Ok(None));
    assert_eq!(find(&[token, (roles, 200, "")]), Ok(None));
    assert!(find(&[token, (roles, 500, "")]).is_err());
    assert!(find(&[token, (roles, 200, "role")]).is_err());
}

#[test]
fn files_that_are_read() {
    let home = home("[default]\nweb_identity_token_file = /run/token\nrole_arn = x\n", "");
    let environment = Environment::with(&[
        ("AWS_CONFIG_FILE", "~/.aws/config"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "/a"),
    ]);
    let found = files(&S3Options::default(), &environment.at_home(home.path()));
    let aws = home.path().join(".aws");
    assert_eq!(
        found,
        [aws.join("config"), aws.join("credentials"), "/a".into(), "/run/token".into()]
    );
}
