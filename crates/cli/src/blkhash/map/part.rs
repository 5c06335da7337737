//! Parts of an image for the jobs of a fleet.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::str::FromStr;

/// The Kth of N parts, K from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    pub number: u64,
    pub count: u64,
}

impl Shard {
    /// Returns the first page of the part, and the page after it, of an image of `pages` pages.
    pub fn pages(self, pages: u64) -> (u64, u64) {
        let at = |part: u64| {
            let page = u128::from(pages) * u128::from(part) / u128::from(self.count);
            u64::try_from(page).expect("at most the number of pages")
        };
        (at(self.number - 1), at(self.number))
    }

    /// Returns the part for a file name: `17-of-400`.
    pub fn file_name(self) -> String {
        format!("{}-of-{}", self.number, self.count)
    }

    /// Returns a name with the part in the place of [`PLACE`].
    pub fn fill(self, name: &OsStr) -> OsString {
        let bytes = name.as_bytes();
        let Some(at) = find(bytes) else { return name.to_owned() };
        let (before, after) = (&bytes[..at], &bytes[at + PLACE.len()..]);
        OsString::from_vec([before, self.file_name().as_bytes(), after].concat())
    }
}

impl FromStr for Shard {
    type Err = String;

    /// Parses `K/N`, or `auto/N` in a job of an array.
    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || "use K/N with K from 1 to N, or auto/N".to_owned();
        let (number, count) = text.split_once('/').ok_or_else(invalid)?;
        let count = parse(count).ok_or_else(invalid)?;
        let number = if number == "auto" {
            from_job(|name| std::env::var(name).ok())?
        } else {
            parse(number).ok_or_else(invalid)?
        };
        if !(1..=count).contains(&number) {
            return Err(invalid());
        }
        Ok(Self { number, count })
    }
}

/// Returns whether a name has a place for a shard.
pub fn has_place(name: &OsStr) -> bool {
    find(name.as_bytes()).is_some()
}

fn find(name: &[u8]) -> Option<usize> {
    name.windows(PLACE.len()).position(|part| part == PLACE)
}

/// Placeholder for the shard in the name of a file.
const PLACE: &[u8] = b"{shard}";

/// Returns the number of the job that this process is, from 1.
fn from_job(variable: impl Fn(&str) -> Option<String>) -> Result<u64, String> {
    // Kubernetes counts from 0.
    for (name, first) in [("JOB_COMPLETION_INDEX", 0), ("SLURM_ARRAY_TASK_ID", 1)] {
        if let Some(value) = variable(name) {
            let number = value.parse().ok().and_then(|number: u64| number.checked_add(1 - first));
            return number.ok_or_else(|| format!("{name} is not a number: {value}"));
        }
    }
    Err("auto needs JOB_COMPLETION_INDEX or SLURM_ARRAY_TASK_ID".to_owned())
}

fn parse(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_cover_all_pages_once() {
        for pages in [0, 1, 7, 1000, u64::MAX] {
            for count in [1, 2, 3, 7, 400] {
                let mut next = 0;
                for number in 1..=count {
                    let (first, end) = Shard { number, count }.pages(pages);
                    assert_eq!(first, next);
                    next = end;
                }
                assert_eq!(next, pages);
            }
        }
    }

    #[test]
    fn texts() {
        assert_eq!("17/400".parse(), Ok(Shard { number: 17, count: 400 }));
        for text in ["0/4", "5/4", "1", "1/0", "+1/2", "a/2", "/", "1/"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }

    #[test]
    fn jobs_of_arrays_have_numbers() {
        let of = |known: &'static str, value: &'static str| {
            from_job(move |name| (name == known).then(|| value.to_owned()))
        };
        assert_eq!(of("JOB_COMPLETION_INDEX", "0"), Ok(1));
        assert_eq!(of("SLURM_ARRAY_TASK_ID", "3"), Ok(3));
        assert!(of("SLURM_ARRAY_TASK_ID", "x").is_err() && of("OTHER", "1").is_err());
    }
}
