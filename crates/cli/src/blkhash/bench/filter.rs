//! Which contestants run: globs over their names, and names that people know from elsewhere.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::values::{meant, one_of};

/// Globs that names are matched with, in any case.
#[derive(Debug)]
pub struct Filter {
    /// Each pattern that was given, with the globs that it stands for. Empty if everything runs.
    wanted: Vec<(String, GlobSet)>,
}

impl Filter {
    /// Compiles globs, or names of rows of other programs.
    ///
    /// # Errors
    ///
    /// Describes the first pattern that is not a glob.
    pub fn new(patterns: &[String]) -> Result<Self, String> {
        let compile = |pattern: &String| {
            let globs = globs_of(pattern).map_err(|error| {
                format!("invalid value '{pattern}' for --filter: {}", error.kind())
            })?;
            Ok((pattern.clone(), globs))
        };
        Ok(Self { wanted: patterns.iter().map(compile).collect::<Result<_, String>>()? })
    }

    /// Whether a contestant runs: by its own name or by its algorithm's.
    pub fn accepts(&self, algorithm: &str, name: &str) -> bool {
        self.wanted.is_empty()
            || self.wanted.iter().any(|(_, globs)| is_any(globs, algorithm, name))
    }

    /// Returns the filters that match none of `contestants`, pairs of algorithm and name.
    pub fn unmatched<'a>(&'a self, contestants: &[(String, String)]) -> Vec<&'a str> {
        let is_met = |globs: &GlobSet| {
            contestants.iter().any(|(algorithm, name)| is_any(globs, algorithm, name))
        };
        let unmet = self.wanted.iter().filter(|(_, globs)| !is_met(globs));
        unmet.map(|(wanted, _)| wanted.as_str()).collect()
    }
}

/// Says that `wanted` matches none of `contestants`, pairs of algorithm and name, and what to write
/// instead.
pub fn explain_unmatched(wanted: &str, contestants: &[(String, String)]) -> Vec<String> {
    let lower = wanted.to_lowercase();
    let mut algorithms: Vec<&str> = Vec::new();
    for (algorithm, _) in contestants {
        if !algorithms.contains(&algorithm.as_str()) {
            algorithms.push(algorithm);
        }
    }
    let names = contestants.iter().map(|(_, name)| name.as_str());
    let all: Vec<&str> = algorithms.iter().copied().chain(names).collect();
    let is_glob = wanted.contains(['*', '?']);
    let meant = meant(&lower, &all)
        .filter(|_| !is_glob)
        .map_or(String::new(), |question| format!(": {question}"));
    // Of one algorithm that was named, its implementations are what there is to choose from.
    let begins =
        |algorithm: &&str| lower.strip_prefix(algorithm).is_some_and(|rest| rest.starts_with('-'));
    let named = algorithms.iter().copied().filter(begins).max_by_key(|name| name.len());
    let choice = match named {
        Some(algorithm) => {
            let of_it = contestants.iter().filter(|(group, _)| group == algorithm);
            let names: Vec<&str> = of_it.map(|(_, name)| name.as_str()).collect();
            format!("use {}", one_of(&names))
        }
        None => format!(
            "use {}, an implementation of one ('blkhash algorithms NAME' lists them), or a glob",
            one_of(&algorithms)
        ),
    };
    vec![format!("--filter '{wanted}' matches nothing{meant}"), choice]
}

/// The name of a contestant's row in hash-speedtest, if it has one there.
pub fn row_name(name: &str) -> Option<&'static str> {
    ROWS.iter().find(|(ours, _)| *ours == name).map(|(_, theirs)| *theirs)
}

fn is_any(globs: &GlobSet, algorithm: &str, name: &str) -> bool {
    globs.is_match(algorithm) || globs.is_match(name)
}

/// The globs that a pattern stands for, in any case.
fn globs_of(pattern: &str) -> Result<GlobSet, globset::Error> {
    let lower = pattern.to_lowercase();
    let globs = ALIASES.iter().find(|(alias, _)| *alias == lower).map(|(_, globs)| *globs);
    let mut set = GlobSetBuilder::new();
    for glob in globs.unwrap_or(&[pattern]) {
        set.add(GlobBuilder::new(glob).case_insensitive(true).build()?);
    }
    set.build()
}

