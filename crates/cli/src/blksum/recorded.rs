//! Reads an image for a check in the way that the tag of a line records.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use blkhash::Parameters;
use blkimage::{Format, OpenOptions, VpcSize};
use blksum::check_file::{Form, Style};
use blksum::expect::Reading;
use blksum::{Conflict, Content, Encoding, Part, Tag};

use super::report::Report;
use super::settings::{Meaning, Settings};
use crate::image::input;
use crate::problem::Problem;
use crate::{messages, quote};

/// Returns the style of the line of an image. The tag records the format raw if that was given, because a
/// guest may write the header of another one later. It records another format that was given if it would not
/// be detected, and the size of vpc images that was asked for. If an image has two, it records the one that was read,
/// because versions do not agree on the default.
pub fn style<'a>(
    style: &'a Style,
    name: &OsStr,
    report: &Report,
    open: &OpenOptions,
) -> Cow<'a, Style> {
    let Form::Tagged(Tag::Image(tag)) = &style.form else { return Cow::Borrowed(style) };
    let is_recorded =
        |format: &Format| *format == Format::Raw || input::detected(name) != Some(*format);
    let format = open.format.filter(is_recorded);
    let asked = Some(open.vpc_size).filter(|size| report.has_vpc && *size != VpcSize::Auto);
    let vpc_size = asked.or(report.vpc_sizes.map(|sizes| sizes.read));
    if format.is_none() && vpc_size.is_none() {
        return Cow::Borrowed(style);
    }
    let mut tag = tag.clone();
    tag.content = Content { format, vpc_size, ..tag.content };
    Cow::Owned(Style { form: Form::Tagged(Tag::Image(tag)), ..style.clone() })
}

/// Returns the parameters that a tag records.
pub fn parameters(tag: &Tag) -> Parameters {
    match tag {
        Tag::Image(tag) => tag.parameters,
        Tag::File(algorithm) => Tag::linear(*algorithm),
    }
}

/// Returns what is hashed for a line with this tag. Fails if the options ask for another content.
pub fn meaning<'a>(
    settings: &'a Settings,
    tag: &Tag,
    parameters: Vec<Parameters>,
) -> Result<Meaning<'a>, Problem> {
    let (parameters, all) = (Cow::Owned(parameters), settings.meaning());
    match tag {
        Tag::File(_) => Ok(Meaning { parameters, ..of_bytes(settings) }),
        Tag::Image(tag) if !tag.content.is_default() => {
            let open = tag.content.open_options(&settings.open, settings.part);
            let open = open.map_err(|conflict| {
                let option = match conflict {
                    Conflict::Format => "--format",
                    Conflict::VpcSize => "--vpc-size",
                    Conflict::Snapshot => "--snapshot",
                    Conflict::Partition => "--partition",
                    _ => "--offset and --length",
                };
                let content = describe(&tag.content);
                Problem::new(format!("its checksum is of {content}: leave out {option}"))
            })?;
            let is_recorded = tag.content.is_part();
            let part = if is_recorded { tag.content.part } else { settings.part };
            Ok(Meaning { parameters, open: Cow::Owned(open), part, is_recorded, ..all })
        }
        Tag::Image(_) => Ok(Meaning { parameters, ..all }),
    }
}

/// Returns that the bytes of the file itself are hashed.
pub fn of_bytes(settings: &Settings) -> Meaning<'_> {
    let open = settings.open.clone().format(Format::Raw).snapshot(None);
    Meaning { open: Cow::Owned(open), part: None, ..settings.meaning() }
}

/// Returns the content that is hashed for a line: the tag's, or the options'.
pub fn content(settings: &Settings, tag: Option<&Tag>) -> Content {
    match tag {
        Some(Tag::File(_)) => Content::default(),
        Some(Tag::Image(tag)) if tag.content.is_part() => tag.content.clone(),
        Some(Tag::Image(tag)) => {
            let Content { snapshot, part, .. } = settings.content();
            Content { snapshot, part, ..tag.content.clone() }
        }
        None => settings.content(),
    }
}

/// Whether a line is of a whole file, and the options ask for a part of each image.
pub fn excludes_part(settings: &Settings, tag: Option<&Tag>) -> bool {
    let has_part = settings.part.is_some() || settings.open.snapshot.is_some();
    has_part && matches!(tag, Some(Tag::File(_)))
}

/// Returns the line with a tag for a checksum that was found, without its end. `None` if a tag cannot hold its
/// content. `tag` belongs to the line that was checked.
pub fn line(
    name: &OsStr,
    settings: &Settings,
    report: &Report,
    reading: &Reading,
    tag: Option<&Tag>,
) -> Option<String> {
    let (_, digest) = report.checksums.iter().find(|(known, _)| *known == reading.parameters)?;
    let content = content(settings, tag);
    if !reading.is_of_file() {
        content.check_recordable().ok()?;
    }
    let form = Form::Tagged(reading.tag(content));
    let plain = Style { form, encoding: Encoding::Hex, zero: false };
    let style = match tag {
        None => style(&plain, name, report, &settings.open),
        Some(_) => Cow::Borrowed(&plain),
    };
    let line = style.line(name.as_bytes(), digest.as_bytes());
    String::from_utf8(line).ok().map(|line| line.trim_end_matches('\n').to_owned())
}

/// The reason why the checksum of a whole file is not compared with the checksum of a part.
pub const WHOLE_FILE: &str = "its checksum is of the bytes of the whole file: leave out --partition, --offset, \
                              --length and --snapshot";

/// Prints a note if lines without a tag lose the part that they are of, and are kept in a file.
pub fn note_lost(styles: &[Style], content: &Content) {
    let is_lost = styles.iter().any(|style| !matches!(style.form, Form::Tagged(_)));
    if is_lost && content.is_part() && input::is_output_kept() {
        let what = describe(content);
        let note = format!("note: the lines do not say that they are of {what}: --tag records it");
        messages::remark(&note);
    }
}

/// Describes a content in words, for a message of one line.
pub fn describe(content: &Content) -> String {
    let format = content.format.map(|format| format!("format {format}"));
    let vpc_size = content.vpc_size.map(|size| match size {
        VpcSize::Geometry => "the size of the geometry",
        _ => "the current size",
    });
    let snapshot = content.snapshot.as_ref();
    let snapshot = snapshot.map(|name| format!("snapshot {}", quote::name(name.as_bytes())));
    let part = content.part.map(|part| match part {
        Part::Partition(number) => format!("partition {number}"),
        Part::Range { offset, length: None } => format!("offset {offset} to the end"),
        Part::Range { offset, length: Some(length) } => format!("{length} bytes at {offset}"),
    });
    let fields = [snapshot, part, format, vpc_size.map(str::to_owned)];
    fields.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
