//! Hashes of the kernel's crypto API, from /proc/crypto.

use std::fs;

pub use crate::records::algorithm::Driver;

/// Returns the hashes in /proc/crypto, or none if it cannot be read. The kernel may have more, because
/// it loads modules on demand.
pub fn drivers() -> Vec<Driver> {
    let text = fs::read("/proc/crypto").unwrap_or_default();
    parse(&String::from_utf8_lossy(&text))
}

/// Returns the hashes in `text`, the preferred ones first. An empty line ends a record. Lines and
/// records that are not understood are skipped.
fn parse(text: &str) -> Vec<Driver> {
    let mut drivers = Vec::new();
    let mut record = Record::default();
    for line in text.lines().chain([""]) {
        match line.split_once(':') {
            Some((key, value)) => record.take(key.trim(), value.trim()),
            None if line.trim().is_empty() => drivers.extend(std::mem::take(&mut record).finish()),
            None => {}
        }
    }
    drivers.sort_by_key(|driver| std::cmp::Reverse(driver.priority));
    drivers
}

#[derive(Default)]
struct Record {
    driver: Driver,
    is_hash: bool,
}

impl Record {
    fn take(&mut self, key: &str, value: &str) {
        match key {
            "name" => self.driver.name = value.to_owned(),
            "driver" => self.driver.driver = value.to_owned(),
            "priority" => self.driver.priority = value.parse().ok(),
            "selftest" => self.driver.selftest = value.to_owned(),
            "type" => self.is_hash = matches!(value, "shash" | "ahash"),
            _ => {}
        }
    }

    fn finish(self) -> Option<Driver> {
        (self.is_hash && !self.driver.name.is_empty()).then_some(self.driver)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records() {
        let text = "\
name         : sha256
driver       : sha256-generic
priority     : 100
selftest     : passed
type         : shash

name         : cbc(aes)
driver       : cbc(ecb(aes-generic))
type         : skcipher


nonsense
name: sha256
driver:sha256-ni
priority : 250
type : shash
name2";
        let drivers = parse(text);
        let names: Vec<_> = drivers.iter().map(|driver| driver.driver.as_str()).collect();
        assert_eq!(names, ["sha256-ni", "sha256-generic"]);
        assert_eq!(drivers[1].priority, Some(100));
        assert_eq!(drivers[0].selftest, "");
        assert_eq!(parse(""), []);
        assert_eq!(parse("priority : x\ntype : shash\n"), []);
    }
}
