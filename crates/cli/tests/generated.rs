//! The manual pages and the completions in the repository are those of the argument parsers.

#![allow(missing_docs, reason = "a test program")]

#[path = "../examples/generate/pages/mod.rs"]
mod pages;

use std::fs;
use std::path::Path;

use pages::Kind;

#[test]
fn committed_pages_are_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for page in pages::pages().unwrap() {
        let folder = match page.kind {
            Kind::Man => "man",
            Kind::Completion => "completions",
        };
        let path = root.join(folder).join(&page.file_name);
        let committed = fs::read(&path).unwrap_or_default();
        assert!(
            committed == page.content,
            "{} is not up to date: cargo run -p blkhash-cli --example generate -- man completions",
            path.display()
        );
    }
}
