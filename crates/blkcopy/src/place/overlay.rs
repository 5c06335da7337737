//! Overlayfs: which file of a layer a path leads to.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use blksys::{Mount, unescaped};

/// A mounted overlay.
#[derive(Clone, Debug)]
pub struct Overlay {
    /// Folders of the layers that are mounted, the highest first.
    layers: Vec<PathBuf>,
}

impl Overlay {
    /// Takes a mount of an overlay.
    pub fn new(mount: &Mount) -> Self {
        let mut layers = Vec::new();
        for option in mount.options.split(|byte| *byte == b',') {
            let Some(at) = option.iter().position(|byte| *byte == b'=') else { continue };
            let value = unescaped(&option[at + 1..]);
            match &option[..at] {
                b"upperdir" => layers.insert(0, path(value)),
                b"lowerdir" => layers.extend(unescaped_colons(&value).into_iter().map(path)),
                b"lowerdir+" | b"datadir+" => layers.push(path(value)),
                _ => {}
            }
        }
        // Nothing tells what another path begins at.
        layers.retain(|layer| layer.is_absolute());
        let root = mount.root.strip_prefix("/").unwrap_or(&mount.root);
        Self { layers: layers.into_iter().map(|layer| layer.join(root)).collect() }
    }

    /// Returns the file of the highest layer that has one with this name beneath the mount.
    pub fn real(&self, name: &Path) -> Option<PathBuf> {
        self.layers.iter().map(|layer| layer.join(name)).find(|path| path.is_file())
    }
}

fn path(bytes: Vec<u8>) -> PathBuf {
    OsString::from_vec(bytes).into()
}

/// Splits at colons. A backslash protects the character after it.
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
        let overlay = |root: &str| {
            Overlay::new(&Mount {
                device: (0, 50),
                root: root.into(),
                place: "/merged".into(),
                kind: "overlay".into(),
                source: "overlay".into(),
                options: options.clone().into_bytes(),
            })
        };
        let bound = overlay("/sub");
        let overlay = overlay("/");
        assert_eq!(overlay.layers, [at("up"), at("low:1"), at("low 2")]);
        let real = |name: &str| overlay.real(Path::new(name));
        fs::write(at("low 2/sub/x"), "").unwrap();
        assert_eq!(real("sub/x"), Some(at("low 2/sub/x")));
        assert_eq!(real("sub"), None);
        fs::create_dir(at("up/sub")).unwrap();
        fs::write(at("up/sub/x"), "").unwrap();
        assert_eq!(real("sub/x"), Some(at("up/sub/x")));
        assert_eq!(bound.real(Path::new("x")), Some(at("up/sub/x")));
    }
}
