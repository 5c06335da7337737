//! Parities.

use super::Job;

/// Compares.
pub(super) fn verify(_job: &Job<'_>) {}
