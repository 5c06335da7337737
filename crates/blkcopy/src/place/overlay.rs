//! Overlayfs: which file of a layer a path leads to.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A mounted overlay.
#[derive(Clone, Debug)]
pub struct Overlay {
    /// Folders of the layers that are mounted, the highest first.
    layers: Vec<PathBuf>,
}

impl Overlay {
    /// Takes the folder of the overlay that is mounted, and the options, as in mountinfo.
    pub fn new(root: &Path, options: &str) -> Self {
        let options = options.split(',').filter_map(|option| option.split_once('='));
        let mut layers = Vec::new();
        for (name, value) in options {
            match name {
                "upperdir" => layers.insert(0, path(unescaped(value))),
                "lowerdir" => {
                    layers.extend(unescaped_colons(&unescaped(value)).into_iter().map(path));
                }
                "lowerdir+" | "datadir+" => layers.push(path(unescaped(value))),
                _ => {}
            }
        }
        // Nothing tells what another path begins at.
        layers.retain(|layer| layer.is_absolute());
        let root = root.strip_prefix("/").unwrap_or(root);
        Self { layers: layers.into_iter().map(|layer| layer.join(root)).collect() }
    }

    /// Returns the file of the highest layer that has one with this name beneath the mount.
    pub fn real(&self, name: &Path) -> Option<PathBuf> {
        self.layers.iter().map(|layer| layer.join(name)).find(|path| path.is_file())
    }
}

/// Decodes spaces and similar characters, which are octal numbers after a backslash.
pub fn unescaped(field: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let digits = tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match byte.filter(|_| first == b'\\') {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    bytes
}

fn path(bytes: Vec<u8>) -> PathBuf {
    OsString::from_vec(bytes).into()
}

/// Splits at colons. A backslash protects the character behind it.
fn unescaped_colons(list: &[u8]) -> Vec<Vec<u8>> {
    let (mut parts, mut is_escaped) = (vec![Vec::new()], false);
    for &byte in list {
        match byte {
            b'\\' if !is_escaped => is_escaped = true,
            b':' if !is_escaped => parts.push(Vec::new()),
            _ => {
                is_escaped = false;
                parts.last_mut().expect("there is one").push(byte);
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_highest_layer_with_the_name_counts() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["up", "low:1", "low 2", "low 2/sub"] {
            fs::create_dir(at(name)).unwrap();
        }
        let place = folder.path().to_str().unwrap();
        // As the kernel writes them: the colon has a backslash, which is escaped, and so is the space.
        let options = format!(
            "rw,lowerdir={place}/low\\134:1:{place}/low\\0402,upperdir={place}/up,workdir={place}/w"
        );
        let overlay = Overlay::new(Path::new("/"), &options);
        assert_eq!(overlay.layers, [at("up"), at("low:1"), at("low 2")]);
        let real = |name: &str| overlay.real(Path::new(name));
        fs::write(at("low 2/sub/x"), "").unwrap();
        assert_eq!(real("sub/x"), Some(at("low 2/sub/x")));
        assert_eq!(real("sub"), None);
        fs::create_dir(at("up/sub")).unwrap();
        fs::write(at("up/sub/x"), "").unwrap();
        assert_eq!(real("sub/x"), Some(at("up/sub/x")));
        let bound = Overlay::new(Path::new("/sub"), &options);
        assert_eq!(bound.real(Path::new("x")), Some(at("up/sub/x")));
    }
}
