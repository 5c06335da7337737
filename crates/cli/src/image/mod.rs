//! Open images: the options for that, and what is said about them. Both commands share it.

pub mod advice;
pub mod args;
pub mod names;
pub mod open;
mod option;
