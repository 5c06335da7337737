//! The rounds of BLAKE2b over vectors, the same for every width.
//!
//! A kernel with an input in each lane defines `add`, `rotate_right`, `xor` and `splat` over its
//! vectors, and the rounds are unrolled with them. The four G functions of half a round do not
//! depend on each other, so their steps are interleaved.

#![cfg(target_arch = "x86_64")]

/// Returns the chaining value `h` after the block of the words `m`. `count` has the bytes so far,
/// and `last` has all ones in the last block.
macro_rules! rounds {
    ($h:expr, $m:expr, $count:expr, $last:expr) => {{
        let (h, m) = ($h, $m);
        let mut v: [_; 16] =
            std::array::from_fn(|i| if i < 8 { h[i] } else { splat(IV[i - 8]) });
        v[12] = xor(v[12], $count);
        v[14] = xor(v[14], $last);
        macro_rules! each {
            ($i:ident: $step:expr) => {
                each!($i, 0, $step);
                each!($i, 1, $step);
                each!($i, 2, $step);
                each!($i, 3, $step);
            };
            ($i:ident, $value:literal, $step:expr) => {{
                const $i: usize = $value;
                $step;
            }};
        }
        macro_rules! half_round {
            ($order:expr, $first:literal, $a:ident $b:ident $c:ident $d:ident) => {
                each!(I: v[$a[I]] = add(add(v[$a[I]], m[$order[$first + 2 * I]]), v[$b[I]]));
                each!(I: v[$d[I]] = rotate_right::<32>(xor(v[$d[I]], v[$a[I]])));
                each!(I: v[$c[I]] = add(v[$c[I]], v[$d[I]]));
                each!(I: v[$b[I]] = rotate_right::<24>(xor(v[$b[I]], v[$c[I]])));
                each!(I: v[$a[I]] = add(add(v[$a[I]], m[$order[$first + 2 * I + 1]]), v[$b[I]]));
                each!(I: v[$d[I]] = rotate_right::<16>(xor(v[$d[I]], v[$a[I]])));
                each!(I: v[$c[I]] = add(v[$c[I]], v[$d[I]]));
                each!(I: v[$b[I]] = rotate_right::<63>(xor(v[$b[I]], v[$c[I]])));
            };
        }
        macro_rules! round {
            ($round:literal) => {{
                const ORDER: [usize; 16] = SIGMA[$round];
                half_round!(ORDER, 0, A B C D);
                half_round!(ORDER, 8, A B_DIAGONAL C_DIAGONAL D_DIAGONAL);
            }};
        }
        round!(0);
        round!(1);
        round!(2);
        round!(3);
        round!(4);
        round!(5);
        round!(6);
        round!(7);
        round!(8);
        round!(9);
        round!(10);
        round!(11);
        std::array::from_fn(|i| xor(h[i], xor(v[i], v[i + 8])))
    }};
}

/// The rows of the matrix of words. G takes a word of each row, first in columns and then in
/// diagonals.
pub(super) const A: [usize; 4] = [0, 1, 2, 3];
pub(super) const B: [usize; 4] = [4, 5, 6, 7];
pub(super) const C: [usize; 4] = [8, 9, 10, 11];
pub(super) const D: [usize; 4] = [12, 13, 14, 15];
pub(super) const B_DIAGONAL: [usize; 4] = [5, 6, 7, 4];
pub(super) const C_DIAGONAL: [usize; 4] = [10, 11, 8, 9];
pub(super) const D_DIAGONAL: [usize; 4] = [15, 12, 13, 14];

pub(super) use rounds;
