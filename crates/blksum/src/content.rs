//! The content of an image that a checksum is of, as far as it is not the whole content that a guest sees.
//!
//! A tag records it after the parameters: `BLKSUM-SHA256-STREAMS4-64K/SNAPSHOT=before/PARTITION=2`. Each content has
//! exactly one text, so that two texts are the same content only if they are equal. docs/reference/check-file.md
//! specifies the fields.

use std::fmt;
use std::str::FromStr;

use blkimage::{Format, OpenOptions, VpcSize};

use crate::Part;

/// The content of an image that a checksum is of. The default is everything that a guest sees, of an
/// image of the format that is detected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Content {
    /// Format as which the file is read although another one is detected.
    pub format: Option<Format>,
    /// Size that a vpc image has, if that is not the size in QEMU.
    pub vpc_size: Option<VpcSize>,
    /// Name or id of an internal snapshot.
    pub snapshot: Option<String>,
    /// Part of the content. `None` is all of it.
    pub part: Option<Part>,
}

/// The reason why a line cannot record a [`Content`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unrecordable {
    /// The name of the snapshot is longer than [`Content::MAX_SNAPSHOT`] or contains NUL.
    Snapshot,
    /// The range does not begin and end at multiples of [`Content::SECTOR`], or is empty.
    Range,
}

/// The property in which options ask for another content than a line records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Conflict {
    /// [`OpenOptions::format`].
    Format,
    /// [`OpenOptions::vpc_size`].
    VpcSize,
    /// [`OpenOptions::snapshot`].
    Snapshot,
    /// [`Part::Partition`].
    Partition,
    /// [`Part::Range`].
    Range,
}

/// Error for a text that is not a [`Content`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownContent;

impl Content {
    /// Maximum length of the name of a snapshot, so that a line holds it besides the longest path.
    /// Limit in bytes.
    pub const MAX_SNAPSHOT: usize = 1024;

    /// Unit of the ranges that a line can record, and the least that one may have up to the end of an image: the
    /// author of a check file that learns whether a checksum matches cannot guess a file byte by byte. Only the caller
    /// knows the end.
    /// Limit in bytes.
    pub const SECTOR: u64 = 512;

    /// Returns whether this is the default, which a line does not mention.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether this is a part of what the file holds: a snapshot, a partition or a range.
    pub fn is_part(&self) -> bool {
        self.snapshot.is_some() || self.part.is_some()
    }

    /// Checks that a line can record the content.
    ///
    /// # Errors
    ///
    /// Fails for a range that is not one of whole sectors, and for a snapshot with too long a name.
    pub fn check_recordable(&self) -> Result<(), Unrecordable> {
        let is_name = |name: &String| name.len() <= Self::MAX_SNAPSHOT && !name.contains('\0');
        if !self.snapshot.as_ref().is_none_or(is_name) {
            return Err(Unrecordable::Snapshot);
        }
        match self.part {
            Some(Part::Range { offset, length })
                if !offset.is_multiple_of(Self::SECTOR)
                    || length.is_some_and(|it| it == 0 || !it.is_multiple_of(Self::SECTOR)) =>
            {
                Err(Unrecordable::Range)
            }
            _ => Ok(()),
        }
    }

    /// Returns `options` changed so that they open this content, up to its part.
    ///
    /// # Errors
    ///
    /// Fails if the options ask for another content. `part` is the part that they ask for.
    pub fn open_options(
        &self,
        options: &OpenOptions,
        part: Option<Part>,
    ) -> Result<OpenOptions, Conflict> {
        let mut open = options.clone();
        if let Some(format) = self.format {
            if options.format.is_some_and(|other| other != format) {
                return Err(Conflict::Format);
            }
            open = open.format(format);
        }
        if let Some(size) = self.vpc_size {
            if ![VpcSize::Auto, size].contains(&options.vpc_size) {
                return Err(Conflict::VpcSize);
            }
            open = open.vpc_size(size);
        }
        if self.is_part() {
            if options.snapshot.is_some() && options.snapshot != self.snapshot {
                return Err(Conflict::Snapshot);
            }
            if part.is_some() && part != self.part {
                return Err(match part {
                    Some(Part::Partition(_)) => Conflict::Partition,
                    _ => Conflict::Range,
                });
            }
            open = open.snapshot(self.snapshot.clone());
        }
        Ok(open)
    }
}

impl fmt::Display for Content {
    /// Writes the fields as a tag has them, each with a slash before it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(format) = self.format {
            write!(f, "/{FORMAT}={format}")?;
        }
        if let Some(size) = self.vpc_size.and_then(vpc_size_name) {
            write!(f, "/{VPC_SIZE}={size}")?;
        }
        if let Some(snapshot) = &self.snapshot {
            write!(f, "/{SNAPSHOT}={}", encode(snapshot))?;
        }
        match self.part {
            None => Ok(()),
            Some(Part::Partition(number)) => write!(f, "/{PARTITION}={number}"),
            Some(Part::Range { offset, length }) => {
                if offset != 0 {
                    write!(f, "/{OFFSET}={offset}")?;
                }
                length.map_or(Ok(()), |length| write!(f, "/{LENGTH}={length}"))
            }
        }
    }
}

