//! Runs of equal bits in a sector bitmap.

/// Returns the bit at `index`, and the number of equal bits from there on, at most `limit`. Does not
/// look past the end of `words`, in which bit 0 of a word is the first.
pub(super) fn run(words: &[u64], index: u64, limit: u64) -> (bool, u64) {
    let (first, shift) = ((index / 64) as usize, index % 64);
    let bit = words[first] >> shift & 1 == 1;
    // A mask of ones for bits that end the run.
    let differing = |word: u64| if bit { !word } else { word };
    let mut length = u64::from((differing(words[first]) >> shift).trailing_zeros()).min(64 - shift);
    let mut is_open = shift + length == 64;
    for word in &words[first + 1..] {
        if !is_open || length >= limit {
            break;
        }
        let more = u64::from(differing(*word).trailing_zeros());
        length += more;
        is_open = more == 64;
    }
    (bit, length.min(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with a search bit by bit.
    #[test]
    fn runs() {
        let words = [0, 0, u64::MAX, u64::MAX, 1, 1 << 63, 0xff00, u64::MAX, !1, 0];
        let bit = |at: u64| words[(at / 64) as usize] >> (at % 64) & 1 == 1;
        let end = words.len() as u64 * 64;
        for index in 0..end {
            let all = (index..end).take_while(|at| bit(*at) == bit(index)).count() as u64;
            for limit in [1, 2, 63, 64, 65, 128, 1000] {
                assert_eq!(run(&words, index, limit), (bit(index), all.min(limit)), "{index}");
            }
        }
    }
}
