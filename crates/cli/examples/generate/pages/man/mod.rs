//! Manual pages, each with a head, the options of the parser, and sections of text.

mod blkhash;
mod blksum;
mod map;
mod verity;

use std::io::{self, Write};

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::{Kind, Page};

/// The text of a page, except its options.
struct Text {
    /// The command, such as `blkhash bench image`.
    command: &'static str,
    /// Description in the section NAME.
    what: &'static str,
    /// Arguments, one line for each way to call the command.
    synopsis: &'static [&'static str],
    before_options: Sections,
    after_options: Sections,
}

/// Titles of sections, each with its paragraphs.
type Sections = &'static [(&'static str, &'static [&'static str])];

pub fn pages() -> io::Result<Vec<Page>> {
    let mut blksum = blksum::command();
    let mut blkhash = blkhash_cli::blkhash::command();
    let mut pages = vec![page(&mut blksum, &blksum::TEXT)?];
    for text in blkhash::TEXTS.iter().chain(map::TEXTS).chain(verity::TEXTS) {
        pages.push(page(&mut blkhash, text)?);
    }
    Ok(pages)
}

fn page(program: &mut Command, text: &Text) -> io::Result<Page> {
    let mut command = program;
    for word in text.command.split(' ').skip(1) {
        command = command.find_subcommand_mut(word).expect("the parser knows the command");
    }
    // The text after the options in --help is part of other sections here, and all options are described.
    let described = command.clone().mut_args(|option| option.hide_short_help(false));
    let options = Man::new(described.after_help(None));
    let name = text.command.replace(' ', "-");
    let mut page = Vec::new();
    write_head(&mut page, &name, text)?;
    if text.before_options.is_empty() {
        options.render_description_section(&mut page)?;
    }
    write_sections(&mut page, text.before_options)?;
    options.render_options_section(&mut page)?;
    write_sections(&mut page, text.after_options)?;
    Ok(Page { kind: Kind::Man, file_name: format!("{name}.1"), content: page })
}

/// Writes everything before the description.
fn write_head(page: &mut Vec<u8>, name: &str, text: &Text) -> io::Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    let title = name.to_uppercase();
    writeln!(page, r#".TH {title} 1 "{DATE}" "blkhash {version}" "User Commands""#)?;
    let mut section = Roff::new();
    section.control("SH", ["NAME"]);
    section.text([roman(format!("{name} - {}", text.what))]);
    section.control("SH", ["SYNOPSIS"]);
    for (index, arguments) in text.synopsis.iter().enumerate() {
        if index > 0 {
            section.control("br", []);
        }
        section.text([bold(text.command), roman(format!(" {arguments}"))]);
    }
    section.to_writer(page)
}

fn write_sections(page: &mut Vec<u8>, sections: Sections) -> io::Result<()> {
    for (title, paragraphs) in sections {
        let mut section = Roff::new();
        section.control("SH", [*title]);
        for (index, paragraph) in paragraphs.iter().enumerate() {
            write_paragraph(&mut section, paragraph, index == 0);
        }
        section.to_writer(page)?;
    }
    Ok(())
}

/// Writes a paragraph. An indented paragraph is written literally, and `* TERM: TEXT` becomes an item.
fn write_paragraph(section: &mut Roff, paragraph: &str, is_first: bool) {
    if let Some(code) = paragraph.strip_prefix("    ") {
        section.control("PP", []);
        section.control("RS", ["4"]);
        section.control("nf", []);
        section.text([roman(code)]);
        section.control("fi", []);
        section.control("RE", []);
    } else if let Some((term, text)) =
        paragraph.strip_prefix("* ").and_then(|item| item.split_once(": "))
    {
        section.control("TP", []);
        section.text([bold(term)]);
        section.text([roman(text)]);
    } else {
        if !is_first {
            section.control("PP", []);
        }
        section.text([roman(paragraph)]);
    }
}

/// The date of the last change to the text.
const DATE: &str = "2026-11-23";
