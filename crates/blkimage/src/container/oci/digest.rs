//! Digests of blobs, as an image states them.

use std::fmt;
use std::fmt::Write as _;

use crate::container::checked::{Running, Sum};
use sha2::{Digest as _, Sha256, Sha512};

use crate::error::excerpt;

/// A digest of an algorithm that the specification registers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Digest {
    algorithm: Algorithm,
    /// Lower case.
    hex: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Algorithm {
    Sha256,
    Sha512,
}

impl Digest {
    /// Parses `ALGORITHM:HEX`. Fails with the reason.
    pub fn parse(text: &str) -> Result<Self, String> {
        let invalid = || format!("\"{}\", which is no digest", excerpt(text.as_bytes()));
        let (algorithm, hex) = text.split_once(':').ok_or_else(invalid)?;
        let algorithm = match algorithm {
            "sha256" => Algorithm::Sha256,
            "sha512" => Algorithm::Sha512,
            _ => {
                let name = excerpt(algorithm.as_bytes());
                return Err(format!("a digest of the algorithm \"{name}\", which is not read"));
            }
        };
        Self::new(algorithm, hex).ok_or_else(invalid)
    }

    /// Returns the SHA-256 digest with these digits. `None` if they are none.
    pub fn sha256(hex: &str) -> Option<Self> {
        Self::new(Algorithm::Sha256, hex)
    }

    /// Returns the digest that is the path of a blob in a layout. `None` if the path is none.
    pub fn of_path(path: &[u8]) -> Option<Self> {
        let (algorithm, hex) =
            std::str::from_utf8(path).ok()?.strip_prefix("blobs/")?.split_once('/')?;
        Self::parse(&format!("{algorithm}:{hex}")).ok()
    }

    fn new(algorithm: Algorithm, hex: &str) -> Option<Self> {
        let is_hex = hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let length = match algorithm {
            Algorithm::Sha256 => 64,
            Algorithm::Sha512 => 128,
        };
        (is_hex && hex.len() == length).then(|| Self { algorithm, hex: hex.to_owned() })
    }

    /// Returns the path of the blob in a layout.
    pub fn path(&self) -> String {
        let algorithm = match self.algorithm {
            Algorithm::Sha256 => "sha256",
            Algorithm::Sha512 => "sha512",
        };
        format!("blobs/{algorithm}/{}", self.hex)
    }

    /// Returns all digits.
    pub fn hex(&self) -> &str {
        &self.hex
    }

    /// Returns the first digits.
    pub fn short(&self) -> &str {
        &self.hex[..SHORT]
    }

    /// Returns the line of a check file for `name`, which holds no character that is escaped there.
    pub fn line(&self, name: &str) -> String {
        let algorithm = match self.algorithm {
            Algorithm::Sha256 => "SHA256",
            Algorithm::Sha512 => "SHA512",
        };
        format!("{algorithm} ({name}) = {}\n", self.hex)
    }

    pub fn hasher(&self) -> Hasher {
        match self.algorithm {
            Algorithm::Sha256 => Hasher::Sha256(Sha256::new()),
            Algorithm::Sha512 => Hasher::Sha512(Sha512::new()),
        }
    }

    /// Returns whether this is the digest of `content`.
    pub fn is_of(&self, content: &[u8]) -> bool {
        let mut hasher = self.hasher();
        hasher.update(content);
        hasher.finish() == self.hex
    }
}

impl fmt::Display for Digest {
    /// A part that is enough for a person.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.short())
    }
}

impl Sum for Digest {
    fn subject(&self) -> String {
        format!("blob {self}")
    }

    fn noun(&self) -> &'static str {
        "digest"
    }

    fn begin(&self) -> Box<dyn Running + '_> {
        Box::new((self.hasher(), self))
    }
}

impl Running for (Hasher, &Digest) {
    fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn is_stated(self: Box<Self>) -> bool {
        self.0.finish() == self.1.hex()
    }
}

/// Computes a digest.
pub(super) enum Hasher {
    Sha256(Sha256),
    Sha512(Sha512),
}

impl Hasher {
    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(hasher) => hasher.update(bytes),
            Self::Sha512(hasher) => hasher.update(bytes),
        }
    }

    /// Returns the digits.
    pub fn finish(self) -> String {
        match self {
            Self::Sha256(hasher) => hex(&hasher.finalize()),
            Self::Sha512(hasher) => hex(&hasher.finalize()),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

/// Digits of a digest in names and messages.
const SHORT: usize = 12;
