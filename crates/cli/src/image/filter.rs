//! Selects the files of a folder that are hashed.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// A pattern of `--include` or `--exclude`. A pattern with a slash matches paths relative to the folder,
/// others match names.
pub type Glob = globset::Glob;

/// The files selected by `--include` and `--exclude`.
#[derive(Clone, Debug)]
pub struct Filter {
    /// `None` includes every file.
    include: Option<GlobSet>,
    exclude: GlobSet,
}

/// Parses a pattern. `*` and `?` match no slash, `**` matches any number of folders.
pub fn parse_glob(text: &str) -> Result<Glob, String> {
    let text = text.strip_prefix("./").unwrap_or(text);
    let text = text.strip_suffix('/').filter(|text| !text.is_empty()).unwrap_or(text);
    let path = match text.strip_prefix('/') {
        Some(path) => path.to_owned(),
        None if text.contains('/') => text.to_owned(),
        None => format!("**/{text}"),
    };
    let glob = GlobBuilder::new(&path).literal_separator(true).backslash_escape(true).build();
    glob.map_err(|error| error.kind().to_string())
}

impl Filter {
    /// Creates a filter for files that match one of `include`, or any file if that is empty, and none of
    /// `exclude`.
    ///
    /// # Errors
    ///
    /// Fails if the patterns are too large to be compiled. The message names the option.
    pub fn new(include: &[Glob], exclude: &[Glob]) -> Result<Self, String> {
        // Each pattern alone was accepted, so the size is all that can be wrong.
        let set = |option, globs| {
            set(globs).map_err(|_| format!("{option}: the patterns are too large together"))
        };
        let exclude = set("--exclude", exclude)?;
        let include = if include.is_empty() { None } else { Some(set("--include", include)?) };
        Ok(Self { include, exclude })
    }

    /// Returns whether a file is hashed, which has these paths: beneath the folder, and as it is printed.
    pub fn includes(&self, paths: &[&Path]) -> bool {
        let is_included = |include: &GlobSet| paths.iter().any(|path| include.is_match(path));
        self.include.as_ref().is_none_or(is_included)
            && !paths.iter().any(|path| self.excludes(path))
    }

    /// Returns whether the file or folder at `path` is left out.
    pub fn excludes(&self, path: &Path) -> bool {
        self.exclude.is_match(path)
    }
}

fn set(globs: &[Glob]) -> Result<GlobSet, globset::Error> {
    let mut builder = GlobSetBuilder::new();
    for glob in globs {
        builder.add(glob.clone());
    }
    builder.build()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    fn filter(include: &[&str], exclude: &[&str]) -> Filter {
        let globs = |texts: &[&str]| -> Vec<Glob> {
            texts.iter().map(|text| parse_glob(text).unwrap()).collect()
        };
        Filter::new(&globs(include), &globs(exclude)).unwrap()
    }

    #[test]
    fn names_and_paths() {
        let all = filter(&[], &[]);
        assert!(all.includes(&[Path::new("a")]) && all.includes(&[Path::new(".b/c")]));
        let images = filter(&["*.qcow2", "*.{img,raw}", "iso/*"], &["tmp", "old/*.img", "*.[0-9]"]);
        for path in ["a.qcow2", "x/y/a.qcow2", "a.img", "a.raw", "iso/a", "new/old.img", ".qcow2"] {
            assert!(images.includes(&[Path::new(path)]), "{path}");
        }
        for path in ["a", "a.qcow2.1", "x/iso/a", "iso/x/a", "old/a.img", "a.QCOW2"] {
            assert!(!images.includes(&[Path::new(path)]), "{path}");
        }
        assert!(images.excludes(Path::new("tmp")) && images.excludes(Path::new("x/tmp")));
        assert!(!images.excludes(Path::new("tmp/a")), "the walk does not get there");
        let odd = Path::new(OsStr::from_bytes(b"\xff\n\xfe"));
        assert!(filter(&["*\n?"], &[]).includes(&[odd]));
        assert!(filter(&["/a"], &[]).includes(&[Path::new("a")]));
        assert!(!filter(&["/a"], &[]).includes(&[Path::new("b/a")]));
        assert!(filter(&[], &["sub/"]).excludes(Path::new("x/sub")));
        assert!(filter(&[], &["./x/sub"]).excludes(Path::new("x/sub")));
    }

    #[test]
    fn patterns_that_are_too_large_together() {
        let large = [parse_glob(&"?".repeat(1_000_000)).unwrap()];
        for (include, exclude, option) in
            [(&large[..], &[][..], "--include"), (&[], &large, "--exclude")]
        {
            let error = Filter::new(include, exclude).unwrap_err();
            assert_eq!(error, format!("{option}: the patterns are too large together"));
        }
    }

    #[test]
    fn invalid_patterns() {
        for text in ["[", "a{b", "[z-a]", "\\"] {
            assert!(parse_glob(text).is_err(), "{text}");
        }
    }
}
