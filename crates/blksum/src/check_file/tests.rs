use blkhash::{Construction, Parameters};
use proptest::prelude::*;

use super::*;
use crate::ImageTag;
use crate::content::tests::contents;

const HEX: &str = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";

fn parse(line: &[u8]) -> Line {
    Parser::new(Algorithm::Sha256).parse(line)
}

fn entry(name: &[u8], tag: Option<Tag>) -> Line {
    Line::Entry(Entry { name: name.to_vec(), digest: digest(), algorithm: None, tag })
}

fn digest() -> Vec<u8> {
    Encoding::Hex.decode(HEX.as_bytes()).unwrap()
}

/// Parses `line` with each `{}` replaced by the digest.
fn parse_hex(line: &str) -> Line {
    parse(line.replace("{}", HEX).as_bytes())
}

#[test]
fn untagged() {
    let lines = [
        ("{}  a", "a"),
        ("{} *a", "a"),
        ("{}  a\n", "a"),
        ("{}  a\r\n", "a"),
        ("{}  a\r", "a"),
        ("  \t{}  a", "a"),
        ("{}\t a", "a"),
        ("{}\t*a", "a"),
        ("{}   a ", " a "),
        ("{}  *a", "*a"),
        ("{}  a\\n", "a\\n"),
        ("\\{}  a\\n\\\\\\r", "a\n\\\r"),
        ("\\{}  a", "a"),
        ("{} a", "a"),
        ("{}\ta", "a"),
        ("{} name", "name"),
        ("{}  ", " "),
        ("{} *", "*"),
        ("{}  SHA256 (a) = {}", &format!("SHA256 (a) = {HEX}")),
        ("{}  -", "-"),
        ("\u{feff}{}  a", "a"),
    ];
    for (line, name) in lines {
        assert_eq!(parse_hex(line), entry(name.as_bytes(), None), "{line:?}");
        let upper = line.replace("{}", &HEX.to_uppercase());
        if !name.contains("SHA256") {
            assert_eq!(parse(upper.as_bytes()), entry(name.as_bytes(), None), "{upper:?}");
        }
    }
}

#[test]
fn other_values() {
    let base64 = Encoding::Base64.encode(&digest());
    for line in [format!("{base64}  a"), format!("{base64} *a")] {
        assert_eq!(parse(line.as_bytes()), entry(b"a", None), "{line}");
    }
    let tag = Some(Tag::File(Algorithm::Sha256));
    assert_eq!(parse(format!("SHA256 (a) = {base64}").as_bytes()), entry(b"a", tag));
    let named = |algorithm| {
        let (name, digest) = (b"a".to_vec(), digest());
        Line::Entry(Entry { name, digest, algorithm: Some(algorithm), tag: None })
    };
    for line in ["sha256:{}  a", "sha256: {}  a", "SHA2-256:\t {} *a", "sha-256: {} a"] {
        assert_eq!(parse_hex(line), named(Algorithm::Sha256), "{line}");
    }
    let mut any = Parser::of_any(Algorithm::Sha256);
    let mut parse_any = |line: &str| any.parse(line.replace("{}", HEX).as_bytes());
    assert_eq!(parse_any("blake3:{}  a"), named(Algorithm::Blake3));
    assert_eq!(parse_any("{}  a"), entry(b"a", None));
    assert!(
        matches!(parse_any(&format!("{}  a", &HEX[..32])), Line::Entry(it) if it.digest.len() == 16)
    );
    assert!(matches!(parse_any("crc32c:00112233  a"), Line::Entry(_)));
    let crc = Parser::of_any(Algorithm::Crc32c).parse(b"00112233  a");
    assert!(matches!(crc, Line::Entry(_)));
    for line in [
        &format!("{}  a", base64.trim_end_matches('=')),
        &format!("{}  a", &HEX[..16]),
        "deadbeef  a",
        "sha256:{}-2  a",
        "{}-2  a",
        "sha512:{}  a",
        "sha256-{}  a",
        ":{}  a",
        "SHA256 (a) = sha256:{}",
    ] {
        assert_eq!(parse_any(line), Line::Malformed, "{line}");
    }
    for line in ["blake3:{}  a", &format!("{}  a", &HEX[..32])] {
        assert_eq!(parse_hex(line), Line::Malformed, "{line}");
    }
}

