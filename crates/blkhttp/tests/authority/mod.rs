//! A certificate authority, and servers with its certificates.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use blkhttp::HttpOptions;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::server::{Answer, Request, Server, Stream, options};

/// An authority, in a file.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    file: tempfile::NamedTempFile,
}

impl Authority {
    /// Creates an authority with a name.
    pub fn new(name: &str) -> Self {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer =
            CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(issuer.pem().as_bytes()).unwrap();
        Self { issuer, file }
    }

    /// Starts a server with a certificate for a host.
    pub fn start(
        &self,
        host: &str,
        handler: impl Fn(&Request, &mut Answer) + Send + Sync + 'static,
    ) -> Server {
        let key = KeyPair::generate().unwrap();
        let parameters = CertificateParams::new([host.to_owned()]).unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)
            .unwrap();
        let config = Arc::new(config);
        let wrap = move |stream: TcpStream| {
            let connection = ServerConnection::new(config.clone()).ok()?;
            Some(Box::new(StreamOwned::new(connection, stream)) as Box<dyn Stream>)
        };
        Server::start_with(wrap, handler)
    }

    /// Returns options that trust it.
    pub fn options(&self) -> HttpOptions {
        let mut options = options();
        options.timeout = Some(Duration::from_secs(60));
        options.tls_ca = Some(self.file.path().to_owned());
        options
    }
}
