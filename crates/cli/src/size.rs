//! Numbers of bytes for people.

use std::fmt;

/// A number of bytes in binary units: `1.50 GiB`, or with `{:#}` in three digits, `15.0 GiB`.
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut value = self.0 as f64;
        let mut units = UNITS.iter();
        let mut unit = None;
        while value >= 1024.0 {
            value /= 1024.0;
            unit = units.next();
        }
        let Some(unit) = unit else { return f.pad(&format!("{} B", self.0)) };
        let decimals = match f.alternate() {
            true if value >= 99.95 => 0,
            true if value >= 9.995 => 1,
            _ => 2,
        };
        f.pad(&format!("{value:.decimals$} {unit}"))
    }
}

/// The largest number has 16 EiB.
const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        let cases = [
            (0, "0 B", "0 B"),
            (1023, "1023 B", "1023 B"),
            (1024, "1.00 KiB", "1.00 KiB"),
            (1536 << 20, "1.50 GiB", "1.50 GiB"),
            (15 << 30, "15.00 GiB", "15.0 GiB"),
            ((10 << 20) - 1, "10.00 MiB", "10.0 MiB"),
            (1023 << 40, "1023.00 TiB", "1023 TiB"),
            (u64::MAX, "16.00 EiB", "16.0 EiB"),
        ];
        for (bytes, long, short) in cases {
            assert_eq!(Bytes(bytes).to_string(), long);
            assert_eq!(format!("{:#}", Bytes(bytes)), short);
        }
        assert_eq!(format!("{:#8}|", Bytes(1)), "1 B     |");
    }
}
