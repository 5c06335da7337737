//! Suggestions for unknown names.

use crate::values::{meant, one_of};

/// Suggests the one of `names` that is similar to `name`, or lists all of them.
pub fn instead_of(name: &str, names: &[impl AsRef<str>]) -> String {
    meant(name, names).unwrap_or_else(|| format!("use {}", one_of(names)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_that_was_meant_or_all() {
        let names = ["md5", "sha256", "sha512-256"];
        assert_eq!(instead_of("SHA265", &names), "did you mean sha256?");
        assert_eq!(meant("md6", &names), Some("did you mean md5?".to_owned()));
        assert_eq!(meant("x", &names), None);
        assert_eq!(instead_of("blake3", &names), "use md5, sha256 or sha512-256");
        assert_eq!(instead_of("blake3", &names[..1]), "use md5");
    }
}
