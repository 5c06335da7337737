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
    for (rust, c) in
        [("Hash", "blkhash"), ("Options", "blkhash_opts"), ("Completion", "blkhash_completion")]
    {
        config.export.rename.insert(rust.to_owned(), c.to_owned());
    }
    let mut builder = cbindgen::Builder::new().with_config(config);
    for module in ["aio", "completions", "hash", "info", "options"] {
        builder = builder.with_src(format!("{folder}/src/{module}.rs"));
    }
    let mut generated = Vec::new();
    builder.generate().unwrap().write(&mut generated);

    let generated = functions(&String::from_utf8(generated).unwrap());
    let header = std::fs::read_to_string(format!("{folder}/include/blkhash.h")).unwrap();
    assert_eq!(functions(&header), generated);
    let names = std::fs::read_to_string(format!("{folder}/symbols.txt")).unwrap();
    assert_eq!(names.lines().count(), generated.len());
}

/// Returns the declarations of functions, without comments and with uniform spelling.
fn functions(header: &str) -> BTreeSet<String> {
    let mut text = String::new();
    let mut rest = header;
    while let Some((before, comment)) = rest.split_once("/*") {
        text += before;
        rest = comment.split_once("*/").expect("a comment ends").1;
    }
    text += rest;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let text = lines.collect::<Vec<_>>().join(" ");
    let is_function = |text: &&str| text.contains("blkhash_") && text.ends_with(')');
    let statements = text.split([';', '{', '}']).map(str::trim).filter(is_function);
    // Skips the lines for C++ and the preprocessor.
    let other = ["inline ", "return ", "__VA_ARGS__"];
    let declared = statements.filter(|text| !other.iter().any(|it| text.contains(it)));
    declared.map(spelled).collect()
}

fn spelled(declaration: &str) -> String {
    let text = declaration.replace("uintptr_t", "size_t").replace("extern \"C\"", "");
    let text = text.replace('*', " * ").replace('(', " ( ").replace(')', " ) ").replace(',', " , ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
