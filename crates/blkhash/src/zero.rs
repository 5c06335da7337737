//! Zero detection.

/// Returns whether every byte of `data` is zero.
///
/// Data that is not zero nearly always shows it within the first bytes, so these are checked first.
/// The rest is checked at the speed of memory.
pub fn is_zero(data: &[u8]) -> bool {
    let (head, rest) = data.split_at(data.len().min(HEAD));
    if head.iter().any(|&byte| byte != 0) {
        return false;
    }
    let mut groups = rest.chunks_exact(GROUP);
    groups.by_ref().all(|group| group.iter().fold(0, |acc, &byte| acc | byte) == 0)
        && groups.remainder().iter().all(|&byte| byte == 0)
}

/// Bytes that are checked before vectors are used.
const HEAD: usize = 16;

/// Bytes between two checks of the result, enough for the compiler to use vectors.
const GROUP: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_one_bit_anywhere() {
        for length in (0..600).chain([4095, 4096, 4097, 65_536]) {
            let mut data = vec![0; length + 3];
            for start in 0..3 {
                assert!(is_zero(&data[start..start + length]));
            }
            for position in (0..length).step_by(1 + length / 600) {
                data[1 + position] = 0x10;
                assert!(!is_zero(&data[1..1 + length]), "{length} bytes, set at {position}");
                data[1 + position] = 0;
            }
        }
    }

    #[test]
    fn does_not_look_outside() {
        let mut data = vec![0; 1000];
        data[9] = 1;
        data[990] = 1;
        assert!(is_zero(&data[10..990]));
    }
}
