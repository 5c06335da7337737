//! The Markdown of manual pages.

use std::fmt::Display;
use std::iter::{Peekable, Zip};
use std::ops::RangeFrom;
use std::{io, mem, str};

use clap_mangen::roff::{Inline, Roff, bold, italic, roman};

/// Returns an error that becomes complete with the name of the file before it.
pub fn malformed(line: usize, reason: impl Display) -> io::Error {
    io::Error::other(format!("{line}: {reason}"))
}

/// Lines with their numbers.
pub type Lines<'a> = Peekable<Zip<RangeFrom<usize>, str::Lines<'a>>>;

/// A section, and the line of its title.
pub struct Section<'a> {
    pub line: usize,
    pub title: &'a str,
    pub roff: Roff,
    pub is_empty: bool,
}

/// Reads the rest of a page.
pub fn sections<'a>(lines: &mut Lines<'a>) -> io::Result<Vec<Section<'a>>> {
    let mut sections: Vec<Section> = Vec::new();
    while let Some((number, line)) = lines.next() {
        if let Some(title) = line.strip_prefix("## ") {
            let mut roff = Roff::new();
            roff.control("SH", [title]);
            sections.push(Section { line: number, title, roff, is_empty: true });
            continue;
        } else if line.is_empty() {
            continue;
        }
        let Some(Section { roff, is_empty, .. }) = sections.last_mut() else {
            return Err(malformed(number, "text before the first section"));
        };
        if line == "```sh" {
            let mut commands = Vec::new();
            loop {
                match lines.next() {
                    Some((_, "```")) => break,
                    Some((_, command)) => commands.push(command),
                    None => return Err(malformed(number, "no ``` ends the commands")),
                }
            }
            roff.control("PP", []);
            roff.control("RS", ["4"]);
            roff.control("nf", []);
            roff.text([roman(commands.join("\n"))]);
            roff.control("fi", []);
            roff.control("RE", []);
        } else if let Some(item) = line.strip_prefix("- ") {
            let mut text = text(number, item, "  ", lines)?;
            let term = take_term(&mut text)
                .ok_or_else(|| malformed(number, "an item is `term`: text or **term**: text"))?;
            roff.control("TP", []);
            roff.text([term]);
            roff.text(text);
        } else {
            if !*is_empty {
                roff.control("PP", []);
            }
            roff.text(text(number, line, "", lines)?);
        }
        *is_empty = false;
    }
    Ok(sections)
}

/// Removes the term of an item from its text.
fn take_term(item: &mut Vec<Inline>) -> Option<Inline> {
    let [Inline::Bold(_), Inline::Roman(text), ..] = &mut item[..] else { return None };
    *text = text.strip_prefix(": ")?.to_owned();
    Some(item.remove(0))
}

/// Reads the text that begins with `first`, up to the next block. Further lines have this indent.
fn text(number: usize, first: &str, indent: &str, lines: &mut Lines) -> io::Result<Vec<Inline>> {
    check_line(number, first)?;
    let mut text = first.to_owned();
    let is_text =
        |line: &str| !line.is_empty() && !BLOCKS.iter().any(|block| line.starts_with(block));
    while let Some((number, line)) = lines.next_if(|(_, line)| is_text(line)) {
        let line = line.strip_prefix(indent);
        let line = line.ok_or_else(|| malformed(number, "the line is not indented"))?;
        check_line(number, line)?;
        text = text + "\n" + line;
    }
    inlines(number, &text)
}

/// Beginnings of blocks that are not paragraphs.
const BLOCKS: [&str; 3] = ["## ", "- ", "```sh"];

/// Refuses a line of text that is something else in Markdown.
fn check_line(number: usize, line: &str) -> io::Result<()> {
    let others = ["#", "- ", "* ", "+ ", ">", "|", "<", "```", "~~~", "---", "==="];
    let is_numbered = line.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(". ");
    let is_other = is_numbered || others.iter().any(|other| line.starts_with(other));
    if is_other || line.trim() != line || line.contains("](") {
        return Err(malformed(number, "not an element of a manual page"));
    }
    Ok(())
}

/// Reads the markup of a text whose first line has this number.
fn inlines(number: usize, text: &str) -> io::Result<Vec<Inline>> {
    let joined = |text: &str| text.replace('\n', " ");
    let mut inlines = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['\\', '*', '`']) {
        plain += &rest[..at];
        rest = &rest[at..];
        let style = STYLES.into_iter().find(|(marker, _)| rest.starts_with(marker));
        let Some((marker, style)) = style else {
            // As in Markdown, a backslash before a letter is a backslash.
            let is_escape = rest[1..].starts_with(|c: char| c.is_ascii_punctuation());
            let (character, after) = rest[usize::from(is_escape)..].split_at(1);
            plain += character;
            rest = after;
            continue;
        };
        let is_styled = |styled: &str| {
            let is_plain = styled.trim() == styled && !styled.contains(['*', '`', '\\']);
            !styled.is_empty() && (is_plain || marker == "`")
        };
        let styled = rest[marker.len()..].split_once(marker);
        let Some((styled, after)) = styled.filter(|(styled, _)| is_styled(styled)) else {
            let line = number + text[..text.len() - rest.len()].matches('\n').count();
            return Err(malformed(
                line,
                format!("{marker} begins no plain text that ends with {marker}"),
            ));
        };
        inlines.extend([roman(joined(&mem::take(&mut plain))), style(joined(styled))]);
        rest = after;
    }
    inlines.push(roman(joined(&(plain + rest))));
    inlines.retain(|inline| *inline != roman(""));
    Ok(inlines)
}

type Style = fn(String) -> Inline;

/// Markers at both ends of a text, each before those that it begins with.
const STYLES: [(&str, Style); 3] = [("**", bold), ("*", italic), ("`", bold)];
