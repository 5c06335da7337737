//! Apple Data Compression: a sequence of literal bytes and of copies of what was decoded before.
//!
//! The first byte of each code says what it is:
//!
//! | first byte | bytes of the code | meaning |
//! |---|---|---|
//! | `1nnnnnnn` | 1 | n + 1 literal bytes follow |
//! | `01nnnnnn` | 3 | copies n + 4 bytes from a distance of 16 bits, plus 1 |
//! | `00nnnndd` | 2 | copies n + 3 bytes from a distance of 10 bits, plus 1 |

/// Fills `out`. Returns `None` if the codes have other than its bytes.
pub(super) fn decode(mut codes: &[u8], out: &mut [u8]) -> Option<()> {
    let mut at = 0;
    while let Some((first, rest)) = codes.split_first() {
        let first_bits = usize::from(*first);
        let (length, distance) = match first >> 6 {
            2.. => {
                let (literal, rest) = rest.split_at_checked((first_bits & 0x7f) + 1)?;
                out.get_mut(at..at + literal.len())?.copy_from_slice(literal);
                at += literal.len();
                codes = rest;
                continue;
            }
            1 => {
                let (bits, rest) = rest.split_first_chunk()?;
                codes = rest;
                ((first_bits & 0x3f) + 4, usize::from(u16::from_be_bytes(*bits)) + 1)
            }
            _ => {
                let (low, rest) = rest.split_first()?;
                codes = rest;
                ((first_bits >> 2) + 3, ((first_bits & 3) << 8 | usize::from(*low)) + 1)
            }
        };
        let from = at.checked_sub(distance)?;
        out.get(at..at + length)?;
        // A copy may reach into what it writes.
        for index in 0..length {
            out[at + index] = out[from + index];
        }
        at += length;
    }
    (at == out.len()).then_some(())
}

#[cfg(test)]
mod tests {
    use super::decode;

    fn decoded(codes: &[u8], length: usize) -> Option<Vec<u8>> {
        let mut out = vec![0xee; length];
        decode(codes, &mut out).map(|()| out)
    }

    #[test]
    fn literals_and_copies() {
        assert_eq!(decoded(b"", 0).unwrap(), b"");
        assert_eq!(decoded(b"\x82abc", 3).unwrap(), b"abc");
        assert_eq!(decoded(b"\x82abc\x04\x02", 7).unwrap(), b"abcabca");
        assert_eq!(decoded(b"\x82abc\x40\0\0", 7).unwrap(), b"abccccc");
        let long =
            [&[0xff][..], &[1; 128], &[0xff], &[2; 128], b"\x3c\xff", b"\x7f\0\xff"].concat();
        let expected = [vec![1; 128], vec![2; 128], vec![1; 18], vec![1; 67]].concat();
        let expected = [&expected[..274], &expected[18..85]].concat();
        assert_eq!(decoded(&long, 256 + 18 + 67).unwrap().len(), expected.len());
        // A distance of ten bits, the upper two of which are in the first byte.
        let far =
            [&[0xff][..], &[1; 128], &[0xff], &[2; 128], &[0xff], &[3; 128], b"\x01\x7f"].concat();
        assert_eq!(decoded(&far, 387).unwrap()[384..], [1; 3]);
    }

    #[test]
    fn codes_that_are_not_valid() {
        for (codes, length) in [
            (&b"\x82abc"[..], 2),
            (b"\x82abc", 4),
            (b"\x82ab", 3),
            (b"\x80", 1),
            (b"\x00\x00", 3),
            (b"\x80a\x00\x01", 4),
            (b"\x80a\x00", 4),
            (b"\x80a\x40\0", 5),
            (b"\x80a\x40\0\x01", 5),
            (b"\x80a\x40\0\0", 4),
        ] {
            assert_eq!(decoded(codes, length), None, "{codes:?}");
        }
    }
}
