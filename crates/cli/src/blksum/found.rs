//! The result of a search for the meaning of a value, and its description.

use blkbench::text::size;
use blkhash::{Construction, Parameters};
use blksum::expect::{Doubt, Subject};

use super::report::Report;
use crate::values::and;

/// The result of a search.
pub struct Found {
    /// The report of the pass that matched, or of the first one.
    pub report: Report,
    /// The match. `None` if there is none.
    pub matched: Option<Match>,
    /// A match that proves nothing.
    pub doubted: Option<(Reading, Doubt)>,
    /// Everything that was computed.
    pub tried: Vec<Reading>,
    /// Why something was not tried, in words.
    pub untried: Vec<String>,
    /// Why the value that matched says nothing about the content.
    pub uncovered: Option<String>,
}

impl Found {
    /// Creates what is known after a first pass.
    pub fn new(report: Report) -> Self {
        Self {
            report,
            matched: None,
            doubted: None,
            tried: Vec::new(),
            untried: Vec::new(),
            uncovered: None,
        }
    }

    /// Explains in words why nothing matched, besides what was tried.
    pub fn reasons(&self) -> Vec<String> {
        let doubt = self.doubted.iter().map(|(reading, doubt)| describe_doubt(reading, *doubt));
        let untried = self.untried.iter();
        doubt.chain(untried.map(|why| format!("not everything was tried: {why}"))).collect()
    }
}

/// The value that matched, and how.
pub struct Match {
    /// Index of the value.
    pub value: usize,
    pub reading: Reading,
}

/// A possible meaning of a value: a checksum with these parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    pub subject: Subject,
    pub parameters: Parameters,
}

impl Reading {
    /// Creates a checksum of the content.
    pub fn of_content(parameters: Parameters) -> Self {
        Self { subject: Subject::Content, parameters }
    }

    /// Whether this is a checksum over blocks of the content that no list of digests has.
    pub fn is_over_blocks_of_content(&self) -> bool {
        let construction = self.parameters.construction();
        let is_safe = construction.has_blocks() && construction != Construction::Concat;
        self.subject == Subject::Content && is_safe
    }

    /// Describes how a checksum was computed, without what is the default.
    pub fn describe(&self) -> String {
        let Self { subject, parameters } = self;
        let (default, construction) = (Parameters::default(), parameters.construction());
        let mut words = Vec::new();
        if parameters.algorithm() != default.algorithm() {
            words.push(parameters.algorithm().to_string());
        }
        match subject {
            Subject::Bytes if !construction.has_blocks() => words.push("bytes of the file".into()),
            _ => words.push(construction.to_string()),
        }
        if construction.has_blocks() && parameters.block_size() != construction.default_block_size()
        {
            words.push(format!("blocks of {}", size(parameters.block_size().into())));
        }
        words.join(", ")
    }
}

/// Describes what was tried, as a list of constructions and one of digests.
pub fn describe(tried: &[Reading]) -> String {
    let (mut ways, mut digests) = (Vec::new(), Vec::new());
    for Reading { subject, parameters } in tried {
        let construction = parameters.construction();
        let mut way = match subject {
            Subject::Bytes if !construction.has_blocks() => "bytes of the file".to_owned(),
            _ => construction.to_string(),
        };
        if construction.has_blocks() && parameters.block_size() != construction.default_block_size()
        {
            way += &format!(" with blocks of {}", size(parameters.block_size().into()));
        }
        let digest = parameters.algorithm().to_string();
        for (list, word) in [(&mut ways, way), (&mut digests, digest)] {
            if !list.contains(&word) {
                list.push(word);
            }
        }
    }
    format!("{} of {}", and(&ways), and(&digests))
}

/// Says that a value covers nothing but a file.
pub fn describe_uncovered(why: &str) -> String {
    format!("warning: the value is of the bytes of this file, and not of its content: {why}")
}

/// Says why a match proves nothing, and what takes it.
pub fn describe_doubt(reading: &Reading, doubt: Doubt) -> String {
    let what = reading.describe();
    let option = match reading.subject {
        Subject::Bytes => "-B".to_owned(),
        Subject::Content => format!("--construction {}", reading.parameters.construction()),
    };
    let why = match doubt {
        Doubt::Image(format) => format!("its content is a {format} image itself"),
        Doubt::Archive => "its content is an archive".to_owned(),
        Doubt::Compressed(compression) => {
            format!("its content is a file compressed by {compression}")
        }
        _ => "it could be a list of the digests of another image".to_owned(),
    };
    format!("has this value as {what}, but {why}: {option} takes it")
}
