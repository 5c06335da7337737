//! Digests in a text, hexadecimal or in base64.

use blkhash::Digest;
use data_encoding::{BASE64, HEXLOWER_PERMISSIVE};

use super::bytes::shown;

/// Reads a digest. What can be both is hexadecimal.
pub(super) fn parse(text: &[u8]) -> Result<Digest, String> {
    let bytes = HEXLOWER_PERMISSIVE.decode(text).or_else(|_| BASE64.decode(text));
    let digest = bytes.ok().and_then(|bytes| Digest::try_from(&bytes[..]).ok());
    let digest = digest.filter(|digest| !digest.as_bytes().is_empty());
    digest.ok_or_else(|| format!("{} is not a digest", shown(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_and_base64_are_read() {
        let zeros = Digest::try_from(&[0; 32][..]).unwrap();
        assert_eq!(parse("00".repeat(32).as_bytes()), Ok(zeros));
        assert_eq!(parse(b"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="), Ok(zeros));
        assert_eq!(parse(b"AbCd").map(|it| it.to_string()), Ok("abcd".to_owned()));
        for bad in ["", "0", "zz", "00 ", "AAAA=", &"00".repeat(65)] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
