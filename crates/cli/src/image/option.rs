//! The names of options for opening images, as commands write them.

use blkimage::{OpenOption, OptionKind};

/// Returns the name of an option in commands. A secret is in a file there.
pub fn long(option: OpenOption) -> &'static str {
    match option {
        OpenOption::Secret => "secret-file",
        option => option.name(),
    }
}

/// Writes an option, with a value, as advice about errors does.
pub fn say(option: OpenOption, value: Option<&str>) -> String {
    let name = long(option);
    match (option, value, option.kind()) {
        (OpenOption::Format, Some(value), _) => format!("-f {value}"),
        (OpenOption::ForceShare, ..) => format!("-U (--{name})"),
        (_, Some(value), _) => format!("--{name}={value}"),
        (_, None, OptionKind::Size | OptionKind::Seconds) => {
            format!("--{name}={}", option.value_name())
        }
        (_, None, _) => format!("--{name}"),
    }
}
