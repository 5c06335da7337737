//! The result of a search for the meaning of a value.

use blksum::expect;

use super::report::Report;
use crate::value::verdict::{describe_doubt, why};

/// The result of a search.
pub struct Found {
    /// The report of the pass that matched, or of the first one.
    pub report: Report,
    /// What was found.
    pub search: expect::Found,
    /// Why the value that matched says nothing about the content.
    pub uncovered: Option<String>,
}

impl Found {
    /// Explains in words why nothing matched, besides what was tried.
    pub fn reasons(&self) -> Vec<String> {
        let expect::Found { doubted, untried, .. } = &self.search;
        let doubt = doubted.iter().map(|(reading, doubt)| describe_doubt(reading, *doubt));
        let untried = untried.iter().map(why);
        doubt.chain(untried.map(|why| format!("not everything was tried: {why}"))).collect()
    }
}
