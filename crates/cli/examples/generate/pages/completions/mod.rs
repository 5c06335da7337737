//! Generates shell completions from an argument parser.
//!
//! A [`Level`] holds the options, operands and subcommands of a command. Each shell has a module that
//! writes the levels of a program in the language of the shell.

pub mod bash;
pub mod fish;
pub mod zsh;

use clap::{Arg, ArgAction, Command, ValueHint};

/// A command or a subcommand.
pub struct Level {
    /// Names of the command and its parents, such as `blkhash bench image`.
    pub path: String,
    pub options: Vec<CommandOption>,
    /// Kind of the operands, if any.
    pub operands: Option<Value>,
    pub subcommands: Vec<Subcommand>,
}

pub struct CommandOption {
    /// Letters without their dashes.
    pub short: Vec<char>,
    /// Long names without their dashes.
    pub long: Vec<String>,
    pub help: String,
    pub takes: Takes,
    pub repeats: bool,
}

/// Whether an option has a value.
pub enum Takes {
    Nothing,
    /// A value after `=` or as the next word.
    Value(ValueName, Value),
    /// An optional value after `=`.
    Optional(ValueName, Value),
}

pub type ValueName = String;

/// The kind of a value or operand.
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    Files,
    Folders,
    Programs,
    OneOf(Vec<String>),
    /// A number, size or pattern, which cannot be completed.
    Other,
}

pub struct Subcommand {
    pub name: String,
    pub help: String,
}

impl Level {
    /// Returns the command and all of its subcommands, parents first.
    pub fn all(mut command: Command) -> Vec<Self> {
        command.build();
        let mut levels = Vec::new();
        Self::add(&command, command.get_name(), &mut levels);
        levels
    }

    fn add(command: &Command, path: &str, levels: &mut Vec<Self>) {
        let offered = || command.get_arguments().filter(|argument| !argument.is_hide_set());
        let subcommands = || command.get_subcommands().filter(|inner| !inner.is_hide_set());
        levels.push(Self {
            path: path.to_owned(),
            options: offered().filter(|argument| !argument.is_positional()).map(option).collect(),
            operands: command.get_positionals().next().map(value),
            subcommands: subcommands().map(subcommand).collect(),
        });
        for inner in subcommands() {
            Self::add(inner, &format!("{path} {}", inner.get_name()), levels);
        }
    }

    /// Returns whether the command takes no arguments.
    pub fn is_leaf(&self) -> bool {
        self.options.is_empty() && self.operands.is_none() && self.subcommands.is_empty()
    }

    /// Returns the name of the shell function for this level.
    pub fn function(&self) -> String {
        format!("_{}", self.path.replace([' ', '-'], "_"))
    }
}

impl CommandOption {
    /// Returns all names with their dashes.
    pub fn names(&self) -> impl Iterator<Item = String> {
        let short = self.short.iter().map(|letter| format!("-{letter}"));
        short.chain(self.long.iter().map(|name| format!("--{name}")))
    }
}

fn option(argument: &Arg) -> CommandOption {
    let value_name = || {
        let names = argument.get_value_names().unwrap_or_default();
        names.first().map(ToString::to_string).unwrap_or_default()
    };
    let takes = if !argument.get_action().takes_values() {
        Takes::Nothing
    } else if argument.get_num_args().is_some_and(|count| count.min_values() == 0) {
        Takes::Optional(value_name(), value(argument))
    } else {
        Takes::Value(value_name(), value(argument))
    };
    CommandOption {
        short: argument.get_short_and_visible_aliases().unwrap_or_default(),
        long: names(argument.get_long_and_visible_aliases()),
        help: summary(&argument.get_help().map(ToString::to_string).unwrap_or_default()),
        takes,
        repeats: matches!(argument.get_action(), ArgAction::Append | ArgAction::Count),
    }
}

fn names(names: Option<Vec<&str>>) -> Vec<String> {
    names.unwrap_or_default().into_iter().map(str::to_owned).collect()
}

fn value(argument: &Arg) -> Value {
    match argument.get_value_hint() {
        ValueHint::FilePath | ValueHint::AnyPath => Value::Files,
        ValueHint::DirPath => Value::Folders,
        ValueHint::CommandName | ValueHint::ExecutablePath => Value::Programs,
        _ => {
            let words = argument.get_possible_values();
            let words: Vec<_> = words.iter().map(|word| word.get_name().to_owned()).collect();
            if words.is_empty() { Value::Other } else { Value::OneOf(words) }
        }
    }
}

fn subcommand(command: &Command) -> Subcommand {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    Subcommand { name: command.get_name().to_owned(), help: summary(&about) }
}

/// Returns the first sentence of a help text, without the default.
fn summary(help: &str) -> String {
    let help = help.split(". ").next().unwrap_or_default();
    let help = help.split(" [").next().unwrap_or_default();
    help.trim_end_matches('.').split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Puts `text` between single quotes. `quote` replaces each quote in it.
fn quoted(text: &str, quote: &str) -> String {
    format!("'{}'", text.replace('\'', quote))
}
