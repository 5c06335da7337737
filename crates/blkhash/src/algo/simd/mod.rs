//! One-line helpers over vectors that kernels of several families share, a file for each width.
//!
//! Names end in the width of a lane in bits if that matters. A kernel imports them under the names
//! that the rounds of its family use.

pub(super) mod avx2;
pub(super) mod avx512;