impl FromStr for Content {
    type Err = UnknownContent;

    /// Parses the fields as [`Display`](fmt::Display) writes them, and nothing else.
    fn from_str(text: &str) -> Result<Self, UnknownContent> {
        let mut content = Self::default();
        let mut fields = text.split('/');
        if fields.next() != Some("") {
            return if text.is_empty() { Ok(content) } else { Err(UnknownContent) };
        }
        for field in fields {
            let (name, value) = field.split_once('=').ok_or(UnknownContent)?;
            match name {
                FORMAT => content.format = Some(value.parse().map_err(|_| UnknownContent)?),
                VPC_SIZE => content.vpc_size = Some(value.parse().map_err(|_| UnknownContent)?),
                SNAPSHOT => content.snapshot = Some(decode(value).ok_or(UnknownContent)?),
                PARTITION => content.part = Some(Part::Partition(number(value)?)),
                OFFSET => {
                    content.part = Some(Part::Range { offset: number(value)?, length: None });
                }
                LENGTH => {
                    let offset = match content.part {
                        Some(Part::Range { offset, .. }) => offset,
                        _ => 0,
                    };
                    content.part = Some(Part::Range { offset, length: Some(number(value)?) });
                }
                _ => return Err(UnknownContent),
            }
        }
        // Rejects another order, repeated fields and other spellings.
        let is_only_text = content.to_string() == text;
        if is_only_text && content.check_recordable().is_ok() {
            Ok(content)
        } else {
            Err(UnknownContent)
        }
    }
}

impl fmt::Display for Unrecordable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Snapshot => {
                write!(f, "a tag holds names of snapshots of up to {} bytes", Content::MAX_SNAPSHOT)
            }
            Self::Range => {
                write!(f, "a tag holds ranges of whole sectors of {} bytes", Content::SECTOR)
            }
        }
    }
}

impl std::error::Error for Unrecordable {}

impl fmt::Display for UnknownContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown content")
    }
}

impl std::error::Error for UnknownContent {}

/// Returns the name of a size in a tag. The default has none.
fn vpc_size_name(size: VpcSize) -> Option<&'static str> {
    match size {
        VpcSize::Geometry => Some("geometry"),
        VpcSize::Current => Some("current"),
        _ => None,
    }
}

fn number<T: FromStr>(text: &str) -> Result<T, UnknownContent> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain && text != "0").ok_or(UnknownContent)
}

/// Encodes a name in percent-encoding, in which nothing is special to a line: only the unreserved
/// characters of RFC 3986 stand for themselves.
fn encode(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text += &format!("%{byte:02X}");
        }
    }
    text
}

