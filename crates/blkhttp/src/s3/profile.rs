//! The configuration files of the AWS tools: `~/.aws/config` and `~/.aws/credentials`.
//!
//! Both are read once, whole. Values of the credentials file take precedence. A nested value, in a line that begins with a
//! space, has the name of the value above and its own, as in `s3.addressing_style`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::environment::Environment;
use super::problem::{Problem, excerpt};

/// The values of a profile. Has no `Debug`, because some of them are secrets.
#[derive(Clone)]
pub(crate) struct Profile {
    name: String,
    values: Values,
    /// The values of the section `services` that the profile names.
    services: Values,
}

type Values = BTreeMap<String, String>;

impl Profile {
    /// Reads a profile: `name`, `AWS_PROFILE`, or `default`, which may be missing.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read, or has no such profile.
    pub fn read(name: Option<&str>, environment: &Environment) -> Result<Self, Problem> {
        let chosen = name.or_else(|| environment.get("AWS_PROFILE"));
        let name = chosen.unwrap_or(DEFAULT);
        let read = |path: Option<PathBuf>| path.map_or(Ok(String::new()), |path| read_file(&path));
        let [config, secrets] = files(environment).map(read);
        let (config, secrets) = (sections(&config?), sections(&secrets?));
        let in_config = match config.get(&format!("profile {name}")) {
            None if name == DEFAULT => config.get(name),
            section => section,
        };
        let in_secrets = secrets.get(name);
        if chosen.is_some() && name != DEFAULT && in_config.is_none() && in_secrets.is_none() {
            let name = excerpt(name);
            return Err(Problem::denied(format!(
                "the configuration files of AWS have no profile '{name}'"
            )));
        }
        let mut values = in_config.cloned().unwrap_or_default();
        values.extend(in_secrets.cloned().unwrap_or_default());
        let services = values.get("services").and_then(|it| config.get(&format!("services {it}")));
        Ok(Self { name: name.to_owned(), services: services.cloned().unwrap_or_default(), values })
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a value that is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns the endpoint of S3.
    pub fn endpoint(&self) -> Option<&str> {
        self.services
            .get("s3.endpoint_url")
            .map(String::as_str)
            .or_else(|| self.get("endpoint_url"))
    }
}

/// Returns the paths of the configuration and of the credentials.
pub(crate) fn files(environment: &Environment) -> [Option<PathBuf>; 2] {
    [
        environment.path("AWS_CONFIG_FILE", ".aws/config"),
        environment.path("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials"),
    ]
}

/// Reads a file. One that is missing is empty.
fn read_file(path: &Path) -> Result<String, Problem> {
    let mut text = String::new();
    let fail =
        |reason: &str| Problem::denied(format!("{}: {reason}", excerpt(&path.to_string_lossy())));
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            return Ok(text);
        }
        Err(error) => return Err(fail(&error.to_string())),
    };
    match file.take(MAX_FILE + 1).read_to_string(&mut text) {
        Ok(length) if length as u64 > MAX_FILE => Err(fail("is larger than 1 MiB")),
        Ok(_) => Ok(text),
        Err(error) => Err(fail(&error.to_string())),
    }
}

/// Reads the sections of a file. Lines that are no values are ignored, as the AWS tools do.
fn sections(text: &str) -> BTreeMap<String, Values> {
    let mut sections = BTreeMap::new();
    let mut section: Option<String> = None;
    let mut parent = None;
    for line in text.lines() {
        let content = without_comment(line);
        if content.is_empty() {
            continue;
        }
        if let Some(header) = content.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            let name = section_name(header.0);
            sections.entry(name.clone()).or_insert_with(Values::new);
            (section, parent) = (Some(name), None);
            continue;
        }
        let (Some(values), Some((name, value))) =
            (section.as_ref().and_then(|it| sections.get_mut(it)), content.split_once('='))
        else {
            continue;
        };
        let (name, value) = (name.trim().to_ascii_lowercase(), value.trim().to_owned());
        match (&parent, line.starts_with([' ', '\t'])) {
            (Some(parent), true) => values.insert(format!("{parent}.{name}"), value),
            _ => {
                parent = value.is_empty().then(|| name.clone());
                values.insert(name, value)
            }
        };
    }
    sections
}

