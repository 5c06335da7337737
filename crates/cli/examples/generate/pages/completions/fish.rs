//! Completions for fish, which are a line for each option and each subcommand.

use std::fmt::Write;

use super::{CommandOption, Level, Subcommand, Takes, Value, quoted};

/// Returns the completion file of a command.
pub fn write(levels: &[Level]) -> String {
    let command = &levels[0].path;
    let mut text =
        format!("# Fish completion for {command}(1), generated from its argument parser.\n\n");
    if levels.len() > 1 {
        let paths: Vec<_> = levels.iter().map(|level| quoted(&level.path, QUOTE)).collect();
        text += &FUNCTION.replace("@NAME@", command).replace("@PATHS@", &paths.join(" "));
    }
    for level in levels {
        let begin = if levels.len() > 1 {
            let condition = quoted(&format!("__{command}_at {}", level.path), QUOTE);
            format!("complete -c {command} -n {condition}")
        } else {
            format!("complete -c {command}")
        };
        // Fish offers files by default. With -F it would also offer them as optional values.
        if level.operands != Some(Value::Files) {
            let operands = level.operands.as_ref().map_or("-f".to_owned(), arguments);
            let _ = writeln!(text, "{begin} {operands}");
        }
        for Subcommand { name, help } in &level.subcommands {
            let begin = begin.replacen("_at ", "_ends_at ", 1);
            let _ = writeln!(text, "{begin} -a {name} -d {}", quoted(help, QUOTE));
        }
        for option in &level.options {
            text += &lines(&begin, option);
        }
    }
    text
}

fn lines(begin: &str, option: &CommandOption) -> String {
    let short = option.short.iter().map(|letter| format!(" -s {letter}")).collect::<String>();
    let long = option.long.iter().map(|name| format!(" -l {name}")).collect::<String>();
    let help = quoted(&option.help, QUOTE);
    match &option.takes {
        Takes::Nothing => format!("{begin}{short}{long} -d {help}\n"),
        Takes::Value(_, value) => {
            format!("{begin}{short}{long} -r {} -d {help}\n", arguments(value))
        }
        // With both names on one line, fish would also offer the value after the letter.
        Takes::Optional(_, value) => {
            let letter = if short.is_empty() {
                String::new()
            } else {
                format!("{begin}{short} -d {help}\n")
            };
            format!("{letter}{begin}{long} {} -d {help}\n", arguments(value))
        }
    }
}

fn arguments(value: &Value) -> String {
    match value {
        Value::Files => "-F".to_owned(),
        Value::Folders => "-f -a '(__fish_complete_directories (commandline -ct))'".to_owned(),
        Value::Programs => "-f -a '(__fish_complete_command)'".to_owned(),
        Value::OneOf(words) => format!("-f -a {}", quoted(&words.join(" "), QUOTE)),
        Value::Other => "-f".to_owned(),
    }
}

/// Escape for a single quote within single quotes.
const QUOTE: &str = "\\'";

/// Fish functions that find the subcommand on the command line.
const FUNCTION: &str = "\
function __@NAME@_path
    set -l words (commandline -opc)
    set -l path @NAME@
    for word in $words[2..]
        contains -- \"$path $word\" @PATHS@
        or break
        set path \"$path $word\"
    end
    echo $path
end

# Whether the cursor is among the arguments of a command.
function __@NAME@_at
    test (__@NAME@_path) = \"$argv\"
end

# Whether the cursor is at the first argument of a command.
function __@NAME@_ends_at
    __@NAME@_at $argv
    and test (count (commandline -opc)) = (count $argv)
end

";