#[test]
fn plain_tags() {
    let tag = Some(Tag::File(Algorithm::Sha256));
    let lines = [
        ("SHA256 (a) = {}", "a"),
        ("SHA256(a)= {}", "a"),
        ("SHA2-256(a)= {}", "a"),
        ("SHA256 (a)={}", "a"),
        ("SHA256 (a)\t=\t {}\r\n", "a"),
        (" SHA256 (a) = {}", "a"),
        ("SHA256 () = {}", ""),
        ("SHA256 (a) = b) = {}", "a) = b"),
        ("SHA256 ((a) (b)) = {}", "(a) (b)"),
        ("SHA256 ( a) = {}", " a"),
        ("\u{feff}SHA256 (a) = {}", "a"),
        ("sha256 (a) = {}", "a"),
        ("SHA-256 (a) = {}", "a"),
        ("SHA256  (a) = {}", "a"),
        ("SHA256 \t(a) = {}", "a"),
        ("SHA256 (a\\n) = {}", "a\\n"),
        ("\\SHA256 (a\\n) = {}", "a\n"),
    ];
    for (line, name) in lines {
        assert_eq!(parse_hex(line), entry(name.as_bytes(), tag.clone()), "{line:?}");
    }
    let tag = Some(Tag::File(Algorithm::Blake2b256));
    assert_eq!(parse_hex("BLAKE2b-256 (a) = {}"), entry(b"a", tag));
}

#[test]
fn image_tags() {
    let tag = |construction: Construction, block_size: u64| {
        let block_size = block_size.try_into().unwrap();
        Some(Parameters::new(Algorithm::Sha256, construction, block_size).unwrap().into())
    };
    let lines = [
        ("BLKSUM-SHA256-STREAMS4-64K (a) = {}", tag(Construction::default(), 65536)),
        ("BLKSUM-SHA256-FLAT-1M (a) = {}", tag(Construction::Flat, 1 << 20)),
        ("BLKSUM-SHA256-LINEAR (a) = {}", tag(Construction::Linear, 65536)),
    ];
    for (line, tag) in lines {
        assert_eq!(parse_hex(line), entry(b"a", tag), "{line:?}");
    }
}

#[test]
fn comments_and_blank_lines() {
    for line in
        ["", "\n", "\r\n", "\r", "#", "# {}  a", "#\r\n", "\u{feff}", "\u{feff}# {}  a", "; x"]
    {
        assert_eq!(parse_hex(line), Line::Ignored, "{line:?}");
    }
}

#[test]
fn malformed() {
    let lines = [
        " ",
        " # comment",
        "{}",
        "{} ",
        "{}a  b",
        "x{}  a",
        "00{}  a",
        "\\{}  a\\",
        "\\{}  a\\t",
        "\\\\{}  a",
        "{}  a\0b",
        "{}  a\0",
        "0  a",
        "  a",
        "MD5 (a) = {}",
        "SHA512 (a) = {}",
        "sha257 (a) = {}",
        "a {}",
        "a 0011aabb",
        "sha256: {}",
        "sha256 : {}  a",
        "SHA256 (a) = {} ",
        "SHA256 (a) = {}0",
        "SHA256 (a) {}",
        "SHA256 (a = {}",
        "SHA256 a) = {}",
        "SHA256 (a) = ",
        "SHA256 (",
        "(",
        "BLKSUM-SHA256-FLAT (a) = {}",
        "NULL (a) = ",
        "BLKSUM-NULL-FLAT-64K (a) = ",
    ];
    for line in lines {
        assert_eq!(parse_hex(line), Line::Malformed, "{line:?}");
    }
    assert_eq!(Parser::new(Algorithm::Null).parse(b"  a"), Line::Malformed);
    assert_eq!(Parser::new(Algorithm::Sha1).parse(format!("{HEX}  a").as_bytes()), Line::Malformed);
}

