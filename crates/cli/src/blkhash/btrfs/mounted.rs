//! Mounted file systems.
