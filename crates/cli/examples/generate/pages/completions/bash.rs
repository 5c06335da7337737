//! Completions for bash, which are tables of options and values and the function in `template.bash`.

use super::{Level, Takes, Value};

/// Returns the completion file of a command.
pub fn write(levels: &[Level]) -> String {
    let command = &levels[0];
    let options = levels.iter().filter(|level| !level.options.is_empty());
    let options = options.map(|level| entry(&level.path, &option_words(level)));
    let subcommands = levels.iter().filter(|level| !level.subcommands.is_empty()).map(|level| {
        let names: Vec<_> = level.subcommands.iter().map(|inner| inner.name.as_str()).collect();
        entry(&level.path, &names.join(" "))
    });
    TEMPLATE
        .replace("@NAME@", &command.path)
        .replace("@FUNCTION@", &command.function())
        .replace("@SUBCOMMANDS@\n", &subcommands.collect::<String>())
        .replace("@OPTIONS@\n", &options.collect::<String>())
        .replace("@VALUES@\n", &levels.iter().flat_map(values).collect::<String>())
}

fn option_words(level: &Level) -> String {
    let mut words = Vec::new();
    for option in &level.options {
        words.extend(option.names());
        if let Takes::Optional(..) = option.takes {
            words.extend(option.long.iter().map(|name| format!("--{name}=")));
        }
    }
    words.join(" ")
}

/// Returns the entries for operands and for each option with a value.
fn values(level: &Level) -> Vec<String> {
    let mut entries = Vec::new();
    if let Some(operands) = &level.operands {
        entries.push(entry(&level.path, &words(operands)));
    }
    for option in &level.options {
        let (end, value) = match &option.takes {
            Takes::Nothing => continue,
            Takes::Value(_, value) => ("", value),
            Takes::Optional(_, value) => ("=", value),
        };
        for name in option.names() {
            entries.push(entry(&format!("{} {name}{end}", level.path), &words(value)));
        }
    }
    entries
}

fn words(value: &Value) -> String {
    match value {
        Value::Files => "<files>".to_owned(),
        Value::Folders => "<folders>".to_owned(),
        Value::Programs => "<programs>".to_owned(),
        Value::OneOf(words) => words.join(" "),
        Value::Other => "<other>".to_owned(),
    }
}

fn entry(key: &str, words: &str) -> String {
    format!("        [\"{key}\"]=\"{words}\"\n")
}

const TEMPLATE: &str = include_str!("template.bash");
