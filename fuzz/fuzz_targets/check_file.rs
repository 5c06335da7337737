//! Parses any bytes as a check file. Each parsed line must be the same after writing and parsing
//! it.

#![no_main]

use blkhash::Algorithm;
use blksum::check_file::{Form, Line, Parser, Style};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut parser = Parser::new(Algorithm::Crc32);
    for line in data.split_inclusive(|byte| *byte == b'\n') {
        let Line::Entry(entry) = parser.parse(line) else { continue };
        assert!(!entry.name.contains(&0));
        let form = match entry.tag.clone() {
            Some(tag) => Form::Tagged(tag),
            None => Form::Text,
        };
        let written = Style { form, zero: false }.line(&entry.name, &entry.digest);
        assert_eq!(
            Parser::new(Algorithm::Crc32).parse(&written),
            Line::Entry(entry),
            "{}",
            written.escape_ascii()
        );
    }
});