/// Reverses [`encode`]. Also accepts other encodings of the same name.
fn decode(text: &str) -> Option<String> {
    let mut name = Vec::with_capacity(text.len());
    let mut pieces = text.split('%');
    name.extend_from_slice(pieces.next()?.as_bytes());
    for piece in pieces {
        let (digits, rest) = piece.split_at_checked(2)?;
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        name.push(u8::from_str_radix(digits, 16).ok().filter(|_| is_hex)?);
        name.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(name).ok()
}

const FORMAT: &str = "FORMAT";
const VPC_SIZE: &str = "VPCSIZE";
const SNAPSHOT: &str = "SNAPSHOT";
const PARTITION: &str = "PARTITION";
const OFFSET: &str = "OFFSET";
const LENGTH: &str = "LENGTH";

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    fn range(offset: u64, length: Option<u64>) -> Content {
        Content { part: Some(Part::Range { offset, length }), ..Content::default() }
    }

    #[test]
    fn known_contents() {
        let snapshot = |name: &str| Content { snapshot: Some(name.into()), ..Content::default() };
        let partition = Some(Part::Partition(2));
        let known = [
            ("", Content::default()),
            ("/FORMAT=raw", Content { format: Some(Format::Raw), ..Content::default() }),
            (
                "/VPCSIZE=current",
                Content { vpc_size: Some(VpcSize::Current), ..Content::default() },
            ),
            ("/SNAPSHOT=1", snapshot("1")),
            ("/SNAPSHOT=", snapshot("")),
            ("/SNAPSHOT=a%20%28b%29%2F%25%0A%C3%A9-._~", snapshot("a (b)/%\né-._~")),
            ("/PARTITION=2", Content { part: partition, ..Content::default() }),
            ("/SNAPSHOT=a/PARTITION=2", Content { part: partition, ..snapshot("a") }),
            ("/OFFSET=1048576", range(1 << 20, None)),
            ("/LENGTH=512", range(0, Some(512))),
            ("/OFFSET=512/LENGTH=1024", range(512, Some(1024))),
        ];
        for (text, content) in known {
            assert_eq!(text.parse().as_ref(), Ok(&content), "{text}");
            assert_eq!(content.to_string(), text);
        }
    }

    #[test]
    fn every_content_has_one_text() {
        let other = [
            "/",
            "PARTITION=1",
            "/partition=1",
            "/PARTITION",
            "/PARTITION=",
            "/PARTITION=0",
            "/PARTITION=01",
            "/PARTITION=+1",
            "/PARTITION=4294967296",
            "/PARTITION=1/PARTITION=1",
            "/PARTITION=1/SNAPSHOT=a",
            "/PARTITION=1/OFFSET=512",
            "/OFFSET=512/PARTITION=1",
            "/PARTITION=1/",
            "/OFFSET=0",
            "/OFFSET=513",
            "/OFFSET=512/LENGTH=0",
            "/LENGTH=511",
            "/LENGTH=1K",
            "/LENGTH=512/OFFSET=512",
            "/LENGTH=18446744073709551616",
            "/SNAPSHOT=a/SNAPSHOT=b",
            "/SNAPSHOT=%61",
            "/SNAPSHOT=%2f",
            "/SNAPSHOT=%2",
            "/SNAPSHOT=%+1",
            "/SNAPSHOT=%00",
            "/SNAPSHOT=%FF",
            "/SNAPSHOT=é",
            "/SNAPSHOT=a b",
            "/FORMAT=RAW",
            "/FORMAT=vhd",
            "/VPCSIZE=auto",
            "/SNAPSHOT=a/FORMAT=raw",
            "/WHAT=1",
        ];
        for text in other {
            assert_eq!(text.parse::<Content>(), Err(UnknownContent), "{text}");
        }
        let long = format!("/SNAPSHOT={}", "a".repeat(Content::MAX_SNAPSHOT));
        assert!(long.parse::<Content>().is_ok());
        assert_eq!((long + "a").parse::<Content>(), Err(UnknownContent));
    }

    #[test]
    fn options_may_not_ask_for_another_content() {
        let options = OpenOptions::new;
        let content = |text: &str| text.parse::<Content>().unwrap();
        let partition = content("/SNAPSHOT=a/PARTITION=2");
        let open = partition.open_options(&options(), None).unwrap();
        assert_eq!(open.snapshot.as_deref(), Some("a"));
        let same = options().snapshot("a".to_owned());
        assert!(partition.open_options(&same, Some(Part::Partition(2))).is_ok());
        let other = options().snapshot("b".to_owned());
        assert_eq!(partition.open_options(&other, None).err(), Some(Conflict::Snapshot));
        let part = Some(Part::Partition(1));
        assert_eq!(partition.open_options(&options(), part).err(), Some(Conflict::Partition));
        assert_eq!(
            content("/PARTITION=2").open_options(&same, None).err(),
            Some(Conflict::Snapshot)
        );
        let range = Some(Part::Range { offset: 0, length: Some(512) });
        assert_eq!(partition.open_options(&options(), range).err(), Some(Conflict::Range));
        let raw = content("/FORMAT=raw");
        assert_eq!(raw.open_options(&other, part).unwrap().snapshot.as_deref(), Some("b"));
        assert_eq!(raw.open_options(&options(), None).unwrap().format, Some(Format::Raw));
        let qcow2 = options().format(Format::Qcow2);
        assert_eq!(raw.open_options(&qcow2, None).err(), Some(Conflict::Format));
        let current = content("/VPCSIZE=current");
        let geometry = options().vpc_size(VpcSize::Geometry);
        assert_eq!(current.open_options(&geometry, None).err(), Some(Conflict::VpcSize));
        assert_eq!(current.open_options(&options(), None).unwrap().vpc_size, VpcSize::Current);
    }

    /// Contents that a line can record.
    pub(crate) fn contents() -> impl Strategy<Value = Content> {
        let sectors = |from: u64| (from..1 << 40).prop_map(|count| count * Content::SECTOR);
        let range = (sectors(0), prop::option::of(sectors(1)))
            .prop_filter("is everything", |range| *range != (0, None))
            .prop_map(|(offset, length)| Part::Range { offset, length });
        let part = prop_oneof![(1..=u32::MAX).prop_map(Part::Partition), range];
        let formats: Vec<Format> = Format::all().collect();
        let format = prop::sample::select(formats);
        let vpc_size = prop::sample::select(vec![VpcSize::Current, VpcSize::Geometry]);
        let snapshot = prop_oneof!["[^\0]{0,40}", "[/%()= \n\r\\\\#*-]{0,20}"];
        let option = prop::option::of(format);
        (option, prop::option::of(vpc_size), prop::option::of(snapshot), prop::option::of(part))
            .prop_map(|(format, vpc_size, snapshot, part)| Content {
                format,
                vpc_size,
                snapshot,
                part,
            })
    }

    proptest! {
        #[test]
        fn texts_round_trip(content in contents()) {
            let text = content.to_string();
            prop_assert!(text.bytes().all(|byte| byte.is_ascii_graphic() && !b"()\\#*".contains(&byte)));
            prop_assert_eq!(text.parse(), Ok(content));
        }

        #[test]
        fn a_parsed_text_is_the_written_one(text in "(/(SNAPSHOT|OFFSET|LENGTH|PARTITION)=[a%0-9-]{0,4}){0,3}") {
            if let Ok(content) = text.parse::<Content>() {
                prop_assert_eq!(content.to_string(), text);
            }
        }
    }
}
