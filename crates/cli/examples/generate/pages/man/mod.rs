//! Renders the manual pages of the commands from `crates/cli/man/*.md`.
//!
//! A page begins with its front matter, lines of YAML between two lines `---`, in this order:
//!
//! - `command`: the command, such as `blkhash bench image` in `blkhash-bench-image.md`
//! - `description`: the text of the section NAME
//! - `synopsis`: the ways to call the command, each in a line that begins with `  - ` and the command
//! - `date`: the day of the last change to the page
//!
//! The rest is Markdown with these elements:
//!
//! - `## TITLE` begins a section. The section OPTIONS is empty, and is filled in from the argument parser. So is
//!   DESCRIPTION if it is empty.
//! - Lines of text are a paragraph. Empty lines separate paragraphs.
//! - `` - `term`: text `` or `- **term**: text` is an item. Its further lines are indented by two spaces.
//! - Lines from ```` ```sh ```` to ```` ``` ```` are commands.
//! - In text: `**bold**`, `*italic*`, and `` `code` ``, which is bold. `\*` is a star.
//!
//! Other elements are errors. Errors name the file and the line.

mod markdown;

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use blkhash_cli::{blkcopy, blkhash, blksum};
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use markdown::{Lines, malformed, sections};

use super::{Kind, Page};

pub fn pages() -> io::Result<Vec<Page>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("man");
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // An editor may leave other files.
        if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(page(&path, &fs::read_to_string(&path)?)?);
        }
    }
    Ok(pages)
}

/// Renders the text of a file.
pub fn page(path: &Path, text: &str) -> io::Result<Page> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let content = render(&name, text)
        .map_err(|error| io::Error::other(format!("{}:{error}", path.display())))?;
    Ok(Page { kind: Kind::Man, file_name: format!("{name}.1"), content })
}

fn render(name: &str, text: &str) -> io::Result<Vec<u8>> {
    let mut lines = (1..).zip(text.lines()).peekable();
    let head = Head::read(&mut lines)?;
    if head.command.replace(' ', "-") != name {
        return Err(malformed(1, format!("{name}.md is not the page of {}", head.command)));
    }
    let Some(parser) = parser(head.command) else {
        return Err(malformed(1, format!("there is no command {}", head.command)));
    };
    let mut page = Vec::new();
    head.write(name, &mut page)?;
    let mut has_options = false;
    for section in sections(&mut lines)? {
        match section.title {
            _ if !section.is_empty => section.roff.to_writer(&mut page)?,
            "DESCRIPTION" => parser.render_description_section(&mut page)?,
            "OPTIONS" => {
                parser.render_options_section(&mut page)?;
                has_options = true;
            }
            _ => return Err(malformed(section.line, "the section is empty")),
        }
    }
    if !has_options {
        return Err(malformed(1, "there is no empty section OPTIONS"));
    }
    Ok(page)
}

/// Returns the options of a command. The text after them in --help is part of other sections here.
fn parser(command: &str) -> Option<Man> {
    let mut words = command.split(' ');
    let program = match words.next()? {
        "blksum" => blksum::command().mut_arg("digest", |digest| {
            let help = digest.get_help().map(ToString::to_string).unwrap_or_default();
            digest.help(help + ". -a and --algorithm are the same.")
        }),
        "blkhash" => blkhash::command(),
        "blkcopy" => blkcopy::command(),
        _ => return None,
    };
    let find = |parser: Command, word| parser.find_subcommand(word).cloned();
    let parser = words.try_fold(program, find)?;
    Some(Man::new(parser.mut_args(|option| option.hide_short_help(false)).after_help(None)))
}

/// The front matter.
#[derive(Default)]
struct Head<'a> {
    command: &'a str,
    description: &'a str,
    /// The arguments after the command.
    synopsis: Vec<&'a str>,
    date: &'a str,
}

impl<'a> Head<'a> {
    fn read(lines: &mut Lines<'a>) -> io::Result<Self> {
        let mut head = Self::default();
        let is_border = |(_, line): &(usize, &str)| *line == "---";
        lines.next_if(is_border).ok_or_else(|| malformed(1, "a page begins with ---"))?;
        for (number, line) in lines.take_while(|line| !is_border(line)) {
            match line.split_once(": ") {
                Some(("command", value)) => head.command = value,
                Some(("description", value)) => head.description = value,
                Some(("date", value)) => head.date = value,
                None if line == "synopsis:" => {}
                _ => {
                    let usage = line.strip_prefix("  - ");
                    let arguments = usage.and_then(|usage| usage.strip_prefix(head.command));
                    let unknown = || malformed(number, "not a line of the front matter");
                    head.synopsis.push(arguments.ok_or_else(unknown)?);
                }
            }
        }
        if [head.command, head.description, head.date].contains(&"") || head.synopsis.is_empty() {
            return Err(malformed(1, "command, description, synopsis or date is missing"));
        }
        Ok(head)
    }

    fn write(&self, name: &str, page: &mut Vec<u8>) -> io::Result<()> {
        let version = env!("CARGO_PKG_VERSION");
        let (title, date) = (name.to_uppercase(), self.date);
        writeln!(page, r#".TH {title} 1 "{date}" "blkhash {version}" "User Commands""#)?;
        let mut roff = Roff::new();
        roff.control("SH", ["NAME"]);
        roff.text([roman(format!("{name} - {}", self.description))]);
        roff.control("SH", ["SYNOPSIS"]);
        for (index, arguments) in self.synopsis.iter().enumerate() {
            if index > 0 {
                roff.control("br", []);
            }
            roff.text([bold(self.command), roman(*arguments)]);
        }
        roff.to_writer(page)
    }
}
