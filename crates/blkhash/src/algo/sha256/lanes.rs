//! The rounds of SHA-256 over vectors, the same for every width.
//!
//! A kernel with an input in each lane defines `add`, `rotate_right`, `shift_right`, `xor3`,
//! `choose`, `majority` and `splat` over its vectors, and the rounds are unrolled with them.

#![cfg(target_arch = "x86_64")]

/// Returns the state after 64 rounds over the words `w`, added to the state before.
macro_rules! rounds {
    ($state:expr, $w:expr) => {{
        let state = $state;
        let mut w = $w;
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
        macro_rules! round {
            ($a:ident, $b:ident, $c:ident, $d:ident, $e:ident, $f:ident, $g:ident, $h:ident, $i:expr) => {
                let s1 =
                    xor3(rotate_right::<6>($e), rotate_right::<11>($e), rotate_right::<25>($e));
                let wk = add(w[$i % 16], splat(K[$i]));
                let t1 = add(add($h, wk), add(s1, choose($e, $f, $g)));
                let s0 =
                    xor3(rotate_right::<2>($a), rotate_right::<13>($a), rotate_right::<22>($a));
                $d = add($d, t1);
                $h = add(t1, add(s0, majority($a, $b, $c)));
                // Replaces this word by the one of sixteen rounds later. Fewer values are live, and
                // rounds and schedule share the ports more evenly than if it were computed when
                // needed.
                if $i < 48 {
                    let (w1, w14) = (w[($i + 1) % 16], w[($i + 14) % 16]);
                    let s0 =
                        xor3(rotate_right::<7>(w1), rotate_right::<18>(w1), shift_right::<3>(w1));
                    let s1 = xor3(
                        rotate_right::<17>(w14),
                        rotate_right::<19>(w14),
                        shift_right::<10>(w14),
                    );
                    w[$i % 16] = add(add(w[$i % 16], s0), add(w[($i + 9) % 16], s1));
                }
            };
        }
        macro_rules! eight_rounds {
            ($i:expr) => {
                round!(a, b, c, d, e, f, g, h, $i);
                round!(h, a, b, c, d, e, f, g, $i + 1);
                round!(g, h, a, b, c, d, e, f, $i + 2);
                round!(f, g, h, a, b, c, d, e, $i + 3);
                round!(e, f, g, h, a, b, c, d, $i + 4);
                round!(d, e, f, g, h, a, b, c, $i + 5);
                round!(c, d, e, f, g, h, a, b, $i + 6);
                round!(b, c, d, e, f, g, h, a, $i + 7);
            };
        }
        eight_rounds!(0);
        eight_rounds!(8);
        eight_rounds!(16);
        eight_rounds!(24);
        eight_rounds!(32);
        eight_rounds!(40);
        eight_rounds!(48);
        eight_rounds!(56);
        let after = [a, b, c, d, e, f, g, h];
        std::array::from_fn(|i| add(state[i], after[i]))
    }};
}

/// Transposes each 128-bit group of four vectors with the 32-bit and 64-bit unpacks of the vector.
/// A group holds four words of one input before, and one word of four inputs after.
macro_rules! transpose {
    ($columns:expr, $low32:ident, $high32:ident, $low64:ident, $high64:ident) => {{
        let [a, b, c, d] = $columns;
        let (ab_low, ab_high) = ($low32(a, b), $high32(a, b));
        let (cd_low, cd_high) = ($low32(c, d), $high32(c, d));
        [
            $low64(ab_low, cd_low),
            $high64(ab_low, cd_low),
            $low64(ab_high, cd_high),
            $high64(ab_high, cd_high),
        ]
    }};
}

pub(super) use {rounds, transpose};