/// Returns a line without spaces around it and without a comment, which begins the line or follows a space.
fn without_comment(line: &str) -> &str {
    let is_mark = |c| matches!(c, b'#' | b';');
    let bytes = line.as_bytes();
    let end = (0..bytes.len())
        .find(|&at| is_mark(bytes[at]) && (at == 0 || bytes[at - 1].is_ascii_whitespace()));
    line[..end.unwrap_or(line.len())].trim()
}

/// Returns the name of a section with one space, and without quotes: `profile "a b"` is `profile a b`.
fn section_name(header: &str) -> String {
    let unquoted = |text: &str| {
        let text = text.trim();
        let inner = text.strip_prefix(['"', '\'']).and_then(|it| it.strip_suffix(['"', '\'']));
        inner.unwrap_or(text).to_owned()
    };
    match header.trim().split_once([' ', '\t']) {
        Some((kind, name)) => format!("{kind} {}", unquoted(name)),
        None => unquoted(header),
    }
}

const DEFAULT: &str = "default";

/// Maximum size of a configuration file of AWS.
/// Limit in bytes.
const MAX_FILE: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "\
# comment
[default]
region = eu-west-1 # Ireland
[profile \"build farm\"]
REGION=us-gov-west-1
services = local
s3 =
    addressing_style = path
    signature_version = s3v4
output = json
[services local]
s3 =
  endpoint_url = http://127.0.0.1:9000
dynamodb =
  endpoint_url = http://127.0.0.1:8000
[profile plain]
endpoint_url = https://all.example
aws_access_key_id = in-config
";

    const CREDENTIALS: &str = "\
[default]
aws_access_key_id = AKIDEFAULT
; comment
aws_secret_access_key=a/b+c==
[plain]
aws_access_key_id = in-credentials
";

    fn profile(name: Option<&str>, variables: &[(&str, &str)]) -> Result<Profile, Problem> {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join(".aws");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("config"), CONFIG).unwrap();
        std::fs::write(folder.join("credentials"), CREDENTIALS).unwrap();
        Profile::read(name, &Environment::with(variables).at_home(home.path()))
    }

    #[test]
    fn the_default_profile_is_of_both_files() {
        let profile = profile(None, &[]).unwrap_or_else(|it| panic!("{it:?}"));
        assert_eq!(profile.get("region"), Some("eu-west-1"));
        assert_eq!(profile.get("aws_access_key_id"), Some("AKIDEFAULT"));
        assert_eq!(profile.get("aws_secret_access_key"), Some("a/b+c=="));
        assert_eq!(profile.endpoint(), None);
    }

    #[test]
    fn nested_values_and_services() {
        let profile =
            profile(None, &[("AWS_PROFILE", "build farm")]).unwrap_or_else(|it| panic!("{it:?}"));
        assert_eq!(profile.get("region"), Some("us-gov-west-1"));
        assert_eq!(profile.get("s3.addressing_style"), Some("path"));
        assert_eq!(profile.get("output"), Some("json"));
        assert_eq!(profile.endpoint(), Some("http://127.0.0.1:9000"));
    }

    #[test]
    fn an_option_chooses_before_the_environment_and_credentials_win() {
        let profile = profile(Some("plain"), &[("AWS_PROFILE", "build farm")])
            .unwrap_or_else(|it| panic!("{it:?}"));
        assert_eq!(profile.name(), "plain");
        assert_eq!(profile.get("aws_access_key_id"), Some("in-credentials"));
        assert_eq!(profile.endpoint(), Some("https://all.example"));
    }

    #[test]
    fn a_missing_profile_is_an_error_and_missing_files_are_not() {
        let error = profile(Some("none\n"), &[]).err().unwrap();
        assert_eq!(error.1, "the configuration files of AWS have no profile 'none'");
        let nowhere = Environment::with(&[("AWS_CONFIG_FILE", "/nonexistent/config")])
            .at_home("/nonexistent");
        assert!(Profile::read(None, &nowhere).is_ok_and(|it| it.get("region").is_none()));
    }

    #[test]
    fn files_that_are_too_large_or_no_text_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        for (content, reason) in [(vec![b'x'; (1 << 20) + 1], "1 MiB"), (vec![0xff; 4], "UTF-8")] {
            std::fs::write(&path, content).unwrap();
            let environment = Environment::with(&[("AWS_CONFIG_FILE", path.to_str().unwrap())]);
            let error = Profile::read(None, &environment).err().unwrap();
            assert!(error.1.contains(reason), "{error:?}");
        }
    }
}
