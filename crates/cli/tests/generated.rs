//! Checks that the manual pages, completions and tables in the repository match their sources, which are the argument
//! parsers, `crates/cli/man`, the table of options and the constants of limits.

#![allow(missing_docs, reason = "a test program")]

#[path = "../examples/generate/pages/mod.rs"]
mod pages;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use blkhash_cli::{blkhash, blksum};
use pages::{Kind, Page, limits, man};

#[test]
fn committed_pages_are_up_to_date() {
    for page in pages::pages(&root()).unwrap() {
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
    let pages = pages::pages(&root()).unwrap().into_iter();
    let generated: BTreeSet<_> = pages.filter(|it| it.kind != Kind::Source).map(path).collect();
    let committed = [Kind::Man, Kind::Completion].into_iter().flat_map(|kind| {
        let files = fs::read_dir(folder(kind)).unwrap();
        files.map(|file| file.unwrap().path()).filter(|path| !is_written_by_hand(path))
    });
    assert_eq!(committed.collect::<BTreeSet<_>>(), generated);
}

#[test]
fn every_page_has_examples_that_the_parsers_accept() {
    let parsers = [("blksum", blksum::command()), ("blkhash", blkhash::command())];
    for page in pages::pages(&root()).unwrap() {
        if page.kind != Kind::Man {
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

#[test]
fn markdown_becomes_roff() {
    let text = "## A\n\na \\*, *b*, **c\nd** and\n`e*`\n- `f g`: h\n  i\n- **j**: k\n\nl\n\n```sh\nm\n\n.n\n```\n";
    let page =
        man::page(Path::new("blkhash-info.md"), &format!("{HEAD}## OPTIONS\n{text}")).unwrap();
    let content = String::from_utf8(page.content).unwrap();
    let section = content.split_once(".SH A\n").unwrap().1;
    let paragraph = "a *, \\fIb\\fR, \\fBc d\\fR and \\fBe*\\fR\n";
    let items = ".TP\n\\fBf g\\fR\nh i\n.TP\n\\fBj\\fR\nk\n";
    let commands = ".PP\n.RS 4\n.nf\nm\n\n\\&.n\n.fi\n.RE\n";
    assert_eq!(section, format!("{paragraph}{items}.PP\nl\n{commands}"));
}

#[test]
fn errors_in_a_page_name_the_file_and_the_line() {
    let page = |text: &str| man::page(Path::new("blkhash-info.md"), text);
    for (text, line, reason) in [
        ("", 1, "a page begins with ---"),
        (
            "---\ncommand: blkhash info\n---\n",
            1,
            "command, description, synopsis or date is missing",
        ),
        ("---\ndate: 2026-11-23\nauthor: a\n---\n", 3, "not a line of the front matter"),
        (&HEAD.replace("- blkhash", "-"), 5, "not a line of the front matter"),
        (&HEAD.replace("info", "map"), 1, "blkhash-info.md is not the page of blkhash map"),
        (HEAD, 1, "there is no empty section OPTIONS"),
        (&format!("{HEAD}text\n"), 8, "text before the first section"),
        (&format!("{HEAD}## OPTIONS\n## FILES\n"), 9, "the section is empty"),
        (&format!("{HEAD}## A\n\n```sh\nblkhash\n"), 10, "no ``` ends the commands"),
        (&format!("{HEAD}## A\n- a: b\n"), 9, "an item is `term`: text or **term**: text"),
        (&format!("{HEAD}## A\n- `a`: b\nc\n"), 10, "the line is not indented"),
        (&format!("{HEAD}## A\n### B\n"), 9, "not an element of a manual page"),
        (&format!("{HEAD}## A\na\n1. b\n"), 10, "not an element of a manual page"),
        (&format!("{HEAD}## A\na\n[b](c)\n"), 10, "not an element of a manual page"),
        (&format!("{HEAD}## A\na  \nb\n"), 9, "not an element of a manual page"),
        (&format!("{HEAD}## A\na\nb **c\n"), 10, "** begins no plain text that ends with **"),
        (&format!("{HEAD}## A\na\nb *c `d` e*\n"), 10, "* begins no plain text that ends with *"),
    ] {
        let error = page(text).err().unwrap().to_string();
        assert_eq!(error, format!("blkhash-info.md:{line}: {reason}"), "{text}");
    }
}

#[test]
fn limits_are_computed() {
    for (expression, unit, amount) in [
        ("256 << 10", "bytes", "256 KiB"),
        ("65_535 * 1024", "bytes", "65,535 KiB"),
        ("900_000", "bytes", "900,000 bytes"),
        ("2 << 20 << 3", "bytes", "16 MiB"),
        ("1 << 10", "bytes a second", "1 KiB a second"),
        ("(32 << 20) / 8", "entries", "4,194,304 entries"),
        ("i32::MAX as u64 / 8", "entries", "268,435,455 entries"),
        ("1 << 32", "blocks", "2^32 blocks"),
        ("9_999", "names", "9999 names"),
        ("OTHER - 2 * 3 + 0x1f", "names", "39 names"),
        ("Duration::from_secs(OTHER - 13)", "seconds", "1 second"),
        ("3 * SECOND as u64", "nanoseconds", "3 seconds"),
    ] {
        let found = limits::limits(&limit(expression, unit)).unwrap();
        let [found] = found.try_into().unwrap();
        let (name, text) = ("LIMIT".to_owned(), "Text, of lines.".to_owned());
        assert_eq!(found, limits::Limit { name, amount: amount.to_owned(), text });
    }
}

#[test]
fn limits_are_not_guessed() {
    for expression in [
        "",
        "1 2",
        "(1",
        "!0",
        "-1",
        "1 - 2",
        "1 / 0",
        "1 << 64",
        "u64::MAX + 1",
        "256 as u8",
        "1u64",
        "size_of::<u64>()",
        "if cfg!(unix) { 1 } else { 2 }",
        "MISSING",
        "TWICE",
    ] {
        let error = limits::limits(&limit(expression, "bytes")).unwrap_err();
        assert_eq!(error, "6: the value of the limit cannot be computed", "{expression}");
    }
    for (source, reason) in [
        (
            "/// Limit in bytes.\nconst A: u8 = 1;",
            "1: the text of the limit is missing, or has a '|'",
        ),
        ("/// a\n/// Limit in bytes.\nfn a() {}", "2: the limit is not a constant"),
        (
            "/// a\n/// Limit in bytes, or so.\nconst A: u8 = 1;",
            "2: the line is not 'Limit in UNIT.'",
        ),
    ] {
        assert_eq!(limits::limits(source).unwrap_err(), reason);
    }
}

/// Returns source code with a limit.
fn limit(expression: &str, unit: &str) -> String {
    let before = "/// Other text.\nconst OTHER: u64 = 14;\nconst SECOND: i128 = 1_000_000_000;\n";
    let text = format!("/// Text,\n/// of lines.\n/// Limit in {unit}.\n#[cfg(unix)]\n");
    let after = "const TWICE: u8 = 1;\nimpl A {\n    const TWICE: u8 = 2;\n}\n";
    format!("{before}{text}pub(crate) const LIMIT: u64 = {expression};\n{after}")
}

const HEAD: &str = "---\ncommand: blkhash info\ndescription: d\nsynopsis:\n  - blkhash info IMAGE\ndate: 2026-11-23\n---\n";

/// Returns the commands in the section EXAMPLES, the commands of a pipeline one by one and without redirections.
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
        Kind::Source => ".",
    };
    root().join(name)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
