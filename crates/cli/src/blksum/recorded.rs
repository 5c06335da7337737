//! What the tag of a line records about how an image was read, so that a check reads it in the same way.

use std::borrow::Cow;
use std::ffi::OsStr;

use blkimage::{Format, OpenOptions, VpcSize};
use blksum::check_file::{Form, Style};
use blksum::{Content, Part, Tag};

use super::input;
use super::program::PROGRAM;
use super::report::Report;
use crate::{messages, quote};

/// Returns the style of the line of an image. The tag records the format raw if that was given, because a
/// guest may write the header of another one later. It records another format that was given if it would not
/// be detected, and the size of vpc images that was asked for.
pub fn style<'a>(
    style: &'a Style,
    name: &OsStr,
    report: &Report,
    open: &OpenOptions,
) -> Cow<'a, Style> {
    let Form::Tagged(Tag::Image(tag)) = &style.form else { return Cow::Borrowed(style) };
    let detected = || report.stream.map(|(format, _)| format).or_else(|| input::detected(name));
    let is_recorded = |format: &Format| *format == Format::Raw || detected() != Some(*format);
    let format = open.format.filter(is_recorded);
    let vpc_size = Some(open.vpc_size).filter(|size| report.has_vpc && *size != VpcSize::Auto);
    if format.is_none() && vpc_size.is_none() {
        return Cow::Borrowed(style);
    }
    let mut tag = tag.clone();
    tag.content = Content { format, vpc_size, ..tag.content };
    Cow::Owned(Style { form: Form::Tagged(Tag::Image(tag)), ..style.clone() })
}

/// Prints a note if lines without a tag lose the part that they are of, and are kept in a file.
pub fn note_lost(styles: &[Style], content: &Content) {
    let is_lost = styles.iter().any(|style| matches!(style.form, Form::Text | Form::Binary));
    if is_lost && content.is_part() && input::is_output_kept() {
        let what = describe(content);
        let note = format!("note: the lines do not say that they are of {what}: --tag records it");
        messages::remark(PROGRAM, &note);
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
