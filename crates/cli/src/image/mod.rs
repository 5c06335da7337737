//! Open images: what both commands say about them.

pub mod advice;
