//! Digests as users write them on the command line, and as messages describe them.

use std::str::FromStr;

use blkhash::{Algorithm, BlockSize, Construction, Error, Parameters, Salt};

/// A value of `--digest`: `NAME`, `NAME:CONSTRUCTION` or `NAME:bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DigestName {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The construction, if given.
    pub construction: Option<Construction>,
    /// Whether the digest is of the bytes of the file itself.
    pub is_bytes: bool,
}

impl FromStr for DigestName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (name, construction, is_bytes) = match text.split_once(':') {
            Some((name, "bytes")) => (name, Some(Construction::Linear), true),
            Some((name, construction)) => (name, Some(construction.parse()?), false),
            None => (text, None, false),
        };
        Ok(Self { algorithm: name.parse()?, construction, is_bytes })
    }
}

impl DigestName {
    /// Returns the parameters of the checksum. A construction in the name takes precedence over
    /// `construction`. Without a block size, the construction's is used. A construction without
    /// salts ignores `salt`.
    pub fn parameters(
        self,
        construction: Construction,
        block_size: Option<BlockSize>,
        salt: Option<Salt>,
    ) -> Result<Parameters, Error> {
        let construction = self.construction.unwrap_or(construction);
        let block_size = block_size.unwrap_or(construction.default_block_size());
        let salt = salt.filter(|_| construction.max_salt() > 0).unwrap_or_default();
        Parameters::new(self.algorithm, construction, block_size)?.with_salt(salt)
    }
}

/// The digests that checksums can be made of.
pub fn digest_names() -> Vec<&'static str> {
    let usable = Algorithm::ALL.iter().filter(|algorithm| **algorithm != Algorithm::SipHash);
    usable.map(|algorithm| algorithm.name()).collect()
}

/// Describes the parameters in words, for messages.
pub fn describe(parameters: &Parameters) -> String {
    let (algorithm, construction) = (parameters.algorithm(), parameters.construction());
    if !construction.has_blocks() {
        return format!("{algorithm} and {construction}");
    }
    let size = parameters.block_size();
    match parameters.salt() {
        salt if salt.is_empty() => {
            format!("{algorithm}, {construction} and blocks of {size:#}")
        }
        salt => format!("{algorithm}, {construction}, blocks of {size:#} and the salt {salt}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let name: DigestName = "sha256:streams:64".parse().unwrap();
        assert_eq!(name.algorithm, Algorithm::Sha256);
        assert_eq!(name.construction.unwrap().to_string(), "streams:64");
        let plain =
            DigestName { algorithm: Algorithm::Blake3, construction: None, is_bytes: false };
        let bytes: DigestName = "md5:bytes".parse().unwrap();
        assert_eq!((bytes.algorithm, bytes.is_bytes), (Algorithm::Md5, true));
        assert_eq!("blake3".parse(), Ok(plain));
        for wrong in ["", ":", "sha256:", "sha256:no", ":flat", "flat:sha256"] {
            assert!(wrong.parse::<DigestName>().is_err(), "{wrong}");
        }
    }
}
