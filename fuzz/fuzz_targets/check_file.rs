//! Parses any bytes as a check file. Each parsed line must be the same after writing and parsing
//! it. With a field that is not known in its tag, it must be a line that fails a check.

#![no_main]

use blkhash::Algorithm;
use blksum::check_file::{Form, Line, Mistake, Parser, Style, mistake};
use blksum::{Encoding, Tag};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut parser = Parser::new(Algorithm::Crc32);
    for line in data.split_inclusive(|byte| *byte == b'\n') {
        let Line::Entry(entry) = parser.parse(line) else { continue };
        assert!(!entry.name.contains(&0));
        let form = match (entry.tag.clone(), entry.algorithm) {
            (Some(tag), _) => Form::Tagged(tag),
            (None, Some(algorithm)) => Form::Named(algorithm),
            (None, None) => Form::Text,
        };
        let style = Style { form, encoding: Encoding::Hex, zero: false };
        let written = style.line(&entry.name, &entry.digest);
        if let Some(Tag::Image(tag)) = &entry.tag {
            let text = tag.to_string();
            let start = written.iter().position(|byte| *byte == b'B').unwrap();
            assert!(written[start..].starts_with(text.as_bytes()));
            let (known, rest) = written.split_at(start + text.len());
            let later = [known, b"/LATER=1", rest].concat();
            assert_eq!(Parser::new(Algorithm::Crc32).parse(&later), Line::Malformed);
            assert_eq!(mistake(&later), Some(Mistake::ImageTag));
        }
        assert_eq!(
            Parser::new(Algorithm::Crc32).parse(&written),
            Line::Entry(entry),
            "{}",
            written.escape_ascii()
        );
    }
});
