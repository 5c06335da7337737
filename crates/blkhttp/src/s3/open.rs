//! Opens objects of S3.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Uri};

use super::credentials::{self, Fetch};
use super::environment::Environment;
use super::profile::Profile;
use super::store::Store;
use crate::answer::Answer;
use crate::client::{Client, Terms};
use crate::{HttpOptions, Object, Result, S3Options, Url};

/// Opens an object, in the region that the server names if it differs from the options'.
///
/// # Errors
///
/// Fails as [`Object::open`] does.
pub(crate) fn open(url: &Url, options: &HttpOptions) -> Result<Object> {
    let client = Client::new(url, options)?;
    let fetch =
        Box::new(Fetcher { url: url.clone(), client: client.clone(), timeout: options.timeout });
    let store = Store::new(url, &options.s3, Environment::of_process(), fetch)?;
    let target = store.target()?;
    // Reads the certificate authorities, if they are needed.
    Client::new(&target.url, options)?;
    let again = Client::clone(&client);
    match Object::open_target(url, target.clone(), client, options) {
        Err(_) if store.has_moved(&target) => {
            Object::open_target(url, store.target()?, again, options)
        }
        other => other,
    }
}

/// Returns the files that opening or reading an object of S3 may read: configuration, credentials, and tokens. Not all of them
/// exist.
pub fn files(options: &S3Options) -> Vec<PathBuf> {
    credentials::files(options, &Environment::of_process())
}

/// Returns the ports, besides 80 and 443, of the servers that opening or reading an object of S3 may connect to: the
/// endpoint, and the services that issue credentials.
pub fn ports(options: &S3Options) -> Vec<u16> {
    let environment = Environment::of_process();
    let profile = Profile::read(options.profile.as_deref(), &environment).ok();
    let variables = credentials::ENDPOINTS.iter().filter_map(|name| environment.get(name));
    let endpoints = variables.chain(profile.as_ref().and_then(Profile::endpoint));
    let port = |text: &str| text.parse::<Uri>().ok()?.port_u16();
    endpoints.chain(options.endpoint.as_deref()).filter_map(port).collect()
}

/// Sends the requests that get credentials.
struct Fetcher {
    url: Url,
    client: Client,
    timeout: Option<Duration>,
}

impl Fetch for Fetcher {
    fn fetch(&self, request: &Request<Bytes>) -> Result<Answer> {
        let terms = Terms { timeout: self.timeout, retries: RETRIES, proxy: true };
        self.client.request(&self.url, request, None, terms)
    }

    fn fetch_local(&self, request: &Request<Bytes>, timeout: Duration) -> Result<Answer> {
        let terms = Terms { timeout: Some(timeout), retries: 0, proxy: false };
        self.client.request(&self.url, request, None, terms)
    }
}

/// Number of times that a request for credentials is sent again.
const RETRIES: u32 = 3;