#[test]
fn mistakes_are_recognised() {
    let kind = |line: &str| mistake(line.replace("{}", HEX).as_bytes());
    for line in ["{}", " {} \r\n", "deadbeef", "sha256:{}", "SHA-256: {}"] {
        assert_eq!(kind(line), Some(Mistake::Bare), "{line:?}");
    }
    let prefixed = Some(Mistake::Prefixed(Algorithm::Sha256));
    for line in ["sha256:{}  name\n", "  SHA256:{} name", "sha256: {} name"] {
        assert_eq!(kind(line), prefixed, "{line:?}");
    }
    for line in [
        "BLKSUM-SHA256-STREAMS4-64K/PARTITION=1/LATER=2 (a) = {}",
        "BLKSUM-SHA256-STREAMS4-64K (a) = 2d71",
        " \\BLKSUM-",
        "BLKSUM-SHA256-LINEAR (a\0) = {}",
    ] {
        assert_eq!(kind(line), Some(Mistake::ImageTag), "{line:?}");
    }
    assert_eq!(kind("{}\0"), Some(Mistake::Binary));
    assert_eq!(mistake(&[b'a'; MAX_LINE + 1]), Some(Mistake::Binary));
    assert_eq!(mistake(&[b'x'; MAX_LINE]), None);
    for line in ["disk.img {}", "disk.img: {}", "a b  {}  {}\r\n", "disk.img 0011AABB"] {
        assert_eq!(kind(line), Some(Mistake::NameFirst), "{line:?}");
    }
    for (line, program) in [
        ("%%%% HASHDEEP-1.0", "hashdeep"),
        ("SHA256 hash of disk.img:\r\n", "certutil"),
        ("SHA256 hash of file C:\\disk.img:", "certutil"),
        ("CertUtil: -hashfile command completed successfully.", "certutil"),
        ("Algorithm       Hash                     Path", "Get-FileHash"),
        ("\"Algorithm\",\"Hash\",\"Path\"", "Get-FileHash"),
        ("Algorithm : SHA256", "Get-FileHash"),
    ] {
        assert_eq!(kind(line), Some(Mistake::Foreign(program)), "{line:?}");
    }
    for line in
        ["x{}", "md6:{}", "sha256:x{}", "Hash : {} ", "SHA256 (a {}", "\"SHA256\",\"{}\",\"a\""]
    {
        let found = kind(line);
        assert!(matches!(found, Some(Mistake::Value | Mistake::NameFirst)), "{line:?}");
    }
    for line in ["", "garbage", "dead", "sha256:", "Released on 20260101", "x 0011aabbc", "{}0 a"] {
        assert_eq!(kind(line), None, "{line:?}");
    }
}

#[test]
fn lists_of_crc32() {
    let crc = |name: &str| {
        let (name, digest) = (name.as_bytes().to_vec(), vec![0, 0x11, 0xaa, 0xbb]);
        Line::Entry(Entry { name, digest, algorithm: None, tag: "CRC32".parse().ok() })
    };
    let mut parser = Parser::of_any(Algorithm::Sha256);
    for line in ["# x\n", "\u{feff}; by x\r\n", ";"] {
        assert_eq!(parser.parse(line.as_bytes()), Line::Ignored, "{line:?}");
    }
    let long = [b';'; MAX_LINE + 1];
    assert_eq!(parser.parse(&long), Line::Malformed);
    for (line, name) in [
        ("a 0011aabb\n", "a"),
        ("a b \t 0011AABB\r\n", "a b"),
        ("\ta 0011aabb", "\ta"),
        (".\\a 0011aabb", ".\\a"),
    ] {
        assert_eq!(parser.parse(line.as_bytes()), crc(name), "{line:?}");
    }
    let line = format!("{HEX}  a 0011aabb");
    assert_eq!(parser.parse(line.as_bytes()), entry(b"a 0011aabb", None));
    for line in ["0011aabb", " 0011aabb", "a 0011aab", "a 0011aabb0", "a 0011aabb ", "a 0011aabg"] {
        assert_eq!(parser.parse(line.as_bytes()), Line::Malformed, "{line:?}");
    }
    // Only the first line begins such a list.
    parser.begin();
    for line in ["a 0011aabb", ";", "a 0011aabb"] {
        assert_eq!(parser.parse(line.as_bytes()), Line::Malformed, "{line:?}");
    }
}

#[test]
fn files_have_tags() {
    let mut parser = Parser::of_files(Algorithm::Sha256);
    let line = format!("{HEX}  a");
    assert_eq!(parser.parse(line.as_bytes()), entry(b"a", "SHA256".parse().ok()));
}

#[test]
fn digits_of_untagged_lines() {
    let lines = [
        ("12ab  a", Some(4)),
        (" \t\\12ab *a", Some(4)),
        ("a\tb", Some(1)),
        ("a  ", Some(1)),
        ("a ", None),
        ("12ab", None),
        ("12ab.  a", None),
        (".  a", None),
        ("  a", None),
        ("\\ a", None),
        ("", None),
    ];
    for (line, digits) in lines {
        assert_eq!(untagged_digits(line.as_bytes()), digits, "{line:?}");
    }
}

