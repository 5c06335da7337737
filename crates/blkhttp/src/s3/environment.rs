//! The part of the environment of a process that the AWS tools look at.

use std::collections::HashMap;
use std::path::PathBuf;

/// The variables of AWS, and the home folder. Has no `Debug`, because some of them are secrets.
#[derive(Clone, Default)]
pub(crate) struct Environment {
    variables: HashMap<String, String>,
    home: Option<PathBuf>,
}

impl Environment {
    /// Returns the environment of this process. A variable that is not UTF-8 counts as unset.
    pub fn of_process() -> Self {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| name.starts_with("AWS_"))
            .collect();
        Self { variables, home: std::env::home_dir() }
    }

    /// Returns the value of a variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns whether a variable is `true`, in letters of any case.
    pub fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// Returns the path in a variable, or `fallback` in the home folder. `~/` is the home folder as well.
    pub fn path(&self, name: &str, fallback: &str) -> Option<PathBuf> {
        match self.get(name) {
            Some(path) => self.expand(path),
            None => Some(self.home.as_ref()?.join(fallback)),
        }
    }

    /// Returns a path, in which `~/` at the start is the home folder. `None` if there is no home folder.
    pub fn expand(&self, path: &str) -> Option<PathBuf> {
        match path.strip_prefix("~/") {
            Some(rest) => Some(self.home.as_ref()?.join(rest)),
            None => Some(PathBuf::from(path)),
        }
    }
}

#[cfg(test)]
impl Environment {
    /// Returns an environment with some variables.
    pub fn with(variables: &[(&str, &str)]) -> Self {
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        Self { variables: variables.iter().map(owned).collect(), home: None }
    }

    /// Sets the home folder.
    pub fn at_home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Some(home.into());
        self
    }
}
