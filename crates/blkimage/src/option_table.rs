//! The options by which users open images, as a table.
//!
//! The commands, Python and C have all of them, by the names of the table, and the text that describes them is made of it. An option
//! with a known kind of value that is added here is there, with its checks, its help and its manual page.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::compression::Compression;
use crate::format_name::FormatName;
use crate::holes::Holes;
#[cfg(feature = "qemu-nbd")]
use crate::options::Reader;
use crate::options::{Cache, Follow, OpenOptions, VpcSize};
use crate::probe::Format;
use crate::secret::Secret;
use crate::unknown_name::one_of;

/// The value of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionValue {
    /// A text or one of a few words.
    Text(String),
    /// Whether something is to be done.
    Flag(bool),
    /// A number of bytes.
    Size(u64),
    /// A time.
    Duration(Duration),
    /// A file, a folder or a program.
    Path(PathBuf),
    /// A secret.
    Secret(Secret),
}

/// The kind of the value of an option. Exhaustive, so that each language says how it takes every kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionKind {
    /// [`OptionValue::Text`]: the name of a format, or of a compression as well.
    Format {
        /// Whether it may be a compression.
        is_file: bool,
    },
    /// [`OptionValue::Text`]: one of these words, each with an explanation, which may be empty. The first is the default.
    Words(&'static [(&'static str, &'static str)]),
    /// [`OptionValue::Text`].
    Text,
    /// [`OptionValue::Flag`].
    Flag,
    /// [`OptionValue::Size`].
    Size,
    /// [`OptionValue::Duration`], in seconds.
    Seconds,
    /// [`OptionValue::Path`] of a file.
    File,
    /// [`OptionValue::Path`] of a folder.
    Folder,
    /// [`OptionValue::Path`] of a program, or its name.
    Program,
    /// [`OptionValue::Secret`].
    Secret,
}

/// What an option is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Topic {
    /// The content.
    Images,
    /// What an image may do.
    Safety,
    /// How content is read.
    Reading,
}

/// The reason why an option does not have a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidValue(String);

impl Display for InvalidValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidValue {}

macro_rules! table {
    ($(
        $(#[cfg($($feature:tt)+)])?
        $option:ident {
            name: $name:literal,
            value: $value:literal,
            topic: $topic:expr,
            kind: $kind:expr,
            text: $text:literal,
            default: $default:literal,
            set: $set:expr,
        }
    )+) => {
        /// An option for opening images: a field of [`OpenOptions`], or of what it has.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum OpenOption {
            $(#[doc = concat!($text, ".")] $option),+
        }

        impl OpenOption {
            /// All options, in the order of help.
            pub const ALL: &'static [Self] = &[$(Self::$option),+];

            /// Returns the name: `vpc-size` is `--vpc-size` of the commands, `vpc_size` in Python and `vpc-size` in C.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$option => $name),+
                }
            }

            /// Returns the word for the value in the help of commands. Empty if there is none.
            pub const fn value_name(self) -> &'static str {
                match self {
                    $(Self::$option => $value),+
                }
            }

            /// Returns what the option is about.
            pub const fn topic(self) -> Topic {
                match self {
                    $(Self::$option => $topic),+
                }
            }

            /// Returns the kind of the value.
            pub const fn kind(self) -> OptionKind {
                match self {
                    $(Self::$option => const { $kind }),+
                }
            }

            /// Describes the option, without a full stop.
            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$option => $text),+
                }
            }

            /// Describes the default. Empty if the option has no effect by default.
            pub const fn default_text(self) -> &'static str {
                match self {
                    $(Self::$option => $default),+
                }
            }

            fn set(self, options: &mut OpenOptions, value: OptionValue) -> Result<(), InvalidValue> {
                type Set = fn(&mut OpenOptions, OptionValue) -> Result<(), InvalidValue>;
                let set: Set = match self {
                    $(
                        $(#[cfg($($feature)+)])?
                        Self::$option => $set,
                    )+
                    #[allow(unreachable_patterns, reason = "all features may be on")]
                    _ => |_, _| Err(InvalidValue("is of no use in this build".to_owned())),
                };
                set(options, value)
            }
        }
    };
}