#[test]
fn separators_are_not_mixed() {
    let line = |text: &str| text.replace("{}", HEX).into_bytes();
    let mut parser = Parser::new(Algorithm::Sha256);
    assert_eq!(parser.parse(&line("{} a")), entry(b"a", None));
    assert_eq!(parser.parse(&line("{}  a")), entry(b" a", None));
    assert_eq!(parser.parse(&line("{} *a")), entry(b"*a", None));

    let mut parser = Parser::new(Algorithm::Sha256);
    assert_eq!(parser.parse(b"not a checksum"), Line::Malformed);
    assert_eq!(parser.parse(&line("{}  a")), entry(b"a", None));
    assert_eq!(parser.parse(&line("{} a")), Line::Malformed);
    assert_eq!(parser.parse(&line("SHA256 (a) = {}")), entry(b"a", "SHA256".parse().ok()));
}

#[test]
fn over_long_lines_are_malformed() {
    let mut line = format!("{HEX}  ").into_bytes();
    line.resize(MAX_LINE, b'a');
    assert_eq!(parse(&line), entry(&line[66..], None));
    line.push(b'a');
    assert_eq!(parse(&line), Line::Malformed);
    assert_eq!(parse(&[b'#'; MAX_LINE + 1]), Line::Ignored);
}

#[test]
fn zero_style_does_not_escape() {
    let style = Style { form: Form::Text, encoding: Encoding::Hex, zero: true };
    assert_eq!(style.line(b"a\n\\", &[0x1f, 0xa0]), b"1fa0  a\n\\\0");
}

fn forms() -> impl Strategy<Value = Form> {
    prop_oneof![
        Just(Form::Text),
        Just(Form::Binary),
        Just(Form::Named(Algorithm::Sha256)),
        Just(Form::Tagged(Tag::File(Algorithm::Sha256))),
        Just(Form::Tagged(Tag::File(Algorithm::Blake2b256))),
        Just(Form::Tagged(Tag::Image(Box::default()))),
        Just(Form::Tagged("BLKSUM-SHA3-256-LINEAR".parse().unwrap())),
        contents().prop_map(|content| {
            let parameters = Parameters::default();
            Form::Tagged(Tag::Image(Box::new(ImageTag { parameters, content })))
        }),
    ]
}

/// Names of any bytes except NUL, with a bias towards bytes that are special in a line.
fn names() -> impl Strategy<Value = Vec<u8>> {
    let special = prop::sample::select(&b" \t*\\\n\r()=#-n"[..]);
    prop::collection::vec(prop_oneof![special, 1..=255u8], 1..40)
}

/// Pieces of lines in any order.
fn near_lines() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(HEX.as_bytes().to_vec()),
        Just(HEX.to_uppercase().into_bytes()),
        prop::sample::select(vec![
            "SHA256",
            "BLKSUM-SHA256-STREAMS4-64K",
            "BLKSUM-",
            "sha256:",
            "-LINEAR",
            "/SNAPSHOT=",
            "/LENGTH=512",
            "%"
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
        prop::sample::select(&b" \t*\\\n\r()=#-0"[..]).prop_map(|byte| vec![byte]),
        prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn written_lines_round_trip(
        form in forms(),
        encoding in prop::sample::select(vec![Encoding::Hex, Encoding::Base64]),
        names in prop::collection::vec(names(), 1..4),
        digest in prop::collection::vec(any::<u8>(), 32),
    ) {
        let mut parser = Parser::new(Algorithm::Sha256);
        for name in names {
            let line = Style { form: form.clone(), encoding, zero: false }.line(&name, &digest);
            prop_assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
            let tag = match &form {
                Form::Tagged(tag) => Some(tag.clone()),
                Form::Text | Form::Binary | Form::Named(_) => None,
            };
            let algorithm = match form {
                Form::Named(algorithm) => Some(algorithm),
                _ => None,
            };
            let expected = Line::Entry(Entry { name, digest: digest.clone(), algorithm, tag });
            prop_assert_eq!(parser.parse(&line), expected);
        }
    }

    /// No input panics. A parsed entry can be written, and parses to the same entry.
    #[test]
    fn arbitrary_lines_do_not_panic(lines in prop::collection::vec(near_lines(), 1..4)) {
        let mut parser = Parser::new(Algorithm::Sha256);
        for line in lines {
            let Line::Entry(entry) = parser.parse(&line) else { continue };
            prop_assert_eq!(entry.digest.len(), 32);
            prop_assert!(!entry.name.contains(&0));
            let untagged = entry.algorithm.map_or(Form::Binary, Form::Named);
            let form = entry.tag.clone().map_or(untagged, Form::Tagged);
            let style = Style { form, encoding: Encoding::Hex, zero: false };
            let written = style.line(&entry.name, &entry.digest);
            prop_assert_eq!(parse(&written), Line::Entry(entry));
        }
    }
}
