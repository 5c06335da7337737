//! Certificate authorities, and the configuration of TLS.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore, crypto::ring};

/// Returns the configuration that trusts the authorities in a file, or the system's. They are read once in a process.
///
/// # Errors
///
/// Fails with a message if there are none.
pub(super) fn config(file: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    type Known = Vec<(Option<PathBuf>, Arc<ClientConfig>)>;
    static KNOWN: Mutex<Known> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, config)) = known.iter().find(|(path, _)| path.as_deref() == file) {
        return Ok(config.clone());
    }
    let roots = match file {
        Some(file) => roots_in(file)?,
        None => system_roots()?,
    };
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| format!("cannot set up TLS: {e}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let config = Arc::new(config);
    known.push((file.map(Path::to_owned), config.clone()));
    Ok(config)
}

/// Reads the authorities in a file.
fn roots_in(file: &Path) -> Result<RootCertStore, String> {
    let name = file.display();
    let text = fs::read(file).map_err(|e| format!("cannot read the authorities in {name}: {e}"))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|e| format!("{name} is no PEM file: {e}"))?;
        roots.add(certificate).map_err(|e| format!("{name} has a bad certificate: {e}"))?;
    }
    if roots.is_empty() {
        return Err(format!("{name} contains no certificate in PEM"));
    }
    Ok(roots)
}

/// Reads the authorities of the system. Those that are not valid are left out.
fn system_roots() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if !roots.is_empty() {
        return Ok(roots);
    }
    let why = found.errors.first().map_or(String::new(), |e| format!(" ({e})"));
    Err(format!(
        "the system has no certificate authorities{why}; install its package of them, \
         often ca-certificates, or name a file of them"
    ))
}