table! {
    Format {
        name: "format",
        value: "FORMAT",
        topic: Topic::Images,
        kind: OptionKind::Format { is_file: true },
        text: "Format or compression",
        default: "as detected",
        set: |options, value| {
            let FormatName { format, compression } = value.parse()?;
            options.format = format;
            options.set_compression(compression)
        },
    }
    Snapshot {
        name: "snapshot",
        value: "NAME",
        topic: Topic::Images,
        kind: OptionKind::Text,
        text: "Internal snapshot to read, by name or id",
        default: "",
        set: |options, value| {
            options.snapshot = Some(value.text()?);
            Ok(())
        },
    }
    VpcSize {
        name: "vpc-size",
        value: "WHICH",
        topic: Topic::Images,
        kind: OptionKind::Words(&[
            (VpcSize::Auto.name(), "as in QEMU 10.0"),
            (VpcSize::Geometry.name(), "cylinders x heads x sectors"),
            (VpcSize::Current.name(), "the size that the image states"),
        ]),
        text: "Size of vpc (vhd) images",
        default: "auto",
        set: |options, value| {
            options.vpc_size = value.parse()?;
            Ok(())
        },
    }
    #[cfg(feature = "qemu-nbd")]
    Secret {
        name: "secret",
        value: "FILE",
        topic: Topic::Images,
        kind: OptionKind::Secret,
        text: "Secret that unlocks encrypted (luks) images",
        default: "",
        set: |options, value| {
            options.secret = Some(value.secret()?);
            Ok(())
        },
    }
    Follow {
        name: "follow",
        value: "WHICH",
        topic: Topic::Safety,
        kind: OptionKind::Words(&[
            (Follow::Beneath.name(), "in its own folder"),
            (Follow::Any.name(), ""),
            (Follow::None.name(), ""),
        ]),
        text: "Files that an image may refer to",
        default: "beneath",
        set: |options, value| {
            options.follow = value.parse()?;
            Ok(())
        },
    }
    BackingFormat {
        name: "backing-format",
        value: "FORMAT",
        topic: Topic::Safety,
        kind: OptionKind::Format { is_file: false },
        text: "Format of backing files whose format is not recorded",
        default: "",
        set: |options, value| {
            options.backing_format = Some(value.parse()?);
            Ok(())
        },
    }
    ForceShare {
        name: "force-share",
        value: "",
        topic: Topic::Safety,
        kind: OptionKind::Flag,
        text: "Read images that are in use",
        default: "",
        set: |options, value| {
            options.force_share = value.flag()?;
            Ok(())
        },
    }
    #[cfg(feature = "nbd")]
    TlsCertificates {
        name: "tls-certificates",
        value: "DIR",
        topic: Topic::Safety,
        kind: OptionKind::Folder,
        text: "Folder of the certificates for nbds:// URIs",
        default: "the folder of libnbd",
        set: |options, value| {
            options.nbd.tls_certificates = Some(value.path()?);
            Ok(())
        },
    }
    #[cfg(feature = "http")]
    TlsCa {
        name: "tls-ca",
        value: "FILE",
        topic: Topic::Safety,
        kind: OptionKind::File,
        text: "Authorities that https:// and s3:// servers are trusted by, as PEM",
        default: "the authorities of the system",
        set: |options, value| {
            options.http.tls_ca = Some(value.path()?);
            Ok(())
        },
    }
    MaxZeros {
        name: "max-zeros",
        value: "SIZE",
        topic: Topic::Safety,
        kind: OptionKind::Size,
        text: "Maximum size of zeros that an image does not store",
        default: "1T for formats that hide what is stored, otherwise no limit",
        set: |options, value| {
            options.max_zeros = Some(value.size()?);
            Ok(())
        },
    }
    #[cfg(feature = "compressed")]
    MaxMemory {
        name: "max-memory",
        value: "SIZE",
        topic: Topic::Safety,
        kind: OptionKind::Size,
        text: "Maximum size of the dictionary or window of a compressed file",
        default: "256M",
        set: |options, value| {
            options.max_memory = Some(value.size()?);
            Ok(())
        },
    }
    Cache {
        name: "cache",
        value: "WHEN",
        topic: Topic::Reading,
        kind: OptionKind::Words(&[
            (Cache::Auto.name(), ""),
            (Cache::Yes.name(), ""),
            (Cache::No.name(), ""),
        ]),
        text: "Read through the page cache",
        default: "auto",
        set: |options, value| {
            options.cache = value.parse()?;
            Ok(())
        },
    }
    Holes {
        name: "holes",
        value: "MODE",
        topic: Topic::Reading,
        kind: OptionKind::Words(&[
            (Holes::Trust.name(), ""),
            (Holes::Verify.name(), ""),
            (Holes::Ignore.name(), ""),
        ]),
        text: "How to treat holes in files",
        default: "trust",
        set: |options, value| {
            options.holes = value.parse()?;
            Ok(())
        },
    }
    #[cfg(feature = "qemu-nbd")]
    Reader {
        name: "reader",
        value: "HOW",
        topic: Topic::Reading,
        kind: OptionKind::Words(&[("auto", "natively if possible"), ("qemu", "by qemu-nbd, for comparisons")]),
        text: "How formats are read",
        default: "auto",
        set: |options, value| {
            options.reader = value.parse::<Reader>()?;
            Ok(())
        },
    }
    #[cfg(feature = "qemu-nbd")]
    NbdServer {
        name: "nbd-server",
        value: "PROGRAM",
        topic: Topic::Reading,
        kind: OptionKind::Program,
        text: "Program that reads formats that are not read natively",
        default: "qemu-nbd",
        set: |options, value| {
            options.nbd_server = Some(value.path()?);
            Ok(())
        },
    }
    #[cfg(feature = "http")]
    S3Endpoint {
        name: "s3-endpoint",
        value: "URL",
        topic: Topic::Reading,
        kind: OptionKind::Text,
        text: "Server of s3:// URLs",
        default: "as configured for AWS tools, or else AWS",
        set: |options, value| {
            options.http.s3.endpoint = Some(value.text()?);
            Ok(())
        },
    }
    #[cfg(feature = "http")]
    S3Region {
        name: "s3-region",
        value: "NAME",
        topic: Topic::Reading,
        kind: OptionKind::Text,
        text: "Region of the buckets of s3:// URLs",
        default: "as configured for AWS tools",
        set: |options, value| {
            options.http.s3.region = Some(value.text()?);
            Ok(())
        },
    }
    #[cfg(feature = "http")]
    S3Profile {
        name: "s3-profile",
        value: "NAME",
        topic: Topic::Reading,
        kind: OptionKind::Text,
        text: "Profile of the AWS tools with the keys for s3:// URLs",
        default: "as configured for AWS tools",
        set: |options, value| {
            options.http.s3.profile = Some(value.text()?);
            Ok(())
        },
    }
    #[cfg(any(feature = "nbd", feature = "http"))]
    Timeout {
        name: "timeout",
        value: "SECONDS",
        topic: Topic::Reading,
        kind: OptionKind::Seconds,
        text: "Number of seconds that a server may be silent; 0 waits forever",
        default: "60",
        set: |options, value| {
            options.set_timeout(value.duration()?);
            Ok(())
        },
    }
}