/// Rows of btrfs-progs' hash-speedtest and of the kernel's crypto API, and what they are here.
const ALIASES: &[(&str, &[&str])] = &[
    ("crc32c-sw", &["crc32c-table"]),
    ("crc32c-ref", &["crc32c-table"]),
    ("crc32c-ni", &["crc32c-crc_fast"]),
    ("crc32c-pcl", &["crc32c-crc_fast"]),
    ("crc32c-arch", &["crc32c-crc_fast"]),
    ("xxhash", &["xxh64-*"]),
    ("xxhash64", &["xxh64-*"]),
    ("sha256-ref", &["sha256-soft"]),
    ("sha256-sw", &["sha256-soft"]),
    ("sha256-generic", &["sha256-soft"]),
    ("sha256-ni", &["sha256-x86_sha*"]),
    ("sha256-arch", &["sha256-x86_sha*", "sha256-arm_sha*"]),
    ("sha256-avx2", &["sha256-avx2*"]),
    ("sha256-avx512", &["sha256-avx512*"]),
    ("blake2", &["blake2b256-*"]),
    ("blake2b", &["blake2b256-*", "blake2b512-*"]),
    ("blake2b-256", &["blake2b256-*"]),
    ("blake2b-256-arch", &["blake2b256-*"]),
    ("blake2b-512", &["blake2b512-*"]),
    ("blake2b-512-arch", &["blake2b512-*"]),
    ("blake2-ref", &["blake2b256-soft"]),
    ("blake2-avx2", &["blake2b256-avx2*"]),
    ("blake2-avx512", &["blake2b256-avx512*"]),
    ("blake2s", &["blake2s256-*"]),
    ("sha3", &["sha3-256-*"]),
    ("null", &["null-*"]),
];

const ROWS: &[(&str, &str)] = &[
    ("crc32c-table", "CRC32C-SW"),
    ("crc32c-crc_fast", "CRC32C-NI"),
    ("xxh64-soft", "XXHASH"),
    ("sha256-soft", "SHA256-ref"),
    ("sha256-x86_sha", "SHA256-NI"),
    ("blake2b256-soft", "BLAKE2-ref"),
    ("blake2b256-avx2", "BLAKE2-AVX2"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        let cases = [
            ("*", "sha1", true),
            ("SHA*", "sha1", true),
            ("*2", "BLAKE2", true),
            ("sha?", "sha1", true),
            ("sha1*x*2", "sha1-avx-x2", true),
            ("*avx2*", "sha256-avx2-x8", true),
            ("sha", "sha1", false),
            ("?", "", false),
        ];
        for (glob, name, expected) in cases {
            assert_eq!(globs_of(glob).unwrap().is_match(name), expected, "{glob} {name}");
        }
        assert!(Filter::new(&["[".into()]).unwrap_err().contains("--filter: "));
    }

    #[test]
    fn what_to_write_instead() {
        let contestants = [
            ("null", "NULL-NOP"),
            ("md5", "md5-md5"),
            ("sha512", "sha512-sha2"),
            ("sha512-256", "sha512-256-sha2"),
        ]
        .map(|(algorithm, name)| (algorithm.to_owned(), name.to_owned()));
        let explain = |wanted| explain_unmatched(wanted, &contestants);
        let algorithms = "use null, md5, sha512 or sha512-256, an implementation of one \
                          ('blkhash algorithms NAME' lists them), or a glob";
        assert_eq!(
            explain("MD6"),
            ["--filter 'MD6' matches nothing: did you mean md5?", algorithms]
        );
        assert_eq!(explain("*x*"), ["--filter '*x*' matches nothing", algorithms]);
        assert_eq!(
            explain("sha512-256-avx*"),
            ["--filter 'sha512-256-avx*' matches nothing", "use sha512-256-sha2"]
        );
    }

    #[test]
    fn names_known_from_elsewhere() {
        let accepts = |wanted: &str, algorithm: &str, name: &str| {
            Filter::new(&[wanted.to_owned()]).unwrap().accepts(algorithm, name)
        };
        assert!(accepts("SHA256-NI", "sha256", "sha256-x86_sha-x2"));
        assert!(!accepts("SHA256-NI", "sha256", "sha256-soft"));
        assert!(accepts("CRC32C", "crc32c", "crc32c-crc_fast"));
        assert!(accepts("BLAKE2-avx2", "blake2b256", "blake2b256-avx2-x4"));
        assert!(accepts("BLAKE2b-256-arch", "blake2b256", "blake2b256-soft"));
        let filter = Filter::new(&["sha*".into(), "md6".into()]).unwrap();
        assert_eq!(filter.unmatched(&[("sha1".into(), "sha1-sha1".into())]), ["md6"]);
        assert!(Filter::new(&[]).unwrap().accepts("md5", "md5-md5"));
    }
}
