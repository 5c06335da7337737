//! The result of a search for the meaning of a value, and its description.

use blksum::expect::{self, Doubt, Reading, Subject, Untried};

use super::report::Report;

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

/// Says why something was not tried, and what tries it.
pub fn why(untried: &Untried) -> String {
    let advice = match untried {
        Untried::Digests(_) => ": --digest names one, and --expect tries all",
        Untried::Folds => ": --digest names one",
        Untried::Linear => ": --construction linear tries it",
        Untried::Bytes => ": -B tries them",
        _ => "",
    };
    format!("{untried}{advice}")
}

/// Says that a value covers nothing but a file.
pub fn describe_uncovered(why: &str) -> String {
    format!("warning: the value is of the bytes of this file, and not of its content: {why}")
}

/// Says why a match proves nothing, and what takes it.
pub fn describe_doubt(reading: &Reading, doubt: Doubt) -> String {
    let option = match reading.subject {
        Subject::Bytes => "-B".to_owned(),
        Subject::Content => format!("--construction {}", reading.parameters.construction()),
    };
    format!("has this value as {reading}, but {doubt}: {option} takes it")
}
