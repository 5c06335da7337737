//! What a search for the meaning of a value found, in words.

use blksum::expect::{Doubt, Reading, Subject, Untried};

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
