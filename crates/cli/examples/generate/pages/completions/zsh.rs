//! Completions for zsh, which are a function for each command that calls `_arguments`.

use std::fmt::Write;

use super::{CommandOption, Level, Subcommand, Takes, Value, quoted};

/// Returns the completion file of a command.
pub fn write(levels: &[Level]) -> String {
    let command = &levels[0].path;
    let mut text = format!(
        "#compdef {command}\n# Zsh completion for {command}(1), generated from its argument parser.\n"
    );
    for level in levels.iter().filter(|level| !level.is_leaf()) {
        text += &function(level, levels);
    }
    // The file can be autoloaded, where it is the body of the function, and can also be sourced.
    let function = levels[0].function();
    let _ = write!(
        text,
        "\nif [[ $funcstack[1] == {function} ]]; then\n    {function} \"$@\"\nelse\n    \
         compdef {function} {command}\nfi\n"
    );
    text
}

fn function(level: &Level, levels: &[Level]) -> String {
    let mut text = format!("\n{}() {{\n", level.function());
    if !level.subcommands.is_empty() {
        text += "    local curcontext=$curcontext context state line\n    typeset -A opt_args\n";
    }
    // Options after a subcommand belong to that, not to the command.
    let end = if level.subcommands.is_empty() { "" } else { " -A '-*'" };
    let _ = write!(text, "    _arguments -s -S -C{end} :");
    for option in &level.options {
        for spec in specs(option) {
            let _ = write!(text, " \\\n        {spec}");
        }
    }
    if !level.subcommands.is_empty() {
        text += " \\\n        '1: :->command' \\\n        '*:: :->rest'\n";
        text += &states(level, levels);
    } else if let Some(operands) = &level.operands {
        let action = action(operands);
        let _ = writeln!(text, " \\\n        {}", quoted(&format!("*: :{action}"), QUOTE));
    } else {
        text += "\n";
    }
    text + "}\n"
}

/// Returns the code that offers the subcommands, or calls the function of one.
fn states(level: &Level, levels: &[Level]) -> String {
    let described = level.subcommands.iter().map(|Subcommand { name, help }| {
        format!("                {}\n", quoted(&format!("{name}:{help}"), QUOTE))
    });
    let paths = level.subcommands.iter().map(|inner| format!("{} {}", level.path, inner.name));
    let inner = paths.filter_map(|path| levels.iter().find(|inner| inner.path == path));
    let cases = inner.filter(|inner| !inner.is_leaf()).map(|inner| {
        let (_, name) = inner.path.rsplit_once(' ').unwrap_or_default();
        format!("                {name}) {} ;;\n", inner.function())
    });
    STATES
        .replace("@DESCRIBED@\n", &described.collect::<String>())
        .replace("@CASES@\n", &cases.collect::<String>())
}

/// Returns the arguments of `_arguments` for an option.
fn specs(option: &CommandOption) -> Vec<String> {
    let names: Vec<_> = option.names().collect();
    let before = match (option.repeats, names.len()) {
        (true, _) => "*".to_owned(),
        (false, 1) => String::new(),
        (false, _) => format!("({})", names.join(" ")),
    };
    let spec = |name: &str, end: &str, value: &str| {
        let help = escaped(&option.help, &['[', ']']);
        quoted(&format!("{before}{name}{end}[{help}]{value}"), QUOTE)
    };
    names
        .iter()
        .map(|name| {
            let is_long = name.starts_with("--");
            match &option.takes {
                Takes::Optional(value_name, value) if is_long => {
                    spec(name, "=-", &format!("::{value_name}:{}", action(value)))
                }
                Takes::Nothing | Takes::Optional(..) => spec(name, "", ""),
                Takes::Value(value_name, value) => {
                    let end = if is_long { "=" } else { "+" };
                    spec(name, end, &format!(":{value_name}:{}", action(value)))
                }
            }
        })
        .collect()
}

fn action(value: &Value) -> String {
    match value {
        Value::Files => "_files".to_owned(),
        Value::Folders => "_files -/".to_owned(),
        Value::Programs => "_command_names -e".to_owned(),
        Value::OneOf(words) => format!("({})", escaped(&words.join(" "), &[':'])),
        Value::Other => " ".to_owned(),
    }
}

/// Puts a backslash before each character of `special` and each backslash in `text`.
fn escaped(text: &str, special: &[char]) -> String {
    let is_special = |character| character == '\\' || special.contains(&character);
    text.chars().fold(String::new(), |mut escaped, character| {
        if is_special(character) {
            escaped.push('\\');
        }
        escaped.push(character);
        escaped
    })
}

/// Escape for a single quote within single quotes.
const QUOTE: &str = "'\\''";

const STATES: &str = "    case $state in
        command)
            local -a commands=(
@DESCRIBED@
            )
            _describe -t commands command commands
            ;;
        rest)
            case $line[1] in
@CASES@
            esac
            ;;
    esac
";
