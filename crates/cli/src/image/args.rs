//! The options of all commands that open images, made from the table of `blkimage`.
//!
//! The headings are as in the help of blksum. The help of blkhash has none.

use std::ffi::OsString;
use std::path::PathBuf;

use blkimage::{Follow, FormatName, OpenOption, OpenOptions, OptionKind, OptionValue, Topic};
use blksandbox::Sandbox;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};

use crate::image::option::long;
use crate::outputs;
use crate::problem::Failure;
use crate::values::{OptionParser, read_secret};

/// Options for opening images.
#[derive(Clone, Debug)]
pub struct Opening {
    /// What was given, but for the secret, and otherwise the defaults.
    pub open: OpenOptions,
    pub secret_file: Option<PathBuf>,
    pub no_sandbox: bool,
    given: Vec<OpenOption>,
}

impl Opening {
    /// Restricts the process to reading the images of these names, unless the sandbox is switched off. Returns
    /// the options for opening them. Files to write are opened before.
    pub fn confine<'a>(
        &self,
        names: impl IntoIterator<Item = &'a OsString>,
    ) -> Result<OpenOptions, Failure> {
        let options = self.options().map_err(Failure::usage)?;
        outputs::guard();
        if !self.no_sandbox {
            let mut sandbox = Sandbox::for_images(&options);
            for name in names {
                sandbox.allow_name(name);
            }
            sandbox.enforce();
        }
        Ok(options)
    }

    /// Returns whether an option was given.
    pub fn is_given(&self, option: OpenOption) -> bool {
        self.given.contains(&option)
    }

    /// Returns the first given option that says what of an image is read.
    pub fn of_content(&self) -> Option<String> {
        let is_of_content = |option: &&OpenOption| {
            option.topic() == Topic::Images || **option == OpenOption::BackingFormat
        };
        self.given.iter().find(is_of_content).map(|option| format!("--{}", long(*option)))
    }

    /// Returns the value of `--format`.
    pub fn format_name(&self) -> FormatName {
        FormatName { format: self.open.format, compression: self.open.compression }
    }

    /// Returns the options for opening images. The error is what is wrong with the secret.
    pub fn options(&self) -> Result<OpenOptions, String> {
        let secret = self.secret_file.as_deref().map(read_secret).transpose()?;
        let nbd = self.open.nbd.clone().allow_local_files(true);
        Ok(self.open.clone().secret(secret).nbd(nbd))
    }
}

impl clap::FromArgMatches for Opening {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut opening = Self {
            open: OpenOptions::new(),
            secret_file: None,
            no_sandbox: matches.get_flag(NO_SANDBOX),
            given: Vec::new(),
        };
        for option in OpenOption::ALL {
            let value = match option.kind() {
                OptionKind::Flag => {
                    matches.get_flag(option.name()).then_some(OptionValue::Flag(true))
                }
                _ => matches.get_one(option.name()).cloned(),
            };
            match value {
                None => continue,
                Some(OptionValue::Path(path)) if option.kind() == OptionKind::Secret => {
                    opening.secret_file = Some(path);
                }
                Some(value) => opening.open.set(*option, value).map_err(|error| {
                    let message = format!("--{} {error}", long(*option));
                    clap::Error::raw(clap::error::ErrorKind::ValueValidation, message)
                })?,
            }
            opening.given.push(*option);
        }
        if matches.get_flag(UNTRUSTED) {
            opening.open.follow = Follow::None;
        }
        Ok(opening)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for Opening {
    fn augment_args(command: Command) -> Command {
        let of = |topic| OpenOption::ALL.iter().filter(move |it| it.topic() == topic);
        let untrusted = Arg::new(UNTRUSTED)
            .help("For images from unknown sources: --follow=none")
            .conflicts_with(OpenOption::Follow.name());
        let no_sandbox = Arg::new(NO_SANDBOX).help("Disable the sandbox").hide_short_help(true);
        let flags = [(UNTRUSTED, untrusted), (NO_SANDBOX, no_sandbox)];
        let flags = flags
            .map(|(name, flag)| flag.long(name).action(ArgAction::SetTrue).help_heading(SAFETY));
        command
            .args(of(Topic::Images).map(argument))
            .args(flags)
            .args(of(Topic::Safety).map(argument))
            .args(of(Topic::Reading).map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Returns the argument for an option.
fn argument(option: &OpenOption) -> Arg {
    let is_short_help = matches!(option, OpenOption::Format | OpenOption::Snapshot);
    let argument = Arg::new(option.name())
        .long(long(*option))
        .help(help(*option))
        .help_heading(match option.topic() {
            Topic::Images => IMAGES,
            Topic::Safety => SAFETY,
            _ => SPEED,
        })
        .hide_short_help(!is_short_help);
    let argument = match option {
        OpenOption::Format => argument.short('f'),
        OpenOption::ForceShare => argument.short('U'),
        OpenOption::Cache => {
            argument.num_args(0..=1).require_equals(true).default_missing_value("yes")
        }
        _ => argument,
    };
    let hint = match option.kind() {
        OptionKind::Flag => return argument.action(ArgAction::SetTrue),
        OptionKind::Folder => ValueHint::DirPath,
        OptionKind::Program => ValueHint::CommandName,
        OptionKind::File | OptionKind::Secret => ValueHint::FilePath,
        OptionKind::Format { .. }
        | OptionKind::Words(_)
        | OptionKind::Text
        | OptionKind::Size
        | OptionKind::Seconds => ValueHint::Unknown,
    };
    argument
        .value_name(option.value_name())
        .value_hint(hint)
        .value_parser(OptionParser(*option))
        .hide_possible_values(true)
}

/// Describes an option in the help of a command.
fn help(option: OpenOption) -> String {
    let text = match option.kind() {
        OptionKind::Secret => "Unlock encrypted (luks) images with the content of FILE".to_owned(),
        _ => option.text().to_owned(),
    };
    let choice = option.choice(str::to_owned).map_or_else(String::new, |it| format!(": {it}"));
    let default = match (option, option.default_text()) {
        (OpenOption::Cache, default) => format!(" [default: {default}; without a value: yes]"),
        (_, "") => String::new(),
        (_, default) => format!(" [default: {default}]"),
    };
    format!("{text}{choice}{default}")
}

const UNTRUSTED: &str = "untrusted";
const NO_SANDBOX: &str = "no-sandbox";

pub const IMAGES: &str = "Images";
pub const SAFETY: &str = "Safety";
pub const SPEED: &str = "Speed and servers";
