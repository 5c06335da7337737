//! Connections that wait for their next request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hyper_util::client::proxy::matcher::Intercept;

use super::connect::{Connected, Sender};
use crate::url::Origin;

/// The idle connections of a client. They are closed with it.
#[derive(Clone, Default)]
pub(super) struct Pool {
    idle: Arc<Mutex<HashMap<Key, Vec<Connected>>>>,
}

/// What one connection can be used for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub origin: Origin,
    /// Whether a proxy may be used.
    pub proxy: bool,
}

/// A connection in use. It is closed if it is dropped.
pub(super) struct Lease {
    pool: Pool,
    key: Key,
    pub connected: Connected,
}

impl Pool {
    /// Takes a connection that is ready for a request.
    pub fn take(&self, key: &Key) -> Option<Lease> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let connections = idle.get_mut(key)?;
        // The last one was used last, and is least likely to be closed by the server soon.
        connections.retain(|connected| !connected.sender.is_closed());
        let i = connections.iter().rposition(|connected| connected.sender.is_ready())?;
        let connected = connections.remove(i);
        Some(Lease { pool: self.clone(), key: key.clone(), connected })
    }

    /// Adds a new connection, in use.
    pub fn lease(&self, key: Key, connected: Connected) -> Lease {
        Lease { pool: self.clone(), key, connected }
    }
}

impl Lease {
    /// Makes the connection available to other requests, unless it was closed.
    pub fn give_back(self) {
        let Self { pool, key, connected } = self;
        if connected.sender.is_closed() {
            return;
        }
        let mut idle = pool.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let connections = idle.entry(key).or_default();
        if connections.len() < MAX_IDLE {
            connections.push(connected);
        }
    }

    /// Returns what sends requests.
    pub fn sender(&mut self) -> &mut Sender {
        &mut self.connected.sender
    }

    /// Returns the proxy that forwards the requests.
    pub fn forwarder(&self) -> Option<&Intercept> {
        self.connected.forwarder.as_ref()
    }
}

/// Maximum number of idle connections to a server.
const MAX_IDLE: usize = 64;