impl OpenOption {
    /// Finds the option with this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|option| option.name() == name)
    }

    /// Returns the words and names that the option takes, if there are only these.
    pub fn words(self) -> Vec<&'static str> {
        match self.kind() {
            OptionKind::Words(words) => words.iter().map(|(word, _)| *word).collect(),
            OptionKind::Format { is_file } => {
                let compressions = Compression::names().into_iter().filter(|_| is_file);
                Format::all().map(Format::name).chain(compressions).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Describes the words that the option takes: `auto (as in QEMU 10.0), geometry or current`. `quote` writes a word.
    pub fn choice(self, quote: impl Fn(&str) -> String) -> Option<String> {
        let OptionKind::Words(words) = self.kind() else { return None };
        let words = words.iter().map(|(word, explanation)| match *explanation {
            "" => quote(word),
            explanation => format!("{} ({explanation})", quote(word)),
        });
        Some(one_of(&words.collect::<Vec<String>>()))
    }
}

impl OpenOptions {
    /// Sets an option that a user gave by its name.
    ///
    /// # Errors
    ///
    /// Fails if the option does not have such a value. The options are unchanged then.
    pub fn set(&mut self, option: OpenOption, value: OptionValue) -> Result<(), InvalidValue> {
        let OptionValue::Text(text) = value else { return option.set(self, value) };
        option.set(self, OptionValue::Text(text.clone())).map_err(|error| {
            let names = match option.kind() {
                OptionKind::Format { .. } => "a format, such as raw or qcow2".to_owned(),
                OptionKind::Words(_) => one_of(&option.words()),
                _ => return error,
            };
            InvalidValue(format!("must be {names}, not '{}'", text.escape_debug()))
        })
    }

    /// Limits the time that any server may be silent. Zero waits forever.
    #[cfg(any(feature = "nbd", feature = "http"))]
    fn set_timeout(&mut self, given: Duration) {
        let timeout = Some(given).filter(|it| !it.is_zero());
        #[cfg(feature = "nbd")]
        {
            self.nbd.timeout = timeout;
        }
        #[cfg(feature = "http")]
        {
            self.http.timeout = timeout;
        }
    }

    #[cfg(feature = "compressed")]
    #[expect(clippy::unnecessary_wraps, reason = "is an error without the feature")]
    fn set_compression(&mut self, compression: Option<Compression>) -> Result<(), InvalidValue> {
        self.compression = compression;
        Ok(())
    }

    #[cfg(not(feature = "compressed"))]
    fn set_compression(&mut self, compression: Option<Compression>) -> Result<(), InvalidValue> {
        match compression {
            None => Ok(()),
            Some(it) => Err(InvalidValue(format!("{it} is not decompressed by this build"))),
        }
    }
}

impl OptionValue {
    fn parse<T: FromStr<Err: Display>>(self) -> Result<T, InvalidValue> {
        self.text()?.parse().map_err(|error: T::Err| InvalidValue(error.to_string()))
    }

    fn text(self) -> Result<String, InvalidValue> {
        match self {
            Self::Text(text) => Ok(text),
            _ => Err(InvalidValue::kind("text")),
        }
    }

    fn flag(self) -> Result<bool, InvalidValue> {
        match self {
            Self::Flag(flag) => Ok(flag),
            _ => Err(InvalidValue::kind("flag")),
        }
    }

    fn size(self) -> Result<u64, InvalidValue> {
        match self {
            Self::Size(size) => Ok(size),
            _ => Err(InvalidValue::kind("number of bytes")),
        }
    }

    #[cfg(any(feature = "nbd", feature = "http"))]
    fn duration(self) -> Result<Duration, InvalidValue> {
        match self {
            Self::Duration(duration) => Ok(duration),
            _ => Err(InvalidValue::kind("time")),
        }
    }

    #[cfg(any(feature = "http", feature = "nbd"))]
    fn path(self) -> Result<PathBuf, InvalidValue> {
        match self {
            Self::Path(path) => Ok(path),
            _ => Err(InvalidValue::kind("path")),
        }
    }

    #[cfg(feature = "qemu-nbd")]
    fn secret(self) -> Result<Secret, InvalidValue> {
        match self {
            Self::Secret(secret) => Ok(secret),
            _ => Err(InvalidValue::kind("secret")),
        }
    }
}

impl InvalidValue {
    fn kind(wanted: &str) -> Self {
        Self(format!("is no {wanted}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_types() {
        let of_types = [
            (OpenOption::VpcSize, VpcSize::names(), VpcSize::default().name()),
            (OpenOption::Follow, Follow::names(), Follow::default().name()),
            (OpenOption::Cache, Cache::names(), Cache::default().name()),
            (OpenOption::Holes, Holes::names(), Holes::default().name()),
            #[cfg(feature = "qemu-nbd")]
            (OpenOption::Reader, Reader::names(), Reader::default().name()),
        ];
        for (option, names, default) in of_types {
            assert_eq!(option.words(), names, "{option:?}");
            assert_eq!((option.default_text(), names[0]), (default, default), "{option:?}");
        }
    }

    #[test]
    fn every_option_takes_its_own_kind_of_value_and_no_other() {
        let values = |option: OpenOption| {
            let text = option.words().first().map_or("name", |word| *word).to_owned();
            [
                OptionValue::Text(text),
                OptionValue::Flag(true),
                OptionValue::Size(5),
                OptionValue::Duration(Duration::from_secs(5)),
                OptionValue::Path("path".into()),
                OptionValue::Secret(Secret::new(b"secret")),
            ]
        };
        for option in OpenOption::ALL {
            let accepted: Vec<bool> = values(*option)
                .into_iter()
                .map(|value| OpenOptions::new().set(*option, value).is_ok())
                .collect();
            let kind = match option.kind() {
                OptionKind::Format { .. } | OptionKind::Words(_) | OptionKind::Text => 0,
                OptionKind::Flag => 1,
                OptionKind::Size => 2,
                OptionKind::Seconds => 3,
                OptionKind::File | OptionKind::Folder | OptionKind::Program => 4,
                OptionKind::Secret => 5,
            };
            let expected: Vec<bool> =
                (0..6).map(|it| it == kind && option.is_in_this_build()).collect();
            assert_eq!(accepted, expected, "{option:?}");
            assert_eq!(OpenOption::find(option.name()), Some(*option));
        }
    }

    impl OpenOption {
        fn is_in_this_build(self) -> bool {
            let is_in = |feature: bool, options: &[Self]| feature || !options.contains(&self);
            is_in(cfg!(feature = "qemu-nbd"), &[Self::Secret, Self::Reader, Self::NbdServer])
                && is_in(cfg!(feature = "nbd"), &[Self::TlsCertificates])
                && is_in(cfg!(any(feature = "nbd", feature = "http")), &[Self::Timeout])
                && is_in(
                    cfg!(feature = "http"),
                    &[Self::TlsCa, Self::S3Endpoint, Self::S3Region, Self::S3Profile],
                )
                && is_in(cfg!(feature = "compressed"), &[Self::MaxMemory])
        }
    }

    #[test]
    fn what_is_set_is_in_the_field() {
        let mut options = OpenOptions::new();
        let mut set = |name: &str, value: &str| {
            let option = OpenOption::find(name).unwrap();
            options.set(option, OptionValue::Text(value.to_owned()))
        };
        set("format", "qcow2").unwrap();
        set("follow", "any").unwrap();
        set("vpc-size", "current").unwrap();
        let error = set("holes", "no").unwrap_err().to_string();
        assert_eq!(error, "must be trust, verify or ignore, not 'no'");
        let error = set("backing-format", "tar\n").unwrap_err().to_string();
        assert_eq!(error, "must be a format, such as raw or qcow2, not 'tar\\n'");
        assert_eq!(options.format, Some(Format::Qcow2));
        assert_eq!((options.follow, options.vpc_size), (Follow::Any, VpcSize::Current));
        assert_eq!(options.holes, Holes::Trust);
    }
}
