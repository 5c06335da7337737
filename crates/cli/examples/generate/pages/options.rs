//! What Python, C and the pages say of the options for opening images, from the table of these.
//!
//! A file of its own has nothing else. In other files, the text is between two lines.

use std::io;
use std::path::Path;

use blkimage::{OpenOption, OptionKind};

use super::Page;

/// Generates the texts, in files of the repository at `root`.
pub fn pages(root: &Path) -> io::Result<Vec<Page>> {
    let markdown = ("<!-- options: generated -->\n", "<!-- end of options -->\n");
    let mdoc = (".\\\" options: generated\n", ".\\\" end of options\n");
    let whole = [("python/src/options.txt", docstring()), ("python/blkhash/_options.py", types())];
    let parts = [
        ("python/README.md", markdown, readme()),
        ("docs/reference/images.md", markdown, images()),
        ("man/blksum-opts.3", mdoc, manual()),
    ];
    let whole = whole.into_iter().map(|(name, text)| Ok(Page::source(name, text)));
    let parts = parts.into_iter();
    whole.chain(parts.map(|(name, lines, text)| Page::between(root, name, lines, &text))).collect()
}

/// The arguments in the docstrings of functions that open images.
fn docstring() -> String {
    let lines = OpenOption::ALL.iter().map(|option| {
        let default = match option.default_text() {
            "" => String::new(),
            default => format!("; by default {}", python_default(*option, default)),
        };
        let text = lower(&sentence(*option, python_word));
        fill(&format!("    {}: {text}{default}.", python_name(*option)), "        ", 100)
    });
    // The documentation ends the last line.
    lines.collect::<Vec<_>>().join("\n")
}

/// The types of the arguments.
fn types() -> String {
    let fields = OpenOption::ALL.iter().map(|option| {
        let kind = match option.kind() {
            OptionKind::Flag => return format!("    {}: bool\n", python_name(*option)),
            OptionKind::Words(words) => {
                let words: Vec<_> = words.iter().map(|(word, _)| python_word(word)).collect();
                format!("Literal[{}]", words.join(", "))
            }
            OptionKind::Size => "int".to_owned(),
            OptionKind::Seconds => "float".to_owned(),
            OptionKind::File | OptionKind::Folder | OptionKind::Program => {
                "Union[str, PathLike[str]]".to_owned()
            }
            OptionKind::Secret => "Union[bytes, bytearray, memoryview]".to_owned(),
            OptionKind::Format { .. } | OptionKind::Text => "str".to_owned(),
        };
        format!("    {}: Optional[{kind}]\n", python_name(*option))
    });
    TYPES.to_owned() + &fields.collect::<String>()
}

/// The table in the manual of the Python package.
fn readme() -> String {
    let rows = OpenOption::ALL.iter().map(|option| {
        let text = sentence(*option, |word| format!("`{}`", python_word(word)));
        let default = python_default(*option, option.default_text());
        format!("| `{}` | {text} | {default} |\n", python_name(*option))
    });
    "| option | meaning | default |\n|---|---|---|\n".to_owned() + &rows.collect::<String>()
}

/// The table in the manual of images.
fn images() -> String {
    let command = blkhash_cli::blksum::command();
    let long = |option: OpenOption| {
        let mut arguments = command.get_arguments();
        let argument = arguments.find(|argument| argument.get_id() == option.name());
        argument.and_then(clap::Arg::get_long).expect("the commands have the option").to_owned()
    };
    let rows = OpenOption::ALL.iter().map(|option| {
        let text = sentence(*option, |word| format!("`{word}`"));
        let default = match option.kind() {
            OptionKind::Words(_) => format!("`{}`", option.default_text()),
            _ => option.default_text().to_owned(),
        };
        let value = option.value_name();
        let space = if value.is_empty() { "" } else { " " };
        format!(
            "| `{}` | `--{}{space}{value}` | {text} | {default} |\n",
            option.name(),
            long(*option)
        )
    });
    "| option | in commands | meaning | default |\n|---|---|---|---|\n".to_owned()
        + &rows.collect::<String>()
}

/// The list in the manual page of the C library.
fn manual() -> String {
    let items = OpenOption::ALL.iter().map(|option| {
        let mut item = format!(".It Cm {}\n{}", option.name(), option.text());
        match option.kind() {
            OptionKind::Words(words) => {
                item += ":\n";
                for (index, (word, explanation)) in words.iter().enumerate() {
                    let end = match words.len() - index {
                        1 => ".",
                        2 => "",
                        _ => ",",
                    };
                    let word = match *explanation {
                        "" => format!(".Cm {word} {end}"),
                        explanation => format!(".Cm {word}\n({explanation}){end}"),
                    };
                    item += word.trim_end();
                    item += if words.len() - index == 2 { "\nor\n" } else { "\n" };
                }
                item += &format!("The default is\n.Cm {} .\n", option.default_text());
            }
            OptionKind::Flag => item += ": 1 or 0.\n",
            _ => {
                item += ".\n";
                if !option.default_text().is_empty() {
                    item += &format!("The default: {}.\n", option.default_text());
                }
            }
        }
        item
    });
    items.collect()
}

fn sentence(option: OpenOption, word: impl Fn(&str) -> String) -> String {
    match option.choice(word) {
        Some(choice) => format!("{}: {choice}", option.text()),
        None => option.text().to_owned(),
    }
}

fn python_name(option: OpenOption) -> String {
    option.name().replace('-', "_")
}

fn python_word(word: &str) -> String {
    format!("\"{word}\"")
}

fn python_default(option: OpenOption, default: &str) -> String {
    match option.kind() {
        OptionKind::Words(_) => python_word(default),
        _ => default.to_owned(),
    }
}

fn lower(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// Breaks a line into lines of at most `width` columns, of which the first is not indented.
fn fill(text: &str, indent: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    let begin = text.len() - text.trim_start().len();
    lines[0] += &text[..begin];
    for word in text[begin..].split(' ') {
        let last = lines.last_mut().expect("there is a line");
        if last.trim().is_empty() {
            *last += word;
        } else if last.len() + 1 + word.len() <= width {
            *last += " ";
            *last += word;
        } else {
            lines.push(format!("{indent}{word}"));
        }
    }
    lines.join("\n")
}

const TYPES: &str = "\
\"\"\"The options for opening images. Generated from the table of blkimage.\"\"\"

from os import PathLike
from typing import Literal, Optional, TypedDict, Union


class OpenOptions(TypedDict, total=False):
    \"\"\"Keyword arguments that say how an image is opened. `None` is the default of each.\"\"\"

    partition: Optional[int]
";
