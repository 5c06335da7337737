//! Checks that the manual pages and completions in the repository match the argument parsers.

#![allow(missing_docs, reason = "a test program")]

#[path = "../examples/generate/pages/mod.rs"]
mod pages;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use blkhash_cli::{blkhash, blksum};
use pages::{Kind, Page};

#[test]
fn committed_pages_are_up_to_date() {
    for page in pages::pages().unwrap() {
        let path = folder(page.kind).join(&page.file_name);
        let committed = fs::read(&path).unwrap_or_default();
        assert!(
            committed == page.content,
            "{} is not up to date: cargo run -p blkhash-cli --example generate -- man completions",
            path.display()
        );
    }
}

#[test]
fn no_page_is_left_over() {
    let generated: BTreeSet<_> = pages::pages().unwrap().into_iter().map(path).collect();
    let committed = [Kind::Man, Kind::Completion].into_iter().flat_map(|kind| {
        let files = fs::read_dir(folder(kind)).unwrap();
        files.map(|file| file.unwrap().path()).filter(|path| !is_written_by_hand(path))
    });
    assert_eq!(committed.collect::<BTreeSet<_>>(), generated);
}

#[test]
fn every_page_has_examples_that_the_parsers_accept() {
    let parsers = [("blksum", blksum::command()), ("blkhash", blkhash::command())];
    for page in pages::pages().unwrap() {
        if page.kind == Kind::Completion {
            continue;
        }
        let text = String::from_utf8(page.content).unwrap();
        let commands = examples(&text);
        assert!(!commands.is_empty(), "{} has no examples", page.file_name);
        for command in commands {
            let words: Vec<_> = command.split_whitespace().collect();
            let is_setting = |word: &&&str| word.starts_with("BLKHASH_");
            let words = &words[words.iter().take_while(is_setting).count()..];
            // Other programs may stand before a pipe.
            let Some((_, parser)) = parsers.iter().find(|(name, _)| *name == words[0]) else {
                continue;
            };
            if words[1..].starts_with(&["help"]) {
                continue;
            }
            let parsed = parser.clone().try_get_matches_from(words);
            assert!(parsed.is_ok(), "{}: {command}: {parsed:?}", page.file_name);
        }
    }
}

/// Returns the commands in the section EXAMPLES, those of a pipeline one by one and without redirections.
fn examples(page: &str) -> Vec<String> {
    let section = page.split("\n.SH EXAMPLES").nth(1).unwrap_or_default();
    let section = section.split("\n.SH ").next().unwrap_or_default();
    let blocks = section.split("\n.nf\n").skip(1).filter_map(|block| block.split("\n.fi").next());
    // The shell replaces a command by its output, here the day of the week.
    let line = |line: &str| line.replace('\\', "").replace("$(date +%u)", "1");
    let lines = blocks.flat_map(str::lines).map(line);
    let commands = |line: String| -> Vec<String> {
        let parts = line.split('|').map(|part| part.split('>').next().unwrap_or_default());
        parts.map(|part| part.trim().to_owned()).collect()
    };
    lines.flat_map(commands).collect()
}

/// The pages of the C library and of the nightly check describe no argument parser.
fn is_written_by_hand(page: &Path) -> bool {
    page.extension().is_some_and(|section| section == "3" || section == "8")
}

fn path(page: Page) -> PathBuf {
    folder(page.kind).join(page.file_name)
}

fn folder(kind: Kind) -> PathBuf {
    let name = match kind {
        Kind::Man => "man",
        Kind::Completion => "completions",
    };
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}
