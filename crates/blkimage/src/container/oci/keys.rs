//! Keys of JSON documents that programs read differently.
//!
//! Container runtimes are written in Go, whose JSON package takes a key for a known one if both are equal without regard to case,
//! in ASCII and beyond (`\u{17f}` is an `s`, and the Kelvin sign a `k`), and the last of several. A document with such a key, or with
//! a known one twice, is refused.

use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

/// The keys of an object that programs know, and the objects in them.
#[derive(Clone, Copy)]
pub(super) struct Keys(&'static [(&'static str, Option<Keys>)]);

impl Keys {
    /// Fails if an object in the document has a key that programs mistake for another one. Values are not looked at.
    pub fn check(self, text: &[u8]) -> serde_json::Result<()> {
        self.deserialize(&mut serde_json::Deserializer::from_slice(text))
    }
}

impl<'de> DeserializeSeed<'de> for Keys {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Keys {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = 0_u32;
        while let Some(key) = map.next_key::<String>()? {
            let Some(at) = self.0.iter().position(|(known, _)| is_alike(&key, known)) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let (known, inner) = self.0[at];
            if key != known {
                return Err(A::Error::custom(format_args!(
                    "the key \"{}\", which some programs read as \"{known}\"",
                    key.escape_default()
                )));
            }
            if seen & 1 << at != 0 {
                return Err(A::Error::custom(format_args!("duplicate field `{known}`")));
            }
            seen |= 1 << at;
            match inner {
                Some(keys) => map.next_value_seed(keys)?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(self)?.is_some() {}
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
}

/// Returns whether Go takes `key` for `known`, which is ASCII.
fn is_alike(key: &str, known: &str) -> bool {
    let folded = |found: char| match found {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    };
    key.chars().map(folded).eq(known.chars().map(|known| known.to_ascii_lowercase()))
}

/// The file `oci-layout`.
pub(super) const LAYOUT: Keys = Keys(&[("imageLayoutVersion", None)]);

/// An index or a manifest.
pub(super) const DOCUMENT: Keys = Keys(&[
    ("schemaVersion", None),
    ("mediaType", None),
    ("artifactType", None),
    ("manifests", Some(DESCRIPTOR)),
    ("config", Some(DESCRIPTOR)),
    ("layers", Some(DESCRIPTOR)),
    ("fsLayers", None),
    ("history", None),
    ("subject", None),
    ("annotations", None),
]);

const DESCRIPTOR: Keys = Keys(&[
    ("mediaType", None),
    ("digest", None),
    ("size", None),
    ("urls", None),
    ("data", None),
    ("artifactType", None),
    ("annotations", None),
    ("platform", Some(PLATFORM)),
]);

const PLATFORM: Keys = Keys(&[
    ("architecture", None),
    ("os", None),
    ("os.version", None),
    ("os.features", None),
    ("variant", None),
    ("features", None),
]);

/// The file `manifest.json` of Docker.
pub(super) const DOCKER: Keys = Keys(&[
    ("Config", None),
    ("RepoTags", None),
    ("Layers", None),
    ("Parent", None),
    ("LayerSources", None),
]);

/// The configuration of a container image, of which Docker reads the layers.
pub(super) const CONFIG: Keys = Keys(&[
    ("architecture", None),
    ("os", None),
    ("rootfs", Some(Keys(&[("type", None), ("diff_ids", None)]))),
]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_go_folds() {
        for text in [
            "{\"layers\":[],\"Layers\":[]}",
            "{\"layer\u{17f}\":[]}",
            "{\"layer\\u017f\":[]}",
            "{\"LAYERS\":1}",
            "{\"layers\":[{\"digest\":1,\"Digest\":2}]}",
            "{\"layers\":[[{\"digest\":1,\"digest\":2}]]}",
            "{\"manifests\":[{\"platform\":{\"OS\":1}}]}",
            "{\"config\":1,\"config\":1}",
        ] {
            assert!(DOCUMENT.check(text.as_bytes()).is_err(), "{text}");
        }
        for text in [
            "{\"layer\":[],\"annotations\":{\"Size\":1,\"size\":1,\"SIZE\":2}}",
            "{\"x\":{\"Layers\":1},\"x\":-1,\"layers\":null,\"manifests\":1.5}",
            "{\"layers\":[{\"Layers\":1,\"annotations\":{\"Digest\":1}}]}",
        ] {
            assert!(DOCUMENT.check(text.as_bytes()).is_ok(), "{text}");
        }
        assert!(is_alike("\u{212a}ey", "key") && !is_alike("\u{131}d", "id"));
        assert!(DOCKER.check(b"[{\"Config\":1},{\"config\":1}]").is_err());
        assert!(CONFIG.check(b"{\"config\":{\"OS\":1},\"rootfs\":{\"Diff_ids\":1}}").is_err());
    }
}
