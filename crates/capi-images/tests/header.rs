//! Checks that the header declares what the library exports.

use std::collections::BTreeSet;

/// The header declares every function of the sources with its types in C, and no other function.
#[test]
fn the_header_agrees_with_the_sources() {
    let folder = env!("CARGO_MANIFEST_DIR");
    let mut config = cbindgen::Config {
        language: cbindgen::Language::C,
        style: cbindgen::Style::Tag,
        ..cbindgen::Config::default()
    };
    for (rust, c) in [
        ("BlockMap", "blksum_map"),
        ("Btrfs", "blksum_btrfs"),
        ("Check", "blksum_check"),
        ("CheckFinding", "blksum_check_finding"),
        ("CheckLayer", "blksum_check_layer"),
        ("Diff", "blksum_diff"),
        ("Difference", "blksum_difference"),
        ("Error", "blksum_error"),
        ("Extent", "blksum_extent"),
        ("Finding", "blksum_btrfs_finding"),
        ("Image", "blksum_image"),
        ("Maker", "blksum_maker"),
        ("Options", "blksum_opts"),
        ("Owned", "blksum_owned"),
        ("Owners", "blksum_owners"),
    ] {
        config.export.rename.insert(rust.to_owned(), c.to_owned());
    }
    let mut builder = cbindgen::Builder::new().with_config(config);
    for module in [
        "btrfs",
        "check",
        "diff",
        "error",
        "error_object",
        "image",
        "info",
        "job",
        "maker",
        "map",
        "options",
        "owners",
        "pass",
    ] {
        builder = builder.with_src(format!("{folder}/src/{module}.rs"));
    }
    let mut generated = Vec::new();
    builder.generate().unwrap().write(&mut generated);

    let generated = String::from_utf8(generated).unwrap();
    let header = std::fs::read_to_string(format!("{folder}/include/blksum.h")).unwrap();
    let declared = functions(&header);
    assert_eq!(declared, functions(&generated));
    let names = std::fs::read_to_string(format!("{folder}/symbols.txt")).unwrap();
    assert_eq!(names.lines().count(), declared.len());
    for name in [
        "blksum_extent",
        "blksum_difference",
        "blksum_btrfs_finding",
        "blksum_check_layer",
        "blksum_check_finding",
        "blksum_owned",
    ] {
        assert_eq!(fields(&header, name), fields(&generated, name));
    }
}

/// The kinds of errors have the numbers of the header.
#[test]
fn the_kinds_of_errors_agree() {
    let folder = env!("CARGO_MANIFEST_DIR");
    let read = |name: &str| std::fs::read_to_string(format!("{folder}/{name}")).unwrap();
    let numbers = |text: &str| {
        let lines =
            text.lines().filter_map(|line| line.trim().trim_end_matches(',').split_once(" = "));
        let numbered = lines.filter_map(|(name, number)| Some((name, number.parse::<u32>().ok()?)));
        let plain = |name: &str| name.replace("BLKSUM_ERROR_", "").replace('_', "").to_lowercase();
        numbered.map(|(name, number)| (plain(name), number)).collect::<BTreeSet<_>>()
    };
    let (header, failure) = (read("include/blksum.h"), read("src/failure.rs"));
    let of_header =
        header.split_once("enum blksum_error_kind {").unwrap().1.split_once("};").unwrap().0;
    let of_source =
        failure.split_once("pub(crate) enum Kind {").unwrap().1.split_once('}').unwrap().0;
    let mut expected = numbers(of_source);
    expected.insert(("none".to_owned(), 0));
    assert_eq!(numbers(of_header), expected);
}

/// Returns the fields of a struct with uniform spelling.
fn fields(header: &str, name: &str) -> String {
    let text = without_comments(header);
    let start = format!("struct {name} {{");
    let body = text.split_once(&start).expect("the struct").1.split_once('}').expect("its end").0;
    spelled(body)
}

/// Returns the declarations of functions, without comments and with uniform spelling.
fn functions(header: &str) -> BTreeSet<String> {
    let text = without_comments(header);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let text = lines.collect::<Vec<_>>().join(" ");
    let is_function = |text: &&str| {
        text.contains("blksum_") && text.ends_with(')') && !text.starts_with("typedef")
    };
    let statements = text.split([';', '{', '}']).map(str::trim).filter(is_function);
    statements.map(spelled).collect()
}

fn without_comments(header: &str) -> String {
    let mut text = String::new();
    let mut rest = header;
    while let Some((before, comment)) = rest.split_once("/*") {
        text += before;
        rest = comment.split_once("*/").expect("a comment ends").1;
    }
    text + rest
}

fn spelled(declaration: &str) -> String {
    let text = declaration.replace("uintptr_t", "size_t").replace("extern \"C\"", "");
    let text = text.replace('*', " * ").replace('(', " ( ").replace(')', " ) ").replace(',', " , ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
