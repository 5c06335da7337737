//! Which contestants run: globs over their names, and names that people know from elsewhere.

use crate::blkhash::suggest::meant;
use crate::values::one_of;

/// Globs that names are matched with, in any case.
#[derive(Debug)]
pub struct Filter {
    /// What was asked for, with the globs it stands for; everything matches none.
    wanted: Vec<(String, Vec<String>)>,
}

impl Filter {
    /// Globs, or names of rows of other programs.
    pub fn new(globs: &[String]) -> Self {
        let wanted = globs.iter().map(|glob| {
            let lower = glob.to_lowercase();
            let globs = match ALIASES.iter().find(|(alias, _)| *alias == lower) {
                Some((_, globs)) => globs.iter().map(|glob| (*glob).to_owned()).collect(),
                None => vec![lower],
            };
            (glob.clone(), globs)
        });
        Self { wanted: wanted.collect() }
    }

    /// Whether a contestant runs: by its own name or by its algorithm's.
    pub fn accepts(&self, algorithm: &str, name: &str) -> bool {
        self.wanted.is_empty()
            || self.wanted.iter().any(|(_, globs)| is_any(globs, algorithm, name))
    }

    /// What was asked for that none of `contestants`, pairs of algorithm and name, is.
    pub fn unmatched<'a>(&'a self, contestants: &[(String, String)]) -> Vec<&'a str> {
        let is_met = |globs: &[String]| {
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

fn is_any(globs: &[String], algorithm: &str, name: &str) -> bool {
    let names = [algorithm.to_lowercase(), name.to_lowercase()];
    globs.iter().any(|glob| names.iter().any(|name| matches(glob.as_bytes(), name.as_bytes())))
}

/// Whether a glob matches the whole of `name`: `*` is any bytes, `?` one.
fn matches(glob: &[u8], name: &[u8]) -> bool {
    // After a mismatch the last star takes one byte more; stars before it need not.
    let (mut g, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match glob.get(g) {
            Some(b'*') => {
                star = Some((g, n));
                g += 1;
            }
            Some(&byte) if byte == b'?' || byte == name[n] => (g, n) = (g + 1, n + 1),
            _ => match &mut star {
                Some((at, taken)) => {
                    *taken += 1;
                    (g, n) = (*at + 1, *taken);
                }
                None => return false,
            },
        }
    }
    glob[g..].iter().all(|byte| *byte == b'*')
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
    ("sha256-arch", &["sha256-x86_sha*"]),
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
            ("", "", true),
            ("*", "", true),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a?c", "abc", true),
            ("a*b*c", "aXbXbc", true),
            ("*avx2*", "sha256-avx2-x8", true),
            ("a", "ab", false),
            ("?", "", false),
            ("a*b", "acd", false),
        ];
        for (glob, name, expected) in cases {
            assert_eq!(matches(glob.as_bytes(), name.as_bytes()), expected, "{glob} {name}");
        }
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
            Filter::new(&[wanted.to_owned()]).accepts(algorithm, name)
        };
        assert!(accepts("SHA256-NI", "sha256", "sha256-x86_sha-x2"));
        assert!(!accepts("SHA256-NI", "sha256", "sha256-soft"));
        assert!(accepts("CRC32C", "crc32c", "crc32c-crc_fast"));
        assert!(accepts("BLAKE2-avx2", "blake2b256", "blake2b256-avx2-x4"));
        assert!(accepts("BLAKE2b-256-arch", "blake2b256", "blake2b256-soft"));
        let filter = Filter::new(&["sha*".into(), "md6".into()]);
        assert_eq!(filter.unmatched(&[("sha1".into(), "sha1-sha1".into())]), ["md6"]);
        assert!(Filter::new(&[]).accepts("md5", "md5-md5"));
    }
}
